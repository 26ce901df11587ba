"""The package in somebody else's program: whatever is called, their kernels and every other module are as before.

Each entry point is called in a process of its own, in which users' kernels are compiled before or only afterwards.
Those processes are forked from one that has imported the libraries.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from users_kernels import KERNELS, ptx

ROOT = Path(__file__).parents[1]
KEPT = ("smembench", "users_kernels", "test_side_effects", "__main__")
"""Modules that may change: the package's, and those of the test."""
LAZY = {
    ("tempfile", "_name_sequence"),
    ("pkgutil", "_NAME_PATTERN"),
    *(("cuda.core._linker", name) for name in ("_inited", "_use_nvjitlink_backend", "_nvjitlink_input_types")),
}
"""What a library makes when it is first used."""
END = "-- answered --"
FEW = os.environ.get("SMEMBENCH_CAMPAIGN", "1") == "1"
"""Whether entry points share a process; tests/campaign.py imports the package, which the server here must not."""


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

    return smembench.tune("matmul", kernel="cpu", device="cpu", n=16, max_seconds=0.01, samples=3).best.problem


def compare_compilers() -> object:
    from smembench.run.config import from_data
    from smembench.studies.compilers import static, sweeps

    config = from_data({"sweep": sweeps("transpose", "copyGmem", device="cuda:0", n=64, block="16x16")})
    return next(pair.ours.registers for pair in static(config, "9.0"))


def lesson(name: str) -> object:
    """Of the experiments with a process of their own only one lesson's first is run: the others start as it does."""
    from smembench.studies.lesson import run
    from smembench.studies.lesson.experiment import Observation

    isolated, outcome = run.isolated, [] if name == "barrier" else [Observation("not run", None)]

    def first(*which: Any) -> Any:
        outcome.extend([] if outcome else [isolated(*which)])
        return outcome[0]

    with patch.object(run, "isolated", first):
        return [result.observation.text for result in run.results(name, "cpu", 1, lambda experiment: None)]


def solve_an_exercise() -> object:
    from smembench.studies.solve.exercises import EXERCISES
    from smembench.studies.solve.grade import graded

    return graded(EXERCISES["race"], EXERCISES["race"].solution).solved


LESSONS = sorted(path.stem for path in (ROOT / "smembench/studies/lesson").glob("*.py"))
LESSONS = [name for name in LESSONS if name not in ("__init__", "experiment", "run")]
ENTRIES: dict[str, Callable[[], object]] = {
    "import": lambda: __import__("smembench"),
    "measure": measure_on_the_cpu,
    "explain_kernel": explain_a_kernel,
    "explain_function and conflicts": explain_a_function,
    "tune": tune_on_the_cpu,
    "compilers": compare_compilers,
    "lesson solve": solve_an_exercise,
    **{f"lesson {name}": partial(lesson, name) for name in LESSONS},
}
TOGETHER = (
    ("import", "measure", "explain_kernel", "explain_function and conflicts"),
    ("tune", "compilers"),
    tuple(ENTRIES)[6:],
)
"""Entry points that one process calls one after another: what it takes to compile the users' kernels is taken once."""


def attributes() -> Iterator[tuple[str, str, object]]:
    """Every attribute of the modules that are not the package's."""
    for name, module in [*sys.modules.items()]:
        if module is not None and name.partition(".")[0] not in KEPT:
            yield from ((name, attribute, value) for attribute, value in [*vars(module).items()])


def registered() -> list[int]:
    """How much Numba's registries hold."""
    from numba.cuda.core.imputils import builtin_registry as lowering
    from numba.cuda.typing.templates import builtin_registry as typing

    return [len(item) for item in (typing.functions, typing.attributes, typing.globals, lowering.functions)]


def numbas_own() -> None:
    """Have Numba load its own rules."""
    import numba.cuda

    numba.cuda.compile_ptx(lambda: None, (), cc=(9, 0))


def alone() -> dict[str, str]:
    """What Numba makes of the users' kernels, in ``of_numba`` in a process that does not import the package."""
    return {kernel.__name__: hashlib.sha256(ptx(kernel).encode()).hexdigest() for kernel, _ in KERNELS}


