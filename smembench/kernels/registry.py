"""The declaration of a kernel, and the list of all kernels.

A kernel is a module anywhere below this package that has a ``KERNEL``, or ``KERNELS`` where one file declares several
that differ by a word. To add a variant, add a file: the plan, the tables, ``smembench list`` and the contract tests
pick it up. Its place in the lesson, which tables follow, is that of its name in the ``LADDER`` of the problem's
``__init__.py``. Files outside the package join through the environment variable ``SMEMBENCH_KERNELS``, a list of paths.
"""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Literal

import smembench.kernels
from smembench.kernels.program import Program
from smembench.model.case import DEFAULT_COMPILER, Block, Case
from smembench.model.errors import UsageError
from smembench.model.problem import ITEMSIZE

EXTRA_KERNELS = "SMEMBENCH_KERNELS"


def _nothing(case: Case) -> int:
    return 0


def _anything(case: Case) -> str | None:
    return None


def unbuilt(case: Case) -> Program:
    """The default of ``build``, which every kernel has to give."""
    raise UsageError(f"kernel {case.kernel}: has no build, which makes its program for a case")


@dataclass(frozen=True, slots=True)
class Kernel:
    """One variant of a problem on one kind of device.

    Attributes:
        problem: name of the problem it solves.
        name: the documents' name, as shown and as ``--kernel`` takes it.
        kind: ``cuda`` or ``cpu``.
        summary: one line for ``smembench list``.
        build: makes the program for a case; its function closes over block, pad, stride, parameters and dtype,
            never over sizes. Sizes decide ``grid``, and may choose between functions, each with a ``variant``.
        computes: which of the problem's references its output is compared with.
        blocks: whether the case has block dimensions.
        results: elements of the output a thread computes, at most, across and down (x, y): a block's share divides
            that many times its threads.
        default_blocks: its default blocks; the problem's if empty.
        pad: None for a kernel without a tile, else whether its tile is padded.
        tile_elements: elements of the shared tile (CUDA) or of one thread's tile buffer (CPU).
        unsupported: why a case cannot be run, or None.
        strided: whether the case may have a stride.
        compiler: the toolchain that compiles it, as ``--compiler`` and the results name it; of a peer, its library.
        peer: whether it is another library's, measured beside those written here.
        standard: whether it runs unless kernels are named; the others are asked for with ``--kernel``.
        ladder: what it changes against the step before, in a few words. The kernels that have one are the steps of
            ``smembench ladder``, in the order of the lesson.
        file: the user's file that declares it; empty for those of the package.
    """

    problem: str
    name: str
    kind: Literal["cuda", "cpu"]
    summary: str = ""
    build: Callable[[Case], Program] = unbuilt
    computes: str = ""
    blocks: bool = True
    results: tuple[int, int] = (1, 1)
    default_blocks: tuple[Block, ...] = ()
    pad: bool | None = None
    tile_elements: Callable[[Case], int] = _nothing
    unsupported: Callable[[Case], str | None] = _anything
    strided: bool = False
    standard: bool = True
    compiler: str = DEFAULT_COMPILER
    peer: bool = False
    ladder: str = ""
    file: str = ""

    @property
    def port(self) -> bool:
        """Whether it is a port: the same kernel, written for another toolchain than the default."""
        return self.compiler != DEFAULT_COMPILER and not self.peer

    def shared_bytes(self, case: Case) -> int:
        """Bytes of the tile for this case."""
        return self.tile_elements(case) * ITEMSIZE[case.dtype]


def kernels(kind: str = "") -> tuple[Kernel, ...]:
    """Every kernel of this package and of the user's files, or of one kind; by problem, kind and place in the lesson.

    Those for the CPU are found without Numba. A file with a mistake is left out: see ``check_files`` and ``mistakes``.

    Raises:
        RuntimeError: when two files of the package declare the same kernel.
    """
    return _kernels(kind, os.environ.get(EXTRA_KERNELS, ""))


@cache
def _kernels(kind: str, paths: str) -> tuple[Kernel, ...]:
    found = (kernel for kernel in (*_of_package(kind), *_of_files(paths)[0]) if kind in ("", kernel.kind))
    return tuple(sorted(found, key=lambda kernel: (kernel.problem, kernel.kind, _place(kernel))))


