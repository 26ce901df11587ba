"""Settings outside the command line that decide the machine code or its time: variables, and Numba's file of them.

Variables that decide neither (caches, messages, where libraries lie, which GPUs are visible) are no settings, nor is a
variable with its usual value. Versions of libraries and identities of devices are recorded by themselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from smembench.model.errors import UsageError
from smembench.model.text import one_line

FILE = ".numba_config.yaml"
"""The file in the working directory that Numba reads; variables override it."""
_DECIDE = re.compile(
    r"(NUMBA|CUDA|CUBLAS|CUBLASLT|CUPY|TORCH|PYTORCH|TRITON|OMP|GOMP|KMP|MKL|OPENBLAS|TBB|NUMPY|NPY)_.*"
    r"|NVIDIA_TF32_OVERRIDE|DISABLE_LLVM_OPT|GLIBC_TUNABLES|LD_PRELOAD"
)
_DECIDE_NOTHING = re.compile(
    r"NUMBA_(CACHE_.*|FUNCTION_CACHE_SIZE|COLOR_SCHEME|DEVELOPER_MODE|FULL_TRACEBACKS|SHOW_HELP|CAPTURED_ERRORS"
    r"|DISABLE_PERFORMANCE_WARNINGS|ALWAYS_WARN_.*|CUDA_LOW_OCCUPANCY_WARNINGS|CUDA_WARN_.*|CUDA_LOG_.*"
    r"|CUDA_VERBOSE_JIT_LOG|DEBUG(?!INFO|_NRT$|_ARRAY_OPT_RUNTIME).*|DUMP_.*|HIGHLIGHT_DUMPS|DIFF_IR|TRACE|CHROME_TRACE"
    r"|PARALLEL_DIAGNOSTICS|GDB_BINARY|LLVM_PASS_TIMINGS|DISABLE_TYPEINFER_FAIL_CACHE)"
    r"|CUDA_(CACHE_.*|VISIBLE_DEVICES|DEVICE_ORDER|HOME|PATH.*|ROOT.*|BIN_.*|INC.*|LIB.*|TOOLKIT.*|.*VERSION|ARCH.*"
    r"|LOG_.*|.*COREDUMP.*)"
    r"|(CUPY|TORCH|TRITON)_.*(CACHE|HOME|DIR|DUMP|LOGS|SHOW).*|OMP_DISPLAY_.*|KMP_(VERSION|SETTINGS)"
)
_USUAL = {
    "NUMBA_OPT": "3",
    "NUMBA_ENABLE_AVX": "",
    "NUMBA_LOOP_VECTORIZE": "1",
    "NUMBA_LLVM_REFPRUNE_PASS": "1",
    "NUMBA_CUDA_ARRAY_INTERFACE_SYNC": "1",
    "NUMBA_THREADING_LAYER": "default",
    "NUMPY_MADVISE_HUGEPAGE": "1",
    "NVIDIA_TF32_OVERRIDE": "",
}
"""Values that change nothing; for most variables that is 0."""
_UNOPTIMISED = {
    "NUMBA_DISABLE_JIT": "DISABLE_JIT",
    "NUMBA_BOUNDSCHECK": "BOUNDSCHECK",
    "NUMBA_ENABLE_PROFILING": "ENABLE_PROFILING",
    "NUMBA_DEBUGINFO": "DEBUGINFO_DEFAULT",
    "NUMBA_CUDA_DEBUGINFO": "CUDA_DEBUGINFO_DEFAULT",
    "NUMBA_DEBUG_NRT": "DEBUG_NRT",
    "NUMBA_DEBUG_ARRAY_OPT_RUNTIME": "DEBUG_ARRAY_OPT_RUNTIME",
}
"""Variables that, set, have kernels interpreted, checked or made for a debugger, and their names in Numba's config."""


def settings() -> dict[str, str]:
    """The settings in force, by variable.

    Raises:
        UsageError: for a ``.numba_config.yaml`` or a number of threads with which Numba cannot be imported.
    """
    given = _in_file() | os.environ
    if re.fullmatch(r"-\d+|0+", number := given.get("NUMBA_NUM_THREADS", "").strip()):
        raise UsageError(f"NUMBA_NUM_THREADS={number}: Numba needs at least one thread; correct it, or unset it")
    threads = str(len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ""
    usual = _USUAL | {"NUMBA_NUM_THREADS": threads}
    return {
        name: value
        for name, value in sorted(given.items())
        if _DECIDE.fullmatch(name)
        and not _DECIDE_NOTHING.fullmatch(name)
        and value.strip() not in ("", usual.get(name, "0"))
    }


def _in_file() -> Mapping[str, str]:
    path = Path(FILE)
    try:
        yaml = import_module("yaml") if path.is_file() else None
    except ImportError:
        return {}  # Numba ignores the file, too
    if yaml is None:
        return {}
    try:
        given = yaml.safe_load(path.read_bytes()) or {}
        return {f"NUMBA_{name.upper()}": str(value) for name, value in given.items()}
    except (OSError, ValueError, AttributeError, yaml.YAMLError) as error:
        raise UsageError(f"{FILE}: Numba cannot read it: {one_line(error)}; mend it, or move it away") from None


def unoptimised() -> dict[str, str]:
    """The settings with which Numba compiles nothing, or for a debugger, as ``NAME=value``, each with its way out.

    Numba itself is asked what it made of variables and file, unless they have none of these: its import takes longer
    than all else of a worker's start.
    """
    if not settings().keys() & {*_UNOPTIMISED, "NUMBA_OPT"}:
        return {}
    from numba.core import config

    in_force = {name: value for name, place in _UNOPTIMISED.items() if (value := getattr(config, place, None))}
    return {
        f"{name}={int(value)}": f"unset {name}" if name in os.environ else f"remove {name[6:].lower()} from {FILE}"
        for name, value in (in_force if config.OPT else in_force | {"NUMBA_OPT": 0}).items()
    }


def check_optimised() -> None:
    """Raise UsageError for a setting with which times mean nothing."""
    for setting, way_out in unoptimised().items():
        raise UsageError(f"{setting}: kernels are not compiled or not optimised, and so not timed; {way_out}")