def changed_by(entry: str) -> list[str]:
    """Call an entry point: what changed."""
    before = {(module, name): value for module, name, value in attributes()}
    ENTRIES[entry]()
    known = {module for module, _ in before}
    lazy = {module for module, _ in before if hasattr(sys.modules[module], "__getattr__")}
    return [
        f"{entry}: {module}.{name}"
        for module, name, value in attributes()
        if before.get((module, name), value if module in lazy or module not in known else None) is not value
        and not isinstance(value, type(sys))  # modules may be imported
        and not name.startswith("__")
        and (module, name) not in LAZY
    ]


def before_and_after(entries: Sequence[str]) -> object:
    """Call entry points: what each changed, and what Numba makes of the users' kernels after the last."""
    holds = {"": registered()}
    changed = []
    for entry in entries:
        changed += changed_by(entry)
        holds[entry] = registered()
    return [changed, holds, alone()]


def serve() -> None:
    """Answer each line in a process of its own: what an entry point changes, or what Numba makes without any."""
    for library in ("pandas", "pydantic", "cuda.core", "rich.console"):
        import_module(library)  # what another library's import changes is its own affair
    with suppress(Exception):  # without NVIDIA's libraries the first answer says why
        numbas_own()
    assert "smembench" not in sys.modules
    for line in sys.stdin:
        if os.fork() == 0:
            signal.alarm(300)
            entries = json.loads(line)
            try:
                answer = before_and_after(entries) if entries else alone()
            except BaseException:
                answer = traceback.format_exc()
            print("\n" + json.dumps(answer), flush=True)
            os._exit(0)
        os.wait()
        print(END, flush=True)


Ask = Callable[[Sequence[str]], Any]


@pytest.fixture(scope="module")
def in_a_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """With a cache that is empty at first, so that entry points compile."""
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "CUDA_VISIBLE_DEVICES": "", "PATH": "/usr/bin:/bin"}
    path["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    server = subprocess.Popen(
        [sys.executable, "-c", "import test_side_effects as t; t.serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=path,
    )

    def ask(entries: Sequence[str]) -> Any:
        assert server.stdin is not None
        assert server.stdout is not None
        print(json.dumps(entries), file=server.stdin, flush=True)
        lines = [*takewhile(lambda line: line != f"{END}\n", server.stdout)]
        answer = json.loads(lines[-1]) if lines else "its process ended"
        assert not isinstance(answer, str), answer
        return answer

    yield ask
    server.communicate()


@pytest.fixture(scope="module")
def of_numba(in_a_process: Ask) -> Any:
    try:
        return in_a_process([])
    except AssertionError as error:
        pytest.skip(f"needs NVIDIA's compiler libraries: {str(error)[-80:]}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "entries", TOGETHER if FEW else [(entry,) for entry in ENTRIES], ids=lambda entries: ", ".join(entries)
)
def test_an_entry_point_changes_no_other_module_and_no_users_kernel(
    entries: Sequence[str], in_a_process: Ask, of_numba: dict[str, str]
) -> None:
    changed, holds, kernels = in_a_process(entries)
    assert changed == []
    assert holds == dict.fromkeys(["", *entries], holds[""])
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
        outcome = [threads.submit(task) for task in work * 4]
        assert [item.result() for item in outcome] == wanted * 4


def test_numpy_keeps_no_name_that_it_does_not_have(tmp_path: Path) -> None:
    """numba-cuda looks up row_stack when it first compiles, which NumPy 2.5 took away."""
    code = """
import numpy as np
if hasattr(np, "row_stack"):
    del np.row_stack
import smembench
assert "registers per thread" in repr(smembench.explain_kernel("copyGmem", n=64, capability="9.0"))
assert not hasattr(np, "row_stack")
"""
    env = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}  # or nothing is compiled
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env=env)


def test_a_warning_that_the_user_wants_is_the_users(tmp_path: Path) -> None:
    code = """
from numba.cuda.core import config
config.CUDA_LOW_OCCUPANCY_WARNINGS = 1
import smembench
smembench.explain_kernel("copyGmem", n=64, capability="9.0")
assert config.CUDA_LOW_OCCUPANCY_WARNINGS == 1
"""
    env = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}  # or nothing is compiled
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env=env)


def test_the_users_random_numbers_are_those_without_a_measurement(tmp_path: Path) -> None:
    code = """
import random
random.seed(1)
state = random.getstate()
import smembench
result = smembench.measure(problem="transpose", n=16, kernel="naiveGmem", device="cpu", max_seconds=0.01)
assert "naiveGmem" in repr(result)
assert random.getstate() == state
"""
    env = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env=env)
