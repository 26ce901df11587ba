"""`smembench time` on a real GPU: launches by every library, what they find and leave, and what is said of them."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from smembench.devices.cuda_description import why_unusable

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable()))]

CUDA = """
#include <cooperative_groups.h>

extern "C" __global__ void scale(float *out, const float *in, int n, float by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = by * in[i];
}

extern "C" __global__ void accumulate(float *total, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(total + i % 32, in[i]);
}

extern "C" __global__ void last(float *out, const float *in, unsigned *arrived, int n)
{
    __shared__ bool is_last;
    if (threadIdx.x == 0)
        is_last = atomicAdd(arrived, 1) == gridDim.x - 1;
    __syncthreads();
    if (is_last)
        for (int i = threadIdx.x; i < n; i += blockDim.x)
            out[i] = in[i] + 1;
}

extern "C" __global__ void negate(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = -x[i];
}

extern "C" __global__ void beyond(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        out[i] = 1;
}

extern "C" __global__ void far_away(float *out, const float *in, int n)
{
    out[1ll << 40] = 1;
}

extern "C" __global__ void never_ends(float *out, const float *in, int n)
{
    while (((volatile float *)in)[0] < 10)
        ;
    out[0] = 1;
}

extern "C" __global__ void reversed(float *out, const float *in, int n)
{
    extern __shared__ float tile[];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        tile[i] = in[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = tile[n - 1 - i];
}

extern "C" __global__ void neighbours(float *out, const float *in, int n)
{
    namespace cg = cooperative_groups;
    cg::cluster_group cluster = cg::this_cluster();
    __shared__ float mine[128];
    mine[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
    cluster.sync();
    out[blockIdx.x * 128 + threadIdx.x] = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1)[threadIdx.x];
    cluster.sync();
}
"""
PYTHON = """
import numpy as np

def scaled(out, given, n, by):
    out[:] = by * given

def accumulated(total, given, n):
    total += given.reshape(-1, 32).astype(np.float64).sum(0)

def incremented(out, given, arrived, n):
    out[:] = given + 1
    arrived[:] = 64

def negated(x, n):
    x[:] = -x

def flipped(out, given, n):
    out[:] = given[::-1]

def swapped(out, given, n):
    out[:] = given.reshape(-1, 2, 128)[:, ::-1].reshape(-1)

def summed(out, one, other, *sizes, **constants):
    out[:] = one + other

def doubled(out, given):
    out[:] = 2 * given.astype(np.float32)

def product(out, a, b):
    out[:] = a.astype(np.float32) @ b.astype(np.float32)
"""
NUMBA = """
from numba import cuda

@cuda.jit
def add(out, one, other):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = one[i] + other[i]
"""
TRITON = """
import triton
import triton.language as tl

@triton.jit
def add(out, one, other, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(one + at, mask=at < n) + tl.load(other + at, mask=at < n), mask=at < n)
"""
TORCH = """
import torch

side = None

def add(out, one, other):
    torch.add(one, other, out=out)

def in_steps(out, one, other):
    out.copy_(one)
    out.add_(other)

def through_memory(out, one, other):
    out.copy_(torch.add(one, other))

def waits(out, one, other):
    torch.add(one, other, out=out)
    torch.cuda.synchronize()

def elsewhere(out, one, other):
    global side
    side = side or torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.add(one, other, out=out)

def double(out, given):
    torch.add(given, given, out=out)

def product(out, a, b):
    torch.mm(a, b, out=out)

def learns(out, one, other):
    weight = one.detach().requires_grad_()
    out.copy_((weight * other + weight).detach() - one * other + other - one + one - other + other)
"""
CUPY = """
import cupy

kernel = cupy.RawKernel('''
extern "C" __global__ void add(float *out, const float *one, const float *other, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = one[i] + other[i];
}
''', "add")

def add(out, one, other):
    cupy.add(one, other, out=out)

def through_memory(out, one, other):
    out[:] = one + other
"""
LAUNCH = """
[[sweep]]
kernel = "{kernel}"
name = "{name}"
arg = {arg}
{more}
"""
THREE = '["float32[10000]", "float32[10000]", "float32[10000]"]'
TWO = '["float32[10000]", "float32[10000]", "10000"]'
GRID = 'grid = "79"\nblock = "128"\n'
SUM = 'check = "refs.py:summed"\n'
LAUNCHES: Mapping[str, tuple[str, str, str]] = {
    "scale": (
        "k.cu:scale",
        '["float32[10000]", "float32[10000]", "10000", "float32 2.5"]',
        GRID + 'check = "refs.py:scaled"\ncarveout = 100\noption = "--maxrregcount=32"\n',
    ),
    "accumulate": (
        "k.cu:accumulate",
        '["float32[32]", "float32[8192]", "8192"]',
        'grid = "64"\nblock = "128"\ninout = "0"\ncheck = "refs.py:accumulated"\n',
    ),
    "accumulate, undeclared": (
        "k.cu:accumulate",
        '["float32[32]", "float32[8192]", "8192"]',
        'grid = "64"\nblock = "128"\ncheck = "refs.py:accumulated"\n',
    ),
    "last": (
        "k.cu:last",
        '["float32[5000]", "float32[5000]", "uint32[1]", "5000"]',
        'grid = "64"\nblock = "128"\nreset = "2=0"\ncheck = "refs.py:incremented"\n',
    ),
    "last, not reset": (
        "k.cu:last",
        '["float32[5000]", "float32[5000]", "uint32[1]", "5000"]',
        'grid = "64"\nblock = "128"\nout = ["0", "2"]\ncheck = "refs.py:incremented"\n',
    ),
    "negate": ("k.cu:negate", '["float32[10000]", "10000"]', GRID + 'inout = "0"\ncheck = "refs.py:negated"\n'),
    "negate, undeclared": ("k.cu:negate", '["float32[10000]", "10000"]', GRID + 'check = "refs.py:negated"\n'),
    "beyond": ("k.cu:beyond", TWO, GRID + 'out = "0"\n'),
    "far away": ("k.cu:far_away", TWO, GRID + 'out = "0"\n'),
    "never ends": ("k.cu:never_ends", TWO, GRID + 'out = "0"\n'),
    "reversed": (
        "k.cu:reversed",
        '["float32[40000]", "float32[40000]", "40000"]',
        'grid = "1"\nblock = "1024"\nshared_bytes = "160000"\ncheck = "refs.py:flipped"\n',
    ),
    "neighbours": (
        "k.cu:neighbours",
        '["float32[8192]", "float32[8192]", "8192"]',
        'grid = "64"\nblock = "128"\ncluster = "2"\ncheck = "refs.py:swapped"\n',
    ),
    "numba": ("numba_add.py:add", THREE, GRID + SUM),
    "triton": ("triton_add.py:add", f'{THREE[:-1]}, "10000", "BLOCK=1024"]', 'grid = "10"\n' + SUM),
    "torch": ("torch_add.py:add", THREE, SUM),
    "torch in steps": ("torch_add.py:in_steps", THREE, SUM),
    "torch through memory": ("torch_add.py:through_memory", THREE, SUM),
    "torch waits": ("torch_add.py:waits", THREE, SUM),
    "torch elsewhere": ("torch_add.py:elsewhere", THREE, SUM),
    "torch learns": ("torch_add.py:learns", THREE, SUM),
    "torch bfloat16": (
        "torch_add.py:double",
        '["bfloat16 zeros.npy", "bfloat16 ones.npy"]',
        DOUBLED := 'out = "0"\ncheck = "refs.py:doubled"\n',
    ),
    "cupy": ("cupy_add.py:add", THREE, SUM),
    "cupy through memory": ("cupy_add.py:through_memory", THREE, SUM),
    "cupy raw": ("cupy_add.py:kernel", f'{THREE[:-1]}, "10000"]', GRID + SUM),
    "empty": (
        "k.cu:scale",
        '["float32[0]", "float32[0]", "0", "float32 2.5"]',
        'grid = "1"\nblock = "32"\nout = "0"\n',
    ),
}
NEEDS = {"triton": "triton", "torch": "torch", "cupy": "cupy"}


def available(name: str) -> bool:
    """Whether the library of a launch is installed."""
    library = NEEDS.get(name.partition(" ")[0])
    return library is None or find_spec(library) is not None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with kernels, references, data and a config of all launches."""
    result = tmp_path_factory.mktemp("time")
    texts = {
        "k.cu": CUDA,
        "refs.py": PYTHON,
        "numba_add.py": NUMBA,
        "triton_add.py": TRITON,
        "torch_add.py": TORCH,
        "cupy_add.py": CUPY,
    }
    for name, text in texts.items():
        (result / name).write_text(text)
    bits = np.random.default_rng(1).standard_normal(4096).astype(np.float32).view(np.uint32) >> 16
    np.save(result / "ones.npy", bits.astype(np.uint16))
    np.save(result / "zeros.npy", np.zeros(4096, np.uint16))
    launches = [
        LAUNCH.format(kernel=kernel, name=name, arg=arg, more=more)
        for name, (kernel, arg, more) in LAUNCHES.items()
        if available(name)
    ]
    rules = "rounds = 1\nsamples = 3\nmax_seconds = 1\nwarmup = 0.01\ntimeout = 20\n"
    (result / "all.toml").write_text('name = "all"\n' + rules + "".join(launches))
    return result


@pytest.fixture(scope="module")
def rows(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """The rows of all launches, by name."""
    ran = program(folder, "run", "all.toml", "--no-lock")
    assert ran.returncode == 1, ran.stderr
    (run,) = (folder / "results").iterdir()
    return {row["kernel"]: row for row in csv.DictReader((run / "cases.csv").read_text().splitlines())}


def program(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The program in this folder."""
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "smembench", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )


REFUSED = {
    "accumulate, undeclared": "depends on what it held",
    "last, not reset": "argument 0",
    "negate, undeclared": "--inout",
    "beyond": "wrote outside argument 0",
    "far away": "ILLEGAL_ADDRESS",
    "never ends": "no answer within",
    "torch elsewhere": "",
}


@pytest.mark.untimed
@pytest.mark.parametrize("name", [name for name in LAUNCHES if name not in REFUSED and available(name)])
def test_right_results_are_timed(rows: Mapping[str, Mapping[str, str]], name: str) -> None:
    row = rows[name]
    assert row["status"] == "ok", row["reason"]
    assert row["verified"] == ("false" if name == "empty" else "true")
    assert 0 < float(row["elapsed_ms"]) < 100  # other tests use the GPU at the same time


@pytest.mark.untimed
@pytest.mark.parametrize("name", [name for name in REFUSED if available(name)])
def test_wrong_results_and_faults_are_rows_with_the_reason(rows: Mapping[str, Mapping[str, str]], name: str) -> None:
    assert rows[name]["status"] != "ok"
    assert REFUSED[name] in rows[name]["reason"]
    assert rows[name]["elapsed_ms"] == ""


@pytest.mark.untimed
@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_what_no_graph_holds_is_said(rows: Mapping[str, Mapping[str, str]]) -> None:
    assert "timed by events" in rows["torch waits"]["notes"]
    assert "timed by events" not in rows["torch"]["notes"] + rows["torch in steps"]["notes"]
    assert "timed by events" not in rows["torch through memory"]["notes"], rows["torch through memory"]["notes"]


@pytest.mark.untimed
@pytest.mark.parametrize("kernel", ["k.cu:scale", "k.ptx:scale", "triton_add.py:add", "torch_add.py:add"])
def test_numba_is_imported_for_its_own_kernels_alone(folder: Path, kernel: str) -> None:
    """The worker's modules, as they are when it ends."""
    if kernel.startswith(("triton", "torch")) and not available(kernel.partition("_")[0]):
        pytest.skip("not installed")
    if kernel == "k.ptx:scale":
        from smembench.toolchains.nvcc import compile_file

        (folder / "k.ptx").write_text(compile_file(folder / "k.cu", "scale", "9.0").ptx)
    name = {"k.cu:scale": "scale", "k.ptx:scale": "scale", "triton_add.py:add": "triton"}.get(kernel, "torch")
    _, arg, more = LAUNCHES[name]
    more = more.replace('option = "--maxrregcount=32"\n', "")
    text = LAUNCH.format(kernel=kernel, name="one", arg=arg, more=more)
    (folder / "one.toml").write_text(f'name = "one"\nrounds = 1\nsamples = 3\nmax_seconds = 1\nwarmup = 0\n{text}')
    watch = folder / "watch"
    watch.mkdir(exist_ok=True)
    (watch / "sitecustomize.py").write_text(
        "import os, sys\n_exit = os._exit\n"
        "def leave(code):\n"
        f"    with open({str(folder / 'modules')!r}, 'a') as file:\n"
        "        print('numba' if 'numba.cuda.dispatcher' in sys.modules else 'none', file=file)\n"
        "    _exit(code)\n"
        "os._exit = leave\n"
    )
    (folder / "modules").unlink(missing_ok=True)
    path = os.pathsep.join([str(watch), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, "-m", "smembench", "run", "one.toml", "--no-lock"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert (folder / "modules").read_text().split() == ["none"]


def test_a_kernel_that_became_3_percent_slower_is_reported(folder: Path) -> None:
    source = (
        'extern "C" __global__ void spin(float *out, const float *in, int n)\n{\n'
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    float x = in[i];\n"
        "    for (int turn = 0; turn < TURNS; turn++)\n        x = x * 0.999f + 0.5f;\n    out[i] = x;\n}\n"
    )
    night = folder / "night"
    night.mkdir()
    for turns, code in ((10000, 0), (10000, 0), (10000, 0), (10000, 0), (10300, 3)):
        (night / "spin.cu").write_text(source.replace("TURNS", str(turns)))
        (night / "night.toml").write_text(
            'name = "night"\nrounds = 3\nmax_seconds = 1\nthreshold = 1\ndecide = 60\n[[sweep]]\n'
            'kernel = "spin.cu:spin"\ngrid = "128"\nblock = "128"\n'
            'arg = ["float32[16384]", "float32[16384]", "16384"]\n'
        )
        ran = program(night, "run", "night.toml", "--no-lock", "--compare-to", "last:7")
        assert ran.returncode == code, (turns, ran.stdout, ran.stderr)


@pytest.mark.untimed
@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_what_python_holds_is_timed_and_left_as_it_was(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import torch, smembench\n"
        "one, other = torch.rand(1000, device='cuda'), torch.rand(1000, device='cuda', requires_grad=True)\n"
        "out = torch.zeros(1000, device='cuda')\n"
        "def add(out, one, other):\n    torch.add(one, other.detach(), out=out)\n"
        "before = torch.cuda.current_stream(), one.clone(), other.clone(), torch.is_grad_enabled()\n"
        "few = dict(rounds=1, samples=3, max_seconds=1, warmup=0)\n"
        "found = smembench.time(add, out, one, other, check=lambda out, one, other: one + other, **few)\n"
        "assert found['verified'].all(), found['reason'].tolist()\n"
        "assert (out == 0).all() and torch.equal(one, before[1]) and torch.equal(other, before[2])\n"
        "assert torch.cuda.current_stream() == before[0] and torch.is_grad_enabled() == before[3]\n"
        "half = one.bfloat16()\n"
        "found = smembench.time(add, half.clone(), half, half, check=lambda out, one, other: one + other, **few)\n"
        "assert found['verified'].all(), found['reason'].tolist()\n"
        "print('done')\n"
    )
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, "mine.py"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert ran.stdout.endswith("done\n"), ran.stderr[-2000:]