@cache
def _of_package(kind: str) -> tuple[Kernel, ...]:
    """The kernels below this package; of the kind cpu only, if given, which import Numba in ``build``."""
    found: dict[tuple[str, str, str, str], Kernel] = {}
    for info in pkgutil.walk_packages(smembench.kernels.__path__, "smembench.kernels."):
        if kind == "cpu" and ".cpu." not in info.name:
            continue
        module = import_module(info.name)
        for kernel in (getattr(module, "KERNEL", None), *getattr(module, "KERNELS", ())):
            if not isinstance(kernel, Kernel):
                continue
            if _key(kernel) in found:
                raise RuntimeError(f"{module.__name__} declares {_key(kernel)} a second time")
            found[_key(kernel)] = kernel
    return tuple(found.values())


@cache
def _of_files(paths: str) -> tuple[tuple[Kernel, ...], tuple[str, ...]]:
    """The kernels of the user's files, and what is wrong with those that are left out."""
    found: list[Kernel] = []
    mistakes: list[str] = []
    for path in dict.fromkeys(filter(None, paths.split(os.pathsep))):
        from smembench.kernels.files import declaration, load

        try:
            known = [_key(kernel) for kernel in (*_of_package(""), *found)]
            for kernel in (loaded := load(path)):
                known.append(_key(kernel))
                if known.count(_key(kernel)) > 1:
                    again = f"a second {kernel.problem} kernel {kernel.name} for {kernel.kind} by {kernel.compiler}"
                    raise UsageError(f"{declaration(path)}: {again}")
        except UsageError as error:
            mistakes.append(str(error))
        else:
            found += loaded
    return tuple(found), tuple(mistakes)


def _place(kernel: Kernel) -> int:
    """Its place in the lesson; kernels that are not in their problem's ``LADDER`` come after it, in their order."""
    ladder = ladder_of(kernel.problem)
    return ladder.index(kernel.name) if kernel.name in ladder else len(ladder)


def ladder_of(problem: str) -> tuple[str, ...]:
    """The names in the problem's ``LADDER``."""
    ladder: tuple[str, ...] = getattr(import_module(f"smembench.kernels.{problem}"), "LADDER", ())
    return ladder


def _key(kernel: Kernel) -> tuple[str, str, str, str]:
    return (kernel.problem, kernel.kind, kernel.compiler, kernel.name)


def mistakes() -> tuple[str, ...]:
    """What is wrong with the user's files; those are left out."""
    return _of_files(os.environ.get(EXTRA_KERNELS, ""))[1]


def check_files() -> None:
    """Raise UsageError for a mistake in a file of the user's: for what needs all kernels, or one that is not there."""
    if found := mistakes():
        raise UsageError(found[0])


def of_problem(problem: str, kind: str = "") -> tuple[Kernel, ...]:
    """The problem's kernels on any kind of device, or on one, in the order of the lesson."""
    return tuple(sorted((kernel for kernel in kernels(kind) if kernel.problem == problem), key=_place))


def names(problem: str, kind: str = "") -> tuple[str, ...]:
    """Names of the problem's kernels on any kind of device, or on one, in the order of the lesson."""
    return tuple(dict.fromkeys(kernel.name for kernel in of_problem(problem, kind)))


def peers(problem: str) -> tuple[str, ...]:
    """Names of the problem's kernels that other libraries bring."""
    return tuple(kernel.name for kernel in of_problem(problem) if kernel.peer)


def of_name(problem: str, name: str, kind: str) -> tuple[Kernel, ...]:
    """The kernels of that name on that kind of device, one per compiler."""
    return tuple(k for k in kernels(kind) if (k.problem, k.name) == (problem, name))


def find(problem: str, name: str, kind: str, compiler: str = DEFAULT_COMPILER) -> Kernel | None:
    """The kernel of that name and compiler on that kind of device, or None."""
    wanted = (problem, name, compiler)
    return next((k for k in kernels(kind) if (k.problem, k.name, k.compiler) == wanted), None)


def kernel_of(case: Case) -> Kernel:
    """The kernel of a planned case.

    Raises:
        LookupError: when no file declares it.
    """
    kernel = find(case.problem, case.kernel, case.kind, case.compiler)
    if kernel is None:
        by = "" if case.compiler == DEFAULT_COMPILER else f" by {case.compiler}"
        raise LookupError(f"no {case.kind} kernel {case.kernel!r} for {case.problem}{by}")
    return kernel
