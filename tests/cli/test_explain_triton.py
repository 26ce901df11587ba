"""``smembench explain kernel.py:function`` for functions of ``triton.jit``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Program
from smembench import UsageError, conflicts, explain_function

pytest.importorskip("triton")

SOURCE = """import triton
import triton.language as tl


@triton.jit
def softmax(out, inp, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(inp + row * stride + c, mask=c < n, other=0.0)
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    tl.store(out + row * stride + c, e / tl.sum(e, axis=0), mask=c < n)


@triton.autotune(configs=[triton.Config({"SIDE": 32}, num_warps=4)], key=["n"])
@triton.jit
def transpose(inp, out, n, SIDE: tl.constexpr):
    y = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    x = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    tile = tl.load(inp + y[:, None] * n + x[None, :], mask=x[None, :] < n, other=0)
    tl.store(out + x[:, None] * n + y[None, :], tl.trans(tile))


@triton.jit
def scale(x, factor, step, SIZE: tl.constexpr, dtype: tl.constexpr = tl.float32):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(x + at * step, (tl.load(x + at * step) * factor).to(dtype))


@triton.jit
def in_stages(out, inp, n, SIZE: tl.constexpr, num_stages: tl.constexpr):
    for begin in tl.range(0, n, SIZE, num_stages=num_stages):
        at = begin + tl.arange(0, SIZE)
        tl.store(out + at, tl.load(inp + at))
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("triton") / "mine.py"
    path.write_text(SOURCE)
    return path


def words(*arguments: object) -> list[str]:
    return [word for argument in arguments for word in ("--arg", str(argument))]


def test_a_parameter_called_as_an_option_gets_its_value(program: Program, source: Path) -> None:
    given = words("float32[512]", "float32[512]", 512, "SIZE=128", "num_stages=2", "num_warps=2")
    ran = program("explain", f"{source}:in_stages", "--grid", 1, *given, "--json")
    assert ran.returncode == 0, ran.stderr
    assert "block 64" in json.loads(ran.stdout)["title"]


def test_lines_arrays_and_sectors_are_those_of_the_source(program: Program, source: Path) -> None:
    given = words("float32[64,1000]", "float32[64,1000]", 1000, 1000, "BLOCK=1024")
    ran = program("explain", f"{source}:softmax", "--grid", 64, *given, "--json")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    result = json.loads(ran.stdout)
    assert {(item["line"], item["kind"], item["array"]) for item in result["global"]} == {
        (9, "load", "inp"),
        (12, "store", "out"),
    }
    assert {item["line"] for item in result["shared"]} == {10, 12}
    # 1000 floats in 125 sectors, by 32 requests of 128 bytes of which the last is partly outside
    assert [item["sectors_per_request"] for item in result["global"]] == [125 / 32, 125 / 32]
    assert "softmax in mine.py · grid 64 · block 128" in result["title"]


def test_the_block_is_that_of_num_warps(program: Program, source: Path) -> None:
    launch = ["--grid", "4x4", *words("float32[128,128]", "float32[128,128]", 128, "SIDE=32")]
    ran = program("explain", f"{source}:transpose", *launch, "--arg", "num_warps=8", "--block", 256, "--json")
    assert ran.returncode == 0, ran.stderr
    assert "block 256" in json.loads(ran.stdout)["title"]
    # each of the eight loads in a vector of 16 bytes, inline assembler of several lines, is of its statement
    assert {item["line"] for item in json.loads(ran.stdout)["global"]} == {20, 21}
    ran = program("explain", f"{source}:transpose", *launch, "--block", 256)
    assert "block 256: transpose has 128 threads, by num_warps=4; leave the block out" in ran.stderr


@pytest.mark.parametrize(
    ("step", "sectors"),
    [("1", 16), ("int64 1", 4), ("2", 8)],
)
def test_integers_are_specialized_as_by_a_launch(source: Path, step: str, sectors: float) -> None:
    """A step of 1 becomes a constant, so that a thread loads 16 bytes; a typed one stays an argument."""
    result = explain_function(
        f"{source}:scale", grid=2, args=("float32[4096]", 2.0, step, "SIZE=512"), capability="9.0"
    )
    assert result.sectors("load") == sectors


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (
            "softmax",
            [],
            "takes (out, inp, stride, n, BLOCK, num_warps, num_stages): missing a required",
        ),
        (
            "softmax",
            words("float32[8]", "float32[8]", 1, 8, "BLOCK=7"),
            "line 8: does not compile: arange",
        ),
        ("softmax", words("float32[8]", "float32[8]", 1, 8, "BLOCK=float32[8]"), "BLOCK: is a constant, not"),
        ("softmax", words("complex64[8]", "float32[8]", 1, 8, "BLOCK=8"), "out: Triton has no type complex64"),
        ("softmax", words("float32[8]", "float32[8]", "n=1", "n=2"), "--arg 'n=2': n was given before"),
        ("scale", words("float32[8]", 2.0, 1, "SIZE=8", "dtype=tl.float33"), "tl.float33: triton.language has no such"),
        ("scale", words("float32[8]", 2.0, 1, "SIZE=8", "num_warps=3"), "num_warps must be a power of 2"),
        ("scales", [], "has no function 'scales'; it has in_stages, scale, softmax, transpose"),
        ("scale", ["--shared-bytes", "8"], "8 bytes of shared memory: Triton decides on them; leave them out"),
        ("scale", ["-DN=1"], "-DN=1: goes with a kernel in a .cu file"),
    ],
)
def test_mistakes_of_the_command_are_one_line(
    program: Program, source: Path, function: str, given: list[str], message: str
) -> None:
    ran = program("explain", f"{source}:{function}", "--grid", 1, *given)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert message in line


def test_python_explains_functions_with_what_their_launch_names(source: Path) -> None:
    import triton.language as tl

    from smembench.launches.python_file import kernel_in

    transpose, scale = (kernel_in(f"{source}:{name}") for name in ("transpose", "scale"))
    arrays = ("float16[128,128]", "float16[128,128]", 128)
    result = explain_function(transpose, grid=(4, 4), args=arrays, capability="9.0", SIDE=32, num_warps=2)
    assert result.threads == 64
    ways = conflicts(f"{source}:transpose", grid=(4, 4), args=(*arrays, "SIDE=32", "num_warps=2"), capability="9.0")
    assert result.conflicts() == ways
    given: dict[str, Any] = {"grid": 2, "args": (np.zeros(1024, np.float32), 2.0), "capability": "9.0"}
    assert not explain_function(scale, **given, step=1, SIZE=512, dtype=tl.float16).trace.mistakes
    with pytest.raises(UsageError, match="got an unexpected keyword argument 'SIZES'"):
        explain_function(scale, **given, step=1, SIZE=512, SIZES=512)
    with pytest.raises(UsageError, match="block: give it, such as 32x8; only Triton decides on it"):
        conflicts(lambda x: x, grid=1, args=())
    with pytest.raises(UsageError, match="BLOCK=…: goes with a kernel of Triton"):
        conflicts(lambda x: x, grid=1, block=1, args=(1,), BLOCK=3)


def test_a_load_outside_is_named(program: Program, source: Path) -> None:
    ran = program("explain", f"{source}:scale", "--grid", 3, *words("float32[1024]", 2.0, 1, "SIZE=512"))
    assert ran.returncode == 1
    assert "line 27: thread 0 loads 16 bytes at byte 4096 of x, which has 4096 bytes" in " ".join(ran.stdout.split())
