"""`smembench time` without a GPU: wrong usage, explanations of kernels that cannot be timed, plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Program
from smembench.launches.cuda_file import compiled_kernel

N = 1000
SCALE = """
extern "C" __global__ void scale(float *out, const float *in, unsigned n)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i < n)
        out[i] = 2 * in[i];
}
"""
NUMBA = """
from numba import cuda

@cuda.jit
def scale(out, given, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = 2 * given[i]

def plain(out, given):
    return given
"""
ARRAYS = ("--arg", f"float32[{N}]", "--arg", f"float32[{N}]")
LAUNCH = ("--grid", "8", "--block", "128", *ARRAYS, "--arg", N)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of kernels."""
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "scale.cu").write_text(SCALE)
    (folder / "mine.py").write_text(NUMBA)
    (folder / "broken.cu").write_text('extern "C" __global__ void broken(float *out)\n{\n    out[0] = missing;\n}\n')
    compiled, _ = compiled_kernel(f"{folder}/scale.cu:scale", "9.0")
    assert compiled.code is not None
    (folder / "scale.ptx").write_text(compiled.ptx)
    (folder / "scale.cubin").write_bytes(compiled.code)
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nofile.cu:scale",), "nofile.cu: no such file; give path.cu:name, "),
        (("scale",), "scale: write path.cu:name, "),
        (("{0}/scale.cu:scale", "{0}/scale.cu:scale"), "scale.cu:scale: is named twice and would be measured once"),
        (("{0}/scale.cu:scale", "--check", "nofile.py:f"), "nofile.py: no such file; "),
        (("{0}/scale.cu:scale", "--block", ""), "scale.cu:scale: give --grid and --block"),
        (
            ("{0}/scale.cu:scale", "--grid", "n//2"),
            "names n; there is no name; give a size with --sweep, such as n=1024",
        ),
        (("{0}/scale.cu:scale", "--grid", "8x8x8x8"), "--grid '8x8x8x8': write 1 to 3 dimensions"),
        (("{0}/scale.cu:scale", "--reset", "3"), "--reset '3': write the argument and what it is filled with"),
        (("{0}/scale.cu:scale", "--arg", "float33[8]"), "--arg 'float33[8]': write float32[4096,4096] for an array"),
        (("{0}/scale.cu:scale", "--bytes", "-1"), "--bytes '-1': is -1; give 1 or more"),
        (("{0}/scale.cu:scale", "--flops", "0-bytes0"), "--flops '0-bytes0': is -4000; give 0 or more"),
        (("{0}/scale.cu:scale", "--atol", "inf"), "--atol inf: give a finite number"),
        (("{0}/scale.cu:scale", "--rtol", "nan"), "--rtol nan: give a finite number"),
        (
            ("{0}/scale.cu:scale", "--arg", "SIDE=2"),
            "SIDE=…: is no option, and {0}/scale.cu:scale takes no argument by",
        ),
        (("{0}/scale.cubin:scale", "--tune", "SIDE=1,2"), "SIDE=…: is no option, and {0}/scale.cubin:scale takes no"),
        (("{0}/scale.cu:scale", "--sweep", "n"), "--sweep 'n': write a name and its values"),
        (("{0}/scale.cu:scale", "--where", "1/0"), "--where '1/0': has the operator Div"),
        (("{0}/scale.cu:scale", "--where", "0"), "--where '0': rules out every size"),
        (("{0}/scale.cu:scale", "--sweep", "n=1,2"), "--sweep n: changes no launch; name n in --grid"),
        (("{0}/scale.cu:scale", "--cluster", "3"), "cluster 3: does not divide the grid's 8 blocks along x; give"),
        (("{0}/scale.cu:scale", "--cluster", "2x2"), "cluster 2x2: does not divide the grid's 1 blocks along y; give"),
        (("{0}/scale.cu:scale", "--cluster", "17", "--grid", "17"), "cluster 17: has 17 blocks; a GPU takes at most"),
        (("{0}/scale.cu:scale", "--cluster", "0"), "cluster 0: give 1 to 3 dimensions of at least 1"),
        (("{0}/scale.cu:scale", "--block", "64x32"), "block 64x32: has 2048 threads; a block has at most 1024"),
        (("{0}/scale.cu:scale", "--grid", "1x65536"), "grid 1x65536: has 65536 along y; a GPU takes at most 65535"),
        (("{0}/scale.cu:scale", "--grid", "1-5"), "--grid '-4': write 1 to 3 dimensions"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_measured(
    program: Program, folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    given = [item.format(folder) for item in arguments]
    ran = program("time", *map(str, LAUNCH), *given)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert message.format(folder) in ran.stderr


@pytest.mark.parametrize(
    ("target", "launch", "text"),
    [
        ("scale.cu:scale", LAUNCH, "scale in scale.cu · grid 8 · block 128"),
        ("scale.ptx:scale", LAUNCH, "scale in scale.ptx · grid 8 · block 128"),
        ("mine.py:scale", LAUNCH, "scale in mine.py · grid 8 · block 128"),
        ("scale.cubin:scale", LAUNCH, "not explained: a cubin has no PTX"),
        ("scale.cubin:nothing", LAUNCH, "not explained: {0}/scale.cubin: has no kernel 'nothing'; it has scale"),
        ("mine.py:plain", ARRAYS, "not explained: a function has no PTX"),
        ("broken.cu:broken", LAUNCH, "broken.cu, line 3: identifier"),
        ("scale.cu:nothing", LAUNCH, "scale.cu: has no kernel 'nothing'; it has scale"),
    ],
)
def test_without_a_gpu_the_kernel_is_explained(
    program: Program, folder: Path, target: str, launch: tuple[object, ...], text: str
) -> None:
    ran = program("time", f"{folder}/{target}", *launch)
    assert ran.returncode == 4
    assert text.format(folder) in " ".join((ran.stdout + ran.stderr).split())
    assert "none is usable (see: smembench doctor)" in ran.stderr


def test_without_a_gpu_a_dry_run_lists_the_plan(program: Program, folder: Path, tmp_path: Path) -> None:
    launched = "grid = 'cdiv(n, 128)'\nblock = 128\nsizes = {n = [64, 128]}\narg = ['float32[n]', 'float32[n]', 'n']\n"
    config = tmp_path / "mine.toml"
    config.write_text(f"[[sweep]]\nkernel = '{folder}/scale.cu:scale'\n{launched}")
    ran = program("run", config, "--dry-run")
    assert ran.returncode == 0, ran.stderr
    sizes = ("1x64", "1x128")
    assert ran.stdout.splitlines() == [f"time/scale.cu:scale/cuda/cuda/float32/{size}/b128x1/warm" for size in sizes]
    assert "2 cases on cuda (no GPU is usable here" in ran.stderr
    assert program("run", config).returncode == 4
    assert program("time", f"{folder}/scale.cu:scale", *LAUNCH, "--dry-run").returncode == 0
