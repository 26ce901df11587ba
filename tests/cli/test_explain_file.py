"""``smembench explain path.py:function`` as users run it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from conftest import Program

KERNELS = """from __future__ import annotations
from dataclasses import dataclass
from numba import cuda, float32, void

print("imported")
@dataclass
class Sizes: width: int

@cuda.jit(void(float32[:, :], float32[:, :]))
def transpose(out, a):
    tile = cuda.shared.array((32, 33), float32)
    x, y = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    out[x, y] = tile[cuda.threadIdx.y, cuda.threadIdx.x]

@cuda.jit
def race(out, a):
    tile = cuda.shared.array(64, float32)
    i = cuda.threadIdx.x
    tile[i] = a[i]
    out[i] = tile[63 - i]

@cuda.jit
def gather(out, indices, a):
    i = cuda.grid(1)
    out[i] = a[indices[i]]

@cuda.jit
def unsupported(out):
    out[0] = cuda.no_such_function(1)

number = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(KERNELS)
    return path


def test_tables_and_no_output_of_the_file(program: Program, file: Path) -> None:
    """A signature is no reason to compile; what the file prints goes to stderr."""
    square = ("--arg", "float32[1024,1024]")
    ran = program("explain", f"{file}:transpose", "--grid", "32x32", "--block", "32x32", *square, *square)
    assert (ran.returncode, ran.stderr) == (0, "imported\n")
    assert ran.stdout.startswith("transpose in mine.py · grid 32x32 · block 32x32 · 1024 threads, 4224 bytes")
    assert "Stores of out use 12 % of the bytes" in " ".join(ran.stdout.split())
    assert "No bank conflicts" in ran.stdout
    assert max(len(line) for line in ran.stdout.splitlines() if not line.startswith("next: ")) <= 80


def test_a_race_is_named_with_exit_code_1(program: Program, file: Path) -> None:
    ran = program("explain", f"{file}:race", "--grid", 1, "--block", 64, "--arg", "float32[64]", "--arg", "float32[64]")
    assert ran.returncode == 1
    assert ran.stdout.startswith("mistake in mine.py, line 21: thread ")
    assert "loads in line 22, with no barrier between them" in ran.stdout


def test_data_from_a_file(program: Program, file: Path, tmp_path: Path) -> None:
    launch = ("explain", f"{file}:gather", "--grid", 2, "--block", 32, "--arg", "float32[64]")
    without = program(*launch, "--arg", "int32[64]", "--arg", "float32[4096]")
    assert without.returncode == 0
    assert without.stdout.startswith(
        "not followed in mine.py, line 27: an address depends on data of indices; give its data"
    )
    indices = tmp_path / "indices.npy"
    np.save(indices, np.arange(64) * 64)
    ran = program(*launch, "--arg", indices, "--arg", "float32[4096]", "--json")
    assert ran.returncode == 0
    result = json.loads(ran.stdout)
    assert result["not_followed"] == result["mistakes"] == []
    assert result["global"][0]["sectors_per_request"] == 32


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("mine.py", "--grid 1 --block 32", "name a function in it, {}:NAME; it has gather, race, transpose, unsup"),
        ("mine.py:nothing", "--grid 1 --block 32", "has no function 'nothing'; it has gather, race"),
        ("mine.py:number", "--grid 1 --block 32", "has no function 'number'"),
        ("other.py:race", "--grid 1 --block 32", "no such file"),
        ("mine.py:race", "--block 32", "give --grid and --block"),
        ("mine.py:race", "--grid 0 --block 32", "grid 0: give 1 to 3 dimensions of at least 1"),
        ("mine.py:race", "--grid 1x70000 --block 32", "has 70000 along y; a GPU takes at most 65535"),
        ("mine.py:race", "--grid 1 --block 32x64", "has 2048 threads; a block has at most 1024"),
        ("mine.py:race", "--grid 1 --block 1x1x65", "has 65 along z"),
        ("mine.py:race", "--grid a --block 32", "--grid 'a': write 1 to 3 dimensions"),
        (
            "mine.py:race",
            "--grid 1 --block 32 --arg float32[3,] --arg 2",
            "--arg 'float32[3,]': write float32[4096,4096]",
        ),
        ("mine.py:race", "--grid 1 --block 32 --arg float33[3] --arg 2", "--arg 'float33[3]'"),
        ("mine.py:race", "--grid 1 --block 32 --arg none.npy --arg 2", "none.npy: No such file"),
        ("mine.py:race", "--grid 1 --block 32 --arg 2", "takes (out, a), not 1 argument; give one for each name"),
        (
            "mine.py:race",
            "--grid 1 --block 32 --arg S8[3] --arg 2",
            "S8 is no type of a kernel",
        ),
        (
            "mine.py:race",
            "--grid 1 --block 32 --arg 1 --arg 2",
            "race: Numba does not compile it: getitem(int64, int32)",
        ),
        (
            "mine.py:unsupported",
            "--grid 1 --block 32 --arg int32[3]",
            "line 31: Numba does not compile it: module 'numba.cuda' has no attribute 'no_such_function'",
        ),
        ("mine.py:race", "--grid 1 --block 32 --measure", "--measure: goes with the package's kernels"),
        ("mine.py:race", "--grid 1 --block 32 --dtype float32", "--dtype: goes with the package's kernels"),
        ("transposeSmem", "--grid 1", "--grid: goes with a kernel in a file"),
        ("transposeSmem", "--arg 1", "--arg: goes with a kernel in a file"),
        ("launches.py:kernel", "--grid 1 --block 32", "it uses a GPU when it is imported"),
        ("lacking.py:kernel", "--grid 1", "cannot be imported: it needs triton: pip install triton"),
        (
            "broken.py:kernel",
            "--grid 1 --block 32",
            "cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
        ),
    ],
)
def test_a_wrong_call_is_one_line(program: Program, file: Path, target: str, options: str, message: str) -> None:
    (file.parent / "launches.py").write_text("from numba import cuda\ncuda.to_device([1, 2])\n")
    (file.parent / "broken.py").write_text("import nowhere\n")
    (file.parent / "lacking.py").write_text("raise ModuleNotFoundError(name='triton')\n")
    target = str(file.parent / target) if ".py" in target else target
    ran = program("explain", target, *options.split())
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = (line for line in ran.stderr.splitlines() if line != "imported")
    assert message.format(file) in line
