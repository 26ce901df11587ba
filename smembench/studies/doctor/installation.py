"""What is installed, what is missing, and the command that fixes it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass

from smembench.model.case import DEFAULT_COMPILER
from smembench.run.environment import versions
from smembench.toolchains.registry import compilers


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. ``fatal`` if nothing can be measured without it."""

    what: str
    found: str
    ok: bool = True
    fix: str = ""
    fatal: bool = False

    @property
    def mark(self) -> str:
        """``ok``, ``--`` for something missing that is not always needed, ``BAD`` for something broken."""
        return "ok" if self.ok else "BAD" if self.fatal else "--"


def examine() -> list[Check]:
    """Check everything, each item before those that depend on it."""
    return [*_software(), *_gpu(), *_cpu()]


def _software() -> Iterator[Check]:
    found = versions()
    yield Check("Python", platform.python_version())
    yield Check("smembench", found["smembench"])
    numpy_version = tuple(int(part) for part in found["numpy"].split(".")[:2])
    usable = numpy_version < (2, 5)
    yield Check(
        "NumPy",
        found["numpy"],
        usable,
        "" if usable else "pip install 'numpy<2.5'  (numba-cuda 0.30 cannot compile with a newer one)",
        fatal=not usable,
    )
    for library in ("numba", "numba-cuda", "cuda-bindings", "pandas"):
        yield Check(library, found.get(library, "not installed"), library in found, _install(library, found))


def _install(library: str, found: dict[str, str]) -> str:
    return "" if library in found else f"pip install {library}"


def _gpu() -> Iterator[Check]:
    from smembench.kernels.numba_cuda import SIMULATED

    yield Check(
        "CUDA simulator",
        "on: CUDA kernels run as Python and cannot be timed" if SIMULATED else "off",
        not SIMULATED,
        "unset NUMBA_ENABLE_CUDASIM" if SIMULATED else "",
    )
    if SIMULATED:
        return
    from smembench.devices.cuda import gpu_count, why_unusable

    if reason := why_unusable():
        yield Check(
            "GPU",
            reason,
            False,
            "install the NVIDIA driver and check it with nvidia-smi; without a GPU the CPU kernels still run",
        )
        return
    from smembench.devices.select import open_device

    for index in range(gpu_count()):
        info = open_device(f"cuda:{index}").info
        yield Check(
            f"GPU cuda:{index}",
            f"{info.model}, compute capability {info.compute_capability}, {info.memory_bytes / 2**30:.0f} GiB",
        )
        yield Check("driver", f"{info.driver or 'unknown'}, CUDA {info.cuda}")
        has_clock = info.sm_clock_max_mhz is not None
        yield Check(
            "NVML",
            "clocks, temperature and power are recorded" if has_clock else "no telemetry",
            has_clock,
            "" if has_clock else "pip install nvidia-ml-py",
        )
    yield from _compilers()


def _compilers() -> Iterator[Check]:
    from cuda.bindings import driver

    from smembench.kernels.numba_cuda import checked

    major = checked(driver.cuDriverGetVersion()) // 1000
    fix = f"pip install 'smembench[cu{major}]', or install the CUDA {major} toolkit"
    for toolchain in compilers():
        reason = toolchain.unavailable()
        found = reason or f"compiles {toolchain.language} kernels"
        fatal = reason is not None and toolchain.name == DEFAULT_COMPILER
        yield Check(f"compiler {toolchain.name}", found, reason is None, fix if reason else "", fatal=fatal)
    if linker := versions(cuda=True).get("nvjitlink"):
        yield Check("nvJitLink", linker)
    else:
        yield Check("nvJitLink", "not found: Numba's kernels are not optimised at link time", False, fix)


def _cpu() -> Iterator[Check]:
    from smembench.devices.select import open_device

    info = open_device("cpu").info
    yield Check("CPU", f"{info.model}, {info.threads} threads")
    limit = os.environ.get("NUMBA_NUM_THREADS")
    if limit:
        yield Check("NUMBA_NUM_THREADS", f"{limit}: the CPU kernels use at most that many threads")
