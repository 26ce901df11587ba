"""The list of all kernels.

A kernel is a module anywhere below this package that has a ``KERNEL``, or ``KERNELS`` where one file declares several
that differ by a word. To add a variant, add a file: the plan, the tables, ``smembench list`` and the contract tests
pick it up; in Numba's dialect it is there once per engine (``ENGINES``). Its place in the lesson, which tables follow,
is that of its name in the ``LADDER`` of the problem's ``__init__.py``. Files outside the package join through the
environment variable ``SMEMBENCH_KERNELS``, a list of paths.
"""

from __future__ import annotations

import os
import pkgutil
from dataclasses import replace
from functools import cache
from importlib import import_module

import smembench.kernels
from smembench.kernels.files import declaration, load
from smembench.kernels.kernel import EXTRA_KERNELS, Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import DEFAULT_COMPILER, ENGINES, Case
from smembench.model.errors import UsageError


def kernels(kind: str = "") -> tuple[Kernel, ...]:
    """Every kernel of this package and of the user's files, or of one kind; by problem, kind and place in the lesson.

    Those for the CPU are found without Numba. A file with a mistake is left out: see ``check_files`` and ``mistakes``.

    Raises:
        RuntimeError: when two files of the package declare the same kernel.
    """
    return _kernels(kind, os.environ.get(EXTRA_KERNELS, ""))


@cache
def _kernels(kind: str, paths: str) -> tuple[Kernel, ...]:
    declared = (kernel for kernel in (*_of_package(kind), *_of_files(paths)[0]) if kind in ("", kernel.kind))
    every = (one for kernel in declared for one in (kernel, *_by_other_engines(kernel)))
    return tuple(sorted(every, key=lambda kernel: (kernel.problem, kernel.kind, _place(kernel))))


@cache
def _by_other_engines(kernel: Kernel) -> tuple[Kernel, ...]:
    """The same kernel by the other engines of Numba's dialect, if it is written in that."""
    own = kernel.kind == "cuda" and kernel.compiler == DEFAULT_COMPILER and not (kernel.peer or kernel.library)
    return tuple(replace(kernel, compiler=engine) for engine in ENGINES if own and engine != kernel.compiler)


@cache
def _of_package(kind: str) -> tuple[Kernel, ...]:
    """The kernels below this package; of the kind cpu only, if given, which import Numba in ``build``."""
    by_key: dict[tuple[str, str, str, str], Kernel] = {}
    for info in pkgutil.walk_packages(smembench.kernels.__path__, "smembench.kernels."):
        if kind == "cpu" and "cpu" not in info.name.split("."):
            continue
        module = import_module(info.name)
        for kernel in (getattr(module, "KERNEL", None), *getattr(module, "KERNELS", ())):
            if not isinstance(kernel, Kernel):
                continue
            if _key(kernel) in by_key:
                raise RuntimeError(f"{module.__name__} declares {_key(kernel)} a second time")
            by_key[_key(kernel)] = kernel
    return tuple(by_key.values())


@cache
def _of_files(paths: str) -> tuple[tuple[Kernel, ...], tuple[str, ...]]:
    """The kernels of the user's files, and what is wrong with those that are left out."""
    extra: list[Kernel] = []
    mistakes: list[str] = []
    for path in dict.fromkeys(filter(None, paths.split(os.pathsep))):
        try:
            known = [_key(kernel) for kernel in (*_of_package(""), *extra)]
            for kernel in (loaded := load(path)):
                known.append(_key(kernel))
                if known.count(_key(kernel)) > 1:
                    again = f"a second {kernel.problem} kernel {kernel.name} for {kernel.kind} by {kernel.compiler}"
                    raise UsageError(f"{declaration(path)}: {again}")
        except UsageError as error:
            mistakes.append(str(error))
        else:
            extra += loaded
    return tuple(extra), tuple(mistakes)


def _place(kernel: Kernel) -> int:
    """A kernel's place in the lesson; those not in their problem's ``LADDER`` come after it, in their order."""
    ladder = ladder_of(kernel.problem)
    return ladder.index(kernel.name) if kernel.name in ladder else len(ladder)


@cache
def ladder_of(problem: str) -> tuple[str, ...]:
    """The names in the problem's ``LADDER``."""
    ladder: tuple[str, ...] = getattr(import_module(f"smembench.kernels.{problem}"), "LADDER", ())
    return ladder


def _key(kernel: Kernel) -> tuple[str, str, str, str]:
    return (kernel.problem, kernel.kind, kernel.compiler, kernel.name)


def mistakes() -> tuple[str, ...]:
    """The mistakes in the user's files, which are left out."""
    return _of_files(os.environ.get(EXTRA_KERNELS, ""))[1]


def check_files() -> None:
    """Raise UsageError for a mistake in a file of the user's: for what needs all kernels, or one that is not there."""
    if wrong := mistakes():
        raise UsageError(wrong[0])


def of_problem(problem: str, kind: str = "") -> tuple[Kernel, ...]:
    """The problem's kernels on any kind of device, or on one, in the order of the lesson."""
    return _of_problem(problem, kind, os.environ.get(EXTRA_KERNELS, ""))


@cache
def _of_problem(problem: str, kind: str, paths: str) -> tuple[Kernel, ...]:
    return tuple(sorted((kernel for kernel in _kernels(kind, paths) if kernel.problem == problem), key=_place))


def names(problem: str, kind: str = "") -> tuple[str, ...]:
    """Names of the problem's kernels on any kind of device, or on one, in the order of the lesson."""
    return tuple(dict.fromkeys(kernel.name for kernel in of_problem(problem, kind)))


def peers(problem: str) -> tuple[str, ...]:
    """Names of the problem's kernels that other libraries bring."""
    return tuple(kernel.name for kernel in of_problem(problem) if kernel.peer)


def solves(kernel: Kernel) -> bool:
    """True if a kernel solves its problem: copyGmem, which only bounds it, does not."""
    naive = PROBLEMS[kernel.problem].naive_kernel
    return kernel.computes in {k.computes for k in of_problem(kernel.problem) if k.name == naive}


def of_name(problem: str, name: str, kind: str) -> tuple[Kernel, ...]:
    """The kernels of that name on that kind of device, one per compiler."""
    return tuple(k for k in kernels(kind) if (k.problem, k.name) == (problem, name))


def find(problem: str, name: str, kind: str, compiler: str = DEFAULT_COMPILER) -> Kernel | None:
    """The kernel of that name and compiler on that kind of device, or None."""
    wanted = (problem, name, compiler)
    return next((k for k in kernels(kind) if (k.problem, k.name, k.compiler) == wanted), None)


def kernel_of(case: Case) -> Kernel:
    """The kernel of a planned case; of a launch of the user's one that says no more than the case.

    Raises:
        LookupError: when no file declares it.
    """
    if case.launch is not None:
        return Kernel(case.problem, case.kernel, "cuda", blocks=False, compiler=case.compiler)
    kernel = find(case.problem, case.kernel, case.kind, case.compiler)
    if kernel is None:
        by = "" if case.compiler == DEFAULT_COMPILER else f" by {case.compiler}"
        raise LookupError(f"no {case.kind} kernel {case.kernel!r} for {case.problem}{by}")
    return kernel
