"""What several test files share: made-up measurements, and the program as a process."""

from __future__ import annotations

import csv
import fcntl
import gc
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from fake_driver import libraries
from fake_driver.process import FakeDriver
from programs import numba_kernel
from smembench.kernels.kernel import EXTRA_KERNELS
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import kernel_of
from smembench.model.case import Block, Case
from smembench.model.measurement import Measurement, Sample, Status
from smembench.stats.summary import ci_width
from smembench.store.relations import relate
from smembench.store.schema import Row, row_of
from smembench.toolchains import numba
from smembench.toolchains.kept_code import _version, sources, variant
from smembench.toolchains.settings import settings as settings_of_compilers
from warm import Forked, WarmPython

if TYPE_CHECKING:
    from smembench.devices.cuda import CudaDevice

Program = Callable[..., subprocess.CompletedProcess[str]]
Begin = Callable[..., Forked]
Measured = Callable[..., Measurement]
Rows = Callable[..., list[Row]]
Ptx = Callable[[Case], str]

# These need NUMBA_ENABLE_CUDASIM before numba is imported: test_simulator.py runs them in a process that has it.
collect_ignore_glob = [] if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else ["simulator/test_cuda_*.py"]

# The many processes that tests start, and pytest's own, would otherwise compile every module anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Compilers leave so much garbage that looking for it as often as Python usually does takes a quarter of their time.
gc.set_threshold(20_000, 10, 20)

ROOT = Path(__file__).parent.parent
DOCUMENTS = ROOT / "results/reference/20261129T121757Z-documents"
NIGHTLY = ROOT / "results/reference/20261201T124959Z-nightly"
QUICK = ("--samples", 3, "--rounds", 1, "--precision", 90, "--max-seconds", 0.2, "--warmup", 0)
"""Options of the shortest run."""
BLOCK = Block(32, 32)
AN_HOUR = 3600
"""Seconds: longer than another run of the tests in this folder goes on without compiling."""
LONG = ("test_cuda_kernels_in_the_simulator", "test_the_wheel_runs_every_command_of_readme")
"""Tests that take half a minute and more."""
SIMULATED_PART = "SMEMBENCH_TESTS_SIMULATED_PART"
"""The variable that says which of how many parts of its tests a process of the simulator has, such as 0/3."""

_SMALL = Case("transpose", "copyGmem", "cuda:0", "float32", 8, 8, None, BLOCK)
"""What any compiler can compile, if it is there."""

settings.register_profile("smembench", deadline=None)  # files are synced to disk, however long that takes
settings.load_profile("smembench")


