"""What a run calls of the driver while it times, and what it imports for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_driver.host_code import HostKernel, compile_for_host, port
from fake_driver.process import FEW, FakeDriver, ended
from smembench.model.case import Block, Case

pytestmark = pytest.mark.slow

COPY = ["smembench", "transpose", "--device", "cuda", "--n", "40", "--block", "16x16", *FEW, "--kernel"]
LAUNCH = "cuLaunchKernelEx"
BY_TRITON = """
typedef float T;
constexpr unsigned SIDE = 16;
static void transpose(T *out, const T *in, unsigned nx, unsigned ny)
{
    unsigned ix = blockIdx.x * SIDE + threadIdx.x % SIDE, iy = blockIdx.y * SIDE + threadIdx.x / SIDE;
    if (ix < nx && iy < ny)
        out[ix * ny + iy] = in[iy * nx + ix];
}
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Host forms of copyGmem, and of a transpose by Triton."""
    case = Case("transpose", "copyGmem", "cuda:0", "float32", 40, 40, None, Block(16, 16))
    by_triton = HostKernel("transpose", "no kernel by Numba", BY_TRITON, (256, 1), 2, 2)
    return compile_for_host([port(case), by_triton], tmp_path_factory.mktemp("kernels"))


def captured(log: str) -> set[tuple[str, ...]]:
    """What captures have ahead of a pair of events and between the two, each sequence once, without questions."""
    result = set()
    for capture in log.split("cuStreamBeginCapture\n")[1:]:
        nodes = capture.partition("cuStreamEndCapture\n")[0].replace("cuCtxGetDevice\n", "")
        *parts, behind = nodes.split("cuEventRecordWithFlags\n")
        assert behind == ""
        pairs = zip(parts[::2], parts[1::2], strict=True)
        result |= {(*ahead.split(), "begin", *timed.split(), "end") for ahead, timed in pairs}
    return result


def short(name: str) -> str:
    """A kernel's name without Numba's mangling."""
    return "copy_gmem" if "copy_gmem" in name else name


def test_nothing_but_a_launch_is_between_two_events_and_nothing_but_the_flush_or_a_busy_kernel_ahead_of_them(
    fake_driver: FakeDriver, kernels: Path, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    both = ["--compiler", "numba,nvrtc", "--cache", "warm,cold"]
    ended(fake_driver(*COPY, "copyGmem,memcpy", *both, kernels=kernels, log=log))
    result = {tuple(map(short, item)) for item in captured(log.read_text())}
    timed: list[tuple[str, ...]] = [("begin", LAUNCH, "copy_gmem", "end"), ("begin", LAUNCH, "copyGmem", "end")]
    timed += [("begin", "cuMemcpyAsync", "end")]
    calibration = {(LAUNCH, "busy", "begin", "end"), (LAUNCH, "busy", "begin", LAUNCH, "empty", "end")}
    cold = {(LAUNCH, "read_all", *item) for item in timed}
    behind = {(LAUNCH, "busy", *item) for item in timed}  # as every kernel is until its duration is known
    assert {*cold, *behind, *calibration} <= result <= {*timed, *cold, *behind, *calibration}


@pytest.mark.parametrize(("compiler", "loads"), [("nvrtc", False), ("triton", False), ("numba", True)])
def test_numba_cuda_is_loaded_for_what_numba_compiles_and_for_nothing_else(
    fake_driver: FakeDriver, kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, loads: bool
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # or what was compiled before is read
    if compiler == "triton":
        pytest.importorskip("triton", reason="needs the extra triton")
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")  # every process says on stderr what it imports
    kernel = "copyGmem" if compiler != "triton" else "transposeSmemPad"
    command = (*COPY, f"{kernel},memcpy", "--compiler", compiler, "--csv", "-")
    out, err = ended(fake_driver(*command, kernels=kernels, site=tmp_path))  # a Python that has imported nothing
    modules = [line.rpartition("|")[2].strip() for line in err.splitlines() if line.startswith("import time:")]
    assert modules.count("smembench.devices.cuda_graph") == 1  # the process that measures
    assert any(name.startswith("numba.cuda.") for name in modules) == loads
    assert f"/{compiler}/" in out
