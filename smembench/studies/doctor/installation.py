"""Installed and missing parts, with the command that installs a missing one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from smembench.model.install import CUDA, extra
from smembench.run.environment import versions
from smembench.toolchains.cuda_libraries import cuda_libraries
from smembench.toolchains.registry import compilers, default_compiler
from smembench.toolchains.settings import settings, unoptimised


@dataclass(frozen=True, slots=True)
class Check:
    """Result of a check. ``fix`` is for a failed one; ``fatal`` if nothing can be measured without it."""

    what: str
    state: str
    ok: bool = True
    fix: str = ""
    fatal: bool = False

    @property
    def mark(self) -> str:
        """``ok``, ``--`` for something missing that is not always needed, ``BAD`` for something broken."""
        return "ok" if self.ok else "BAD" if self.fatal else "--"


def examine() -> list[Check]:
    """Check everything, each item before those that depend on it."""
    return [*_software(), *_settings(), *_gpu(), *_cpu()]


def _software() -> Iterator[Check]:
    for name, installed in versions().items():
        yield Check(name, installed)
    for toolchain in compilers():
        if not toolchain.installed:
            yield Check(f"compiler {toolchain.name}", "not installed", False, toolchain.install)
    # Without NVIDIA's compiler libraries no kernel is compiled for a GPU, nor explained with its registers.
    for name, library in cuda_libraries().items():
        yield Check(name, library or "not found", bool(library), CUDA)


def _settings() -> Iterator[Check]:
    refused = unoptimised()
    for name, value in settings().items():
        setting = f"{name}={value}"
        if setting not in refused:
            yield Check(setting, "decides the code or its time, so runs record it", False, f"unset {name}")
    for setting, way_out in refused.items():
        yield Check(setting, "kernels are not compiled or not optimised, and not timed", False, way_out, fatal=True)


def _gpu() -> Iterator[Check]:
    from smembench.kernels.numba_cuda import SIMULATED

    state = "on: CUDA kernels run as Python and cannot be timed" if SIMULATED else "off"
    yield Check("CUDA simulator", state, not SIMULATED, "unset NUMBA_ENABLE_CUDASIM")
    if SIMULATED:
        return
    from smembench.devices.cuda_description import gpu_count, why_unusable

    if reason := why_unusable():
        fix = "install the NVIDIA driver and check it with nvidia-smi; without a GPU the CPU kernels still run"
        yield Check("GPU", reason, False, fix)
        return
    from smembench.devices.select import open_device

    for index in range(gpu_count()):
        info = open_device(f"cuda:{index}").info
        memory = f"{info.memory_bytes / 2**30:.0f} GiB"
        yield Check(f"GPU {info.name}", f"{info.model}, compute capability {info.compute_capability}, {memory}")
        yield Check("driver", f"{info.driver or 'unknown'}, CUDA {info.cuda}")
        has_clock = info.sm_clock_max_mhz is not None
        telemetry = "clocks, temperature and power are recorded" if has_clock else "no telemetry"
        yield Check("NVML", telemetry, has_clock, "pip install nvidia-ml-py")
        if has_clock:
            lock = f"sudo nvidia-smi -i {index} --lock-gpu-clocks=MHZ, at most {info.sm_clock_max_mhz}"
            yield Check("clocks", f"for steadier times: {lock}; --reset-gpu-clocks undoes it")
    yield from _compilers()


def _compilers() -> Iterator[Check]:
    from cuda.bindings import driver

    from smembench.kernels.driver import checked

    major = checked(driver.cuDriverGetVersion()) // 1000
    fix = f"{extra(f'cu{major}')}, or install the CUDA {major} toolkit"
    for toolchain in (compiler for compiler in compilers() if compiler.installed):
        reason = toolchain.unavailable()
        state = reason or f"compiles {toolchain.language} kernels"
        fatal = reason is not None and toolchain.name == default_compiler()
        yield Check(f"compiler {toolchain.name}", state, reason is None, fix, fatal=fatal)


def _cpu() -> Iterator[Check]:
    from smembench.devices.select import open_device

    info = open_device("cpu").info
    yield Check("CPU", f"{info.model}, {info.threads} threads")