def heed_ctrl_c() -> None:
    """Before a process that takes Ctrl-C, though whoever started the tests may ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def held_locks() -> set[str]:
    """The locks of GPUs that any process of this host holds."""
    return {
        line.rpartition(" ")[2] for line in Path("/proc/net/unix").read_text().splitlines() if "@smembench-" in line
    }


def records(text: str) -> list[dict[str, str]]:
    """The rows of a CSV file by column."""
    return list(csv.DictReader(io.StringIO(text)))


def assert_failed(rows: Mapping[str, Mapping[str, str]], expected: Mapping[str, tuple[str, str]]) -> None:
    """Each of these kernels has its status and its reason in its row, and no figure."""
    for kernel, (status, reason) in expected.items():
        assert rows[kernel]["status"] == status
        assert reason in rows[kernel]["reason"]
        assert rows[kernel]["elapsed_ms"] == rows[kernel]["effective_gb_s"] == ""


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: tests of what hangs, is killed or comes late wait more than they compute."""
    return 1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The simulator's processes and README's commands begin first: they work long, and others would wait at the end.

    Each process of the simulator has one test in so many, from its own on, so that none is left out and no part is much
    longer.
    """
    if part := os.environ.get(SIMULATED_PART):
        first, parts = map(int, part.split("/"))
        config.hook.pytest_deselected(items=[item for i, item in enumerate(items) if i % parts != first])
        items[:] = items[first::parts]
    items.sort(key=lambda item: not item.name.startswith(LONG))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test that times something has the GPU to itself, fixtures included; ``untimed`` ones share it.

    Run the two apart, as CONTRIBUTING says: in one run with several processes they wait for each other.
    """
    if item.get_closest_marker("gpu") is None:
        return (yield)
    shared = item.get_closest_marker("untimed") is not None
    with (Path(tempfile.gettempdir()) / f"smembench-gpu-tests-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The salt of anonymous runs is not the user's, nor is the machine code that is kept: all workers' together."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    os.environ["XDG_CACHE_HOME"] = str(_shared(tmp_path_factory) / "cache")


def _shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this run of the tests, in which each worker of pytest-xdist has one."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def _warm(_own_state: None) -> Generator[tuple[WarmPython, dict[str, str]]]:
    """The Python that forks for commands, and their environment: without a GPU, in 80 columns."""
    hidden = {"NUMBA_ENABLE_CUDASIM", "PYTHONIOENCODING", "FORCE_COLOR"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    env = kept | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "COLUMNS": "80"}
    warm = WarmPython(env)
    yield warm, env
    warm.close()


@pytest.fixture(scope="session")
def program(_warm: tuple[WarmPython, dict[str, str]]) -> Program:
    """Run ``smembench`` with these arguments as a user would, on a machine without a GPU, in 80 columns.

    In an environment that imports ask for, a Python of its own is started for it.
    """
    warm, env = _warm

    def run(*arguments: object, cwd: Path = ROOT, **variables: object) -> subprocess.CompletedProcess[str]:
        words = list(map(str, arguments))
        environment = {name: str(value) for name, value in variables.items()}
        if environment.keys() <= {"PATH", "XDG_STATE_HOME", "PYTHONIOENCODING", EXTRA_KERNELS}:
            return warm.run(words, cwd, env | environment)
        return subprocess.run(
            [sys.executable, "-m", "smembench", *words],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            cwd=cwd,
            env=env | environment,
        )

    return run


@pytest.fixture(scope="session")
def begin(_warm: tuple[WarmPython, dict[str, str]]) -> Begin:
    """Begin ``smembench`` with these arguments in a session of its own, as a terminal does; it is to be cut off.

    With ``deaf`` it ignores Ctrl-C.
    """
    warm, env = _warm

    def start(*arguments: object, deaf: bool = False, **variables: object) -> Forked:
        environment = env | {name: str(value) for name, value in variables.items()}
        return warm.start(list(map(str, arguments)), ROOT, environment, session=True, deaf=deaf)

    return start


@pytest.fixture(scope="session")
def gpu() -> CudaDevice:
    """Opened once per process: it keeps what is compiled."""
    from smembench.devices.cuda import CudaDevice

    return CudaDevice()


@pytest.fixture(scope="session")
def fake_driver(_own_state: None, tmp_path_factory: pytest.TempPathFactory) -> Generator[FakeDriver]:
    """Run Python with these arguments on the fake driver, with its settings by name, and a folder before its path.

    Any module but ``smembench``, and a folder, ask for a Python of its own.
    """
    if reason := libraries.why_not():
        pytest.skip(reason)
    folder, built = tmp_path_factory.mktemp("driver"), _shared(tmp_path_factory) / "libraries"
    built.mkdir(exist_ok=True)
    with built.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not any(built.iterdir()):
            libraries.build(built)
    shutil.copytree(built, folder, symlinks=True, dirs_exist_ok=True)
    paths = os.pathsep.join([str(ROOT), str(ROOT / ".ci")])

    def environment(site: Path = ROOT, **settings: object) -> dict[str, str]:
        path = f"{site}{os.pathsep}{paths}"
        return libraries.environment(folder, **settings) | {"PYTHONPATH": path, "COLUMNS": "200"}

    warm = WarmPython(environment())

    def start(*arguments: object, **settings: Any) -> subprocess.Popen[str] | Forked:
        module, *words = map(str, arguments)
        env = environment(**settings)
        if module == "smembench" and "site" not in settings:
            return warm.start(words, ROOT, env)
        return subprocess.Popen(
            [sys.executable, "-m", module, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=env,
        )

    yield start
    warm.close()


@pytest.fixture(scope="session")
def measured() -> Measured:
    """Make a measurement of a kernel from elapsed times; without times it failed."""

    def make(
        kernel: str,
        elapsed_ms: Sequence[float] = (),
        *,
        problem: str = "transpose",
        device: str = "cuda:0",
        n: int = 4096,
        block: Block | None = BLOCK,
        pad: int | None = None,
        cache: str = "warm",
    ) -> Measurement:
        contract = PROBLEMS[problem]
        k = n if "k" in {axis.name for axis in contract.sizes} else None
        case = Case(problem, kernel, device, "float32", n, n, k, block, pad, cache)
        return Measurement(
            case=case,
            status=Status.OK if elapsed_ms else Status.FAILED,
            started_at_utc="2026-01-02T03:04:05+00:00",
            bytes_moved=contract.bytes_moved(case),
            flops=contract.flops(case),
            shared_bytes=0,
            reason="" if elapsed_ms else "LaunchError: out of luck",
            verified=bool(elapsed_ms),
            rounds=3,
            ci_width=ci_width(elapsed_ms) if elapsed_ms else None,
            samples=tuple(Sample(0, index, value) for index, value in enumerate(elapsed_ms)),
        )

    return make


@pytest.fixture(scope="session")
def rows(measured: Measured) -> Rows:
    """Make the rows of one run from kernels and their elapsed times."""

    def make(times: Mapping[str, Sequence[float]], **case: object) -> list[Row]:
        measurements = [measured(kernel, elapsed_ms, **case) for kernel, elapsed_ms in times.items()]
        return [row_of("run", measurement, relate(measurements)) for measurement in measurements]

    return make


def _kept_between_runs(config: pytest.Config, otherwise: Path) -> Path:
    """A folder in pytest's cache for what these sources and compilers make; without a cache another."""
    if (cache := getattr(config, "cache", None)) is None:
        return otherwise
    made_by = [*map(_version, numba.TOOLCHAIN.packages), numba.TOOLCHAIN.libraries()]
    folder = cache.mkdir("nvvm") / sha256(repr((sys.version, sources(), made_by)).encode()).hexdigest()
    for other in folder.parent.iterdir():
        with suppress(FileNotFoundError):  # another worker removed it
            if other != folder and other.stat().st_mtime < time() - AN_HOUR:
                shutil.rmtree(other, ignore_errors=True)
    return Path(folder)


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """What NVVM makes of a variant of the package's kernels is kept for all tests, all workers and later runs."""
    really, folder = numba.by_nvvm, _kept_between_runs(request.config, _shared(tmp_path_factory) / "nvvm")
    folder.mkdir(exist_ok=True)

    def once(case: Case, program: NumbaKernel, capability: str, *, by_llvm: bool = False) -> bytes:
        if by_llvm or kernel_of(case).file:
            return really(case, program, capability, by_llvm=by_llvm)
        decides = (variant(case, program, capability), settings_of_compilers())
        path = folder / sha256(repr(decides).encode()).hexdigest()
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # or two workers would compile it at the same time
            if not path.exists():
                whole = path.with_suffix(".new")  # a killed run leaves no part of it
                whole.write_bytes(really(case, program, capability))
                whole.rename(path)
        return path.read_bytes()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba, "by_nvvm", once)
        yield


@pytest.fixture(scope="session")
def by_nvvm(_compiled_once: None) -> Callable[[Case], bytes]:
    """What NVVM makes of a CUDA case for compute capability 9.0; skips where it is not there."""
    try:
        numba.by_nvvm(_SMALL, numba_kernel(_SMALL), "9.0")
    except Exception as error:
        pytest.skip(f"no machine code without NVIDIA's compiler libraries: {error}")
    return lambda case: numba.by_nvvm(case, numba_kernel(case), "9.0")


@pytest.fixture(scope="session")
def ptx(by_nvvm: Callable[[Case], bytes]) -> Ptx:
    """PTX for compute capability 9.0 of a CUDA case, as optimised for a launch."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    def optimised(case: Case) -> str:
        code = by_nvvm(case)
        if not numba_kernel(case).constant:
            options = LinkerOptions(arch="sm_90", link_time_optimization=True, ptx=True)
            code = bytes(Linker(ObjectCode.from_ltoir(code), options=options).link("ptx").code)
        return code.decode()

    try:
        optimised(_SMALL)
    except Exception as error:
        pytest.skip(f"no PTX without nvJitLink: {error}")
    return optimised
