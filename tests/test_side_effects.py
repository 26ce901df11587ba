"""The package in somebody else's program: whatever is called, their kernels and every other module are as before.

Each entry point is called in a process of its own, in which users' kernels are compiled before or only afterwards.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from users_kernels import KERNELS, ptx

ROOT = Path(__file__).parents[1]
KEPT = ("smembench", "users_kernels", "test_side_effects", "__main__")
"""Modules that may change: the package's, and those of the test."""
LAZY = {
    ("tempfile", "_name_sequence"),
    *(("cuda.core._linker", name) for name in ("_inited", "_use_nvjitlink_backend", "_nvjitlink_input_types")),
}
"""What a library makes when it is first used."""


def measure_on_the_cpu() -> object:
    import smembench

    return smembench.measure(problem="matmul", n=16, kernel="cpu", device="cpu", max_seconds=0.01).frame.status[0]


def explain_a_kernel() -> object:
    import smembench

    return repr(smembench.explain_kernel("sumShuffled", n=4096, capability="9.0"))


def explain_a_function() -> object:
    import smembench

    for kernel, arguments in KERNELS:
        smembench.explain_function(kernel, grid=2, block=32, args=arguments, capability="9.0")
    return [smembench.conflicts(kernel, grid=2, block=32, args=given, partial=True) for kernel, given in KERNELS[:1]]


def tune_on_the_cpu() -> object:
    import smembench

    return smembench.tune("transpose", device="cpu", n=64, max_seconds=0.01, samples=3).best.problem


def compare_compilers() -> object:
    from smembench.run.config import from_data
    from smembench.studies.compilers import static, sweeps

    config = from_data({"sweep": sweeps("transpose", "copyGmem", device="cuda:0", n=64, block="16x16")})
    return next(pair.ours.registers for pair in static(config, "9.0"))


def lesson(name: str) -> object:
    from smembench.studies.lesson.experiment import load
    from smembench.studies.lesson.run import results

    assert load(name)
    return [result.found.text for result in results(name, "cpu", 1, lambda experiment: None)]


LESSONS = sorted(path.stem for path in (ROOT / "smembench/studies/lesson").glob("*.py"))
LESSONS = [name for name in LESSONS if name not in ("__init__", "experiment", "run")]
ENTRIES: dict[str, Callable[[], object]] = {
    "import": lambda: __import__("smembench"),
    "measure": measure_on_the_cpu,
    "explain_kernel": explain_a_kernel,
    "explain_function and conflicts": explain_a_function,
    "tune": tune_on_the_cpu,
    "compilers": compare_compilers,
    **{f"lesson {name}": partial(lesson, name) for name in LESSONS},
}


def attributes() -> Iterator[tuple[str, str, object]]:
    """Every attribute of the modules that are not the package's."""
    for name, module in [*sys.modules.items()]:
        if module is not None and name.partition(".")[0] not in KEPT:
            yield from ((name, attribute, value) for attribute, value in [*vars(module).items()])


def registered() -> list[int]:
    """How much Numba's registries hold."""
    from numba.cuda.core.imputils import builtin_registry as lowering
    from numba.cuda.typing.templates import builtin_registry as typing

    return [len(each) for each in (typing.functions, typing.attributes, typing.globals, lowering.functions)]


def numbas_own() -> None:
    """Have Numba load its own rules."""
    import numba.cuda

    numba.cuda.compile_ptx(lambda: None, (), cc=(9, 0))


def alone() -> dict[str, str]:
    """What Numba makes of the users' kernels in a process that does not import the package."""
    numbas_own()
    return {kernel.__name__: hashlib.sha256(ptx(kernel).encode()).hexdigest() for kernel, _ in KERNELS}


def before_and_after(entry: str) -> None:
    """Call an entry point; print what changed, and what Numba makes of the users' kernels afterwards."""
    for library in ("pandas", "pydantic", "cuda.core", "scipy.special", "scipy.optimize", "rich.console"):
        import_module(library)  # what another library's import changes is its own affair
    numbas_own()
    held = registered()
    before = {(module, name): value for module, name, value in attributes()}
    ENTRIES[entry]()
    known = {module for module, _ in before}
    lazy = {module for module, _ in before if hasattr(sys.modules[module], "__getattr__")}
    changed = [
        f"{module}.{name}"
        for module, name, value in attributes()
        if before.get((module, name), value if module in lazy or module not in known else None) is not value
        and not isinstance(value, type(sys))  # modules may be imported
        and not name.startswith("__")
        and (module, name) not in LAZY
    ]
    print(json.dumps([changed, [held, registered()], alone()]))


def in_a_process(what: str) -> Any:
    code = f"import test_side_effects as t, json; {what}"
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "CUDA_VISIBLE_DEVICES": "", "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=path, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def of_numba() -> Any:
    try:
        return in_a_process("t.numbas_own(); print(json.dumps(t.alone()))")
    except AssertionError as error:
        pytest.skip(f"needs NVIDIA's compiler libraries: {str(error)[-80:]}")


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_point_changes_no_other_module_and_no_users_kernel(entry: str, of_numba: dict[str, str]) -> None:
    changed, (held, holds), kernels = in_a_process(f"t.before_and_after({entry!r})")
    assert changed == []
    assert holds == held
    assert kernels == of_numba


@pytest.mark.slow
def test_eight_threads_that_explain_compile_and_measure_give_what_one_gives() -> None:
    import smembench
    from users_kernels import clamped

    def conflicts() -> object:
        return smembench.conflicts(clamped, grid=2, block=32, args=("float32[64]",) * 2)

    work: list[Callable[[], object]] = [
        explain_a_kernel,
        measure_on_the_cpu,
        conflicts,
        lambda: re.sub(r"v\d+B", "vB", ptx(clamped)),
    ]
    wanted = [task() for task in work]
    with ThreadPoolExecutor(8) as threads:
        found = [threads.submit(task) for task in work * 4]
        assert [each.result() for each in found] == wanted * 4


def test_numpy_keeps_no_name_that_it_does_not_have() -> None:
    """numba-cuda looks up row_stack when it first compiles, which NumPy 2.5 took away."""
    code = """
import numpy as np
if hasattr(np, "row_stack"):
    del np.row_stack
import smembench
assert "registers per thread" in repr(smembench.explain_kernel("copyGmem", n=64, capability="9.0"))
assert not hasattr(np, "row_stack")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env={"PYTHONPATH": str(ROOT)})


def test_a_warning_that_the_user_wants_is_the_users() -> None:
    code = """
from numba.cuda.core import config
config.CUDA_LOW_OCCUPANCY_WARNINGS = 1
import smembench
smembench.explain_kernel("copyGmem", n=64, capability="9.0")
assert config.CUDA_LOW_OCCUPANCY_WARNINGS == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env={"PYTHONPATH": str(ROOT)})
