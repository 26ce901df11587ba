"""``smembench explain`` for kernels that Python holds as CUDA C++, with a stand-in for CuPy's classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conftest import Program
from smembench import UsageError, conflicts, explain_function

pytest.importorskip("cuda.bindings.nvrtc")

SOURCE = '''
from typing import NamedTuple

class RawKernel(NamedTuple):
    code: str
    name: str
    options: tuple = ()

class RawModule(NamedTuple):
    code: str
    options: tuple = ()

scale = RawKernel(r"""
extern "C" __global__ void scale(float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i * STEP] *= a;
}
""", "scale", ("-DSTEP=2",))
module = RawModule("""
template <typename T> __global__ void fill(T *x) { x[threadIdx.x] = 1; }
namespace mine { __global__ void zero(float *x) { x[threadIdx.x] = 0; } }
""")
made = RawKernel(scale.code.replace("STEP", "STEPS"), "scale")
'''


class Raw(NamedTuple):
    code: str
    name: str
    options: tuple[str, ...] = ()


TILE = """extern "C" __global__ void turn(float *out, const float *in) {
    __shared__ float tile[32][32 + PAD];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


def test_lines_are_those_of_the_python_file(source: Path) -> None:
    result = explain_function(f"{source}:scale", grid=1, block=64, args=("float32[64]", 2.0, 64))
    assert result.sectors("load") == 8
    (mistake,) = {item.line for item in result.trace.mistakes}
    assert source.read_text().splitlines()[mistake - 1] == "    if (i < n) x[i * STEP] *= a;"


def test_the_kernels_of_a_module_have_names(source: Path) -> None:
    for name, dtype, sectors in (("fill<double>", "float64", 8), ("mine::zero", "float32", 4)):
        result = explain_function(f"{source}:module.{name}", grid=1, block=32, args=(f"{dtype}[32]",))
        assert result.sectors("store") == sectors


@pytest.mark.parametrize(("pad", "ways"), [(0, 32), (1, 1)])
def test_python_explains_one_with_its_options(pad: int, ways: int) -> None:
    launch: dict[str, Any] = {"grid": 1, "block": (32, 32), "args": ("float32[32,32]", "float32[32,32]")}
    assert conflicts(Raw(TILE, "turn", (f"-DPAD={pad}",)), **launch) == ways


def test_without_a_file_the_lines_are_those_of_the_source() -> None:
    result = explain_function(Raw(TILE, "turn", ("-DPAD=0",)), grid=1, block=(32, 32), args=("float32[32,31]",) * 2)
    assert sorted(item.line for item in result.trace.mistakes) == [3, 5]
    assert result.trace.source(5).startswith("out[threadIdx.y * 32")
    with pytest.raises(UsageError, match='source of turn, line 2: identifier "PAD" is undefined'):
        explain_function(Raw(TILE, "turn"), grid=1, block=(32, 32), args=())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("module", "has no function 'module'; it has made, module.fill, module.zero, scale"),
        ("module.no", 'mine.py: no: identifier "no" is undefined'),
        ("made", 'source of scale, line 4: identifier "STEPS" is undefined'),
        ("scale", "scale in mine.py: takes (x, a, n), not 0 arguments"),
    ],
)
def test_mistakes_of_the_command_are_one_line(program: Program, source: Path, name: str, message: str) -> None:
    ran = program("explain", f"{source}:{name}", "--grid", 1, "--block", 32)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert message in line


def test_the_cure_is_written_as_the_source_is(tmp_path: Path) -> None:
    from smembench.views.explain_cure import cure_lines

    launch: dict[str, Any] = {"grid": 1, "block": (32, 32), "args": ("float32[1024]", "float32[1024]")}
    (line,) = cure_lines(explain_function(Raw(TILE, "turn", ("-DPAD=0",)), **launch))
    assert "of tile" in line
    path = tmp_path / "mine.py"
    path.write_text(f"{SOURCE}turn = RawKernel('''{TILE}''', 'turn', ('-DPAD=0',))\n")
    (line,) = cure_lines(explain_function(f"{path}:turn", **launch))
    assert '("float tile[32][32 + PAD + 1]") makes the loads in line' in line
