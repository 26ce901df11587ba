"""``smembench explain kernel.cu:name`` and ``kernel.ptx:name``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Program
from smembench import conflicts

pytest.importorskip("cuda.bindings.nvrtc")

SOURCE = """
template <typename T, int SIDE> __global__ void transpose(T *out, const T *in, int n) {
    __shared__ T tile[SIDE][SIDE + PAD];
    int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    out[(blockIdx.x * SIDE + threadIdx.y) * n + blockIdx.y * SIDE + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
__global__ void scale(float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}
"""
LAUNCH = ["--grid", "32x32", "--block", "32x32", "--arg", "float32[1024,1024]", "--arg", "float32[1024,1024]"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "mine.cu"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize(("pad", "wavefronts"), [(0, 32), (1, 1)])
def test_a_template_is_explained_with_its_names_and_lines(
    program: Program, source: Path, pad: int, wavefronts: float
) -> None:
    ran = program("explain", f"{source}:transpose<float,32>", *LAUNCH, "--arg", "1024", "-D", f"PAD={pad}", "--json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    (load,) = (each for each in found["shared"] if each["kind"] == "load")
    assert (load["array"], load["line"], load["wavefronts_per_request"]) == ("tile", 7, wavefronts)
    assert found["unmatched_widths"] == []
    assert {each["array"] for each in found["global"]} == {"in", "out"}


def test_ptx_is_explained_as_its_source(program: Program, source: Path, tmp_path: Path) -> None:
    from smembench.toolchains.nvrtc import compile_source

    made = compile_source(SOURCE, source, "9.0", ["scale"], ["-DPAD=0"])
    (tmp_path / "mine.ptx").write_text(made.ptx)
    launch = ["--grid", "8", "--block", "256", "--arg", "float32[2000]", "--arg", "1.5", "--arg", "2000", "--json"]
    by_source = program("explain", f"{source}:scale", *launch, "-DPAD=0")
    by_ptx = program("explain", f"{tmp_path / 'mine.ptx'}:scale", *launch)
    assert by_ptx.returncode == by_source.returncode == 0, by_ptx.stderr
    one, other = (json.loads(ran.stdout)["global"] for ran in (by_source, by_ptx))
    assert [each["sectors_per_request"] for each in one] == [each["sectors_per_request"] for each in other]


@pytest.mark.parametrize(
    ("target", "arguments", "words"),
    [
        ("{path}", ["--grid", "1", "--block", "1"], "name a kernel in it, {path}:NAME; it has scale, transpose"),
        ("{path}:scales", ["--grid", "1", "--block", "1"], "has no kernel 'scales'; it has scale, transpose"),
        ("{path}:scale", [], "give --grid and --block"),
        ("{path}:scale", ["--grid", "1", "--block", "1", "-D", "PAD=0"], "takes (x, a, n), not 0 arguments"),
        ("{path}:transpose<float,PAD>", ["--grid", "1", "--block", "1"], 'error: identifier "PAD" is undefined'),
        ("{path}:scale", ["--grid", "1", "--block", "2000"], "block 2000: has 2000 along x"),
        ("missing.cu:scale", ["--grid", "1", "--block", "1"], "missing.cu: No such file"),
        ("{path}:scale", ["--grid", "1", "--block", "1", "--best-pad"], "--best-pad: goes with the package's kernels"),
    ],
)
def test_mistakes_of_the_command_are_one_line(
    program: Program, source: Path, target: str, arguments: list[str], words: str
) -> None:
    ran = program("explain", target.format(path=source), *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert words.format(path=source) in line


def test_a_structure_and_a_call_of_printf(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "part.cu"
    path.write_text("""struct Part { int n; float value; };
__device__ __noinline__ float half(const float *in, int i) { return in[i] / 2; }
__global__ void set(float *out, Part part) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 3) printf("%d\\n", i);
    if (i < part.n) out[i] = part.value;
}
__global__ void halved(float *out) { out[threadIdx.x] = half(out, threadIdx.x); }
""")
    np.save(tmp_path / "part.npy", np.array([(200, 1.5)], [("n", "i4"), ("value", "f4")]).view(np.uint8))
    launch = ["--grid", "4", "--block", "64", "--arg", "float32[256]"]
    ran = program("explain", f"{path}:set", *launch, "--arg", tmp_path / "part.npy", "--json")
    assert ran.returncode == 0, ran.stderr
    (store,) = json.loads(ran.stdout)["global"]
    assert (store["line"], store["requests"], store["sectors_per_request"]) == (6, 7, (6 * 4 + 1) / 7)
    number = program("explain", f"{path}:set", *launch, "--arg", "200")
    assert "part: is a structure; give its 8 bytes as a .npy file" in number.stderr
    refused = program("explain", f"{path}:halved", *launch)
    assert (refused.returncode, "halved, line 8: call.uni is not traced" in refused.stderr) == (2, True), refused.stderr


def test_python_explains_a_file_too(source: Path) -> None:
    launch: dict[str, Any] = {
        "grid": (32, 32),
        "block": (32, 32),
        "args": ("float32[1024,1024]", "float32[1024,1024]", 1024),
    }
    path = source.with_name("padded.cu")
    path.write_text("#define PAD 1\n" + SOURCE)
    assert conflicts(f"{path}:transpose<float,32>", **launch) == 1
    path.write_text("#define PAD 0\n" + SOURCE)
    assert conflicts(f"{path}:transpose<float,32>", **launch) == 32


def test_host_code_is_told_apart(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "whole.cu"
    path.write_text("#include <iostream>\n" + SOURCE)
    ran = program("explain", f"{path}:scale", "--grid", "1", "--block", "1", "-D", "PAD=0")
    assert ran.returncode == 2
    assert "cut out host code and its headers" in ran.stderr
