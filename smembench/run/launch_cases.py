"""The cases of a sweep of the user's kernels: launches with numbers in place of all sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from smembench.devices.base import GUARD_BYTES
from smembench.kernels.time.problem import NO_DTYPE, PROBLEM, launch_of
from smembench.launches.arguments import in_order_and_named
from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.cuda_file import is_cuda_file
from smembench.launches.dimensions import as_text, check_launch
from smembench.launches.live import is_token
from smembench.launches.sizes import argument, dimensions_of, number
from smembench.launches.tensor_map_argument import TensorMapArgument
from smembench.model.case import Block, Case
from smembench.model.errors import UsageError
from smembench.model.user_launch import UNCHECKED, UserLaunch
from smembench.run.launch_sweep import LaunchSweep

_COMPILERS = {".cu": "cuda", ".ptx": "ptx", ".cubin": "cubin", ".py": "python"}
"""The compiler that a case names, by the suffix of its file; what Python holds is known when it is imported."""
_WITHOUT_NAMES = (".cu", ".ptx", ".cubin")
"""Suffixes of files whose kernels get a grid and a block, and arguments in order alone."""


def launch_cases(sweep: LaunchSweep, device: str) -> Iterator[Case]:
    """The cases on a device, kernels of one size one after another.

    Raises:
        UsageError: for an expression, an argument or dimensions that are none, sizes that change no launch, and a
            constraint that none of them meets.
    """
    _check_names(sweep)
    names = {**sweep.sizes, **sweep.tune}
    left = False
    for values in product(*names.values()):
        sizes = dict(zip(names, values, strict=True))
        if not number(sweep.where, sizes, "--where"):
            continue
        left = True
        for cache, (target, label) in product(sweep.cache, zip(sweep.kernel, sweep.labels, strict=True)):
            yield _case(sweep, Case(PROBLEM.name, label, device, "", 1, sizes.get("n", 1), cache=cache), target, sizes)
    if not left:
        raise UsageError(f"--where {sweep.where!r}: rules out every size; nothing is left to time")


def _check_names(sweep: LaunchSweep) -> None:
    """Check that launches of several sizes differ, and that no kernel is named twice.

    Raises:
        UsageError: for a name that no launch has, and a kernel that is.
    """
    if again := next((target for target in sweep.kernel if sweep.kernel.count(target) > 1), ""):
        raise UsageError(f"{again}: is named twice and would be measured once; name it once")
    texts = " ".join((sweep.grid, sweep.block, sweep.cluster, sweep.shared_bytes, *sweep.arg))
    for name, values in sweep.sizes.items():
        if len(values) > 1 and not re.search(rf"\b{name}\b", texts):
            raise UsageError(f"--sweep {name}: changes no launch; name {name} in --grid, --block, --arg or the like")


def _check_files(sweep: LaunchSweep, target: str) -> None:
    """Check that files are there, and that a kernel which cannot launch itself has a grid and a block.

    Raises:
        UsageError: if not.
    """
    for text in (target, sweep.check):
        path = Path(text.partition(":")[0])
        if text in ("", UNCHECKED) or is_token(text):
            continue
        if path.suffix not in _COMPILERS:
            raise UsageError(f"{text}: write path.cu:name, path.ptx:name, path.cubin:name or path.py:name")
        if not path.is_file():
            raise UsageError(f"{path}: no such file; give path.cu:name, path.ptx:name, path.cubin:name or path.py:name")
    if Path(target.partition(":")[0]).suffix in _WITHOUT_NAMES and not (sweep.grid and sweep.block):
        raise UsageError(f"{target}: give --grid and --block, such as --grid 128x128 --block 32x8")


def _case(sweep: LaunchSweep, blank: Case, target: str, sizes: Mapping[str, int]) -> Case:
    _check_files(sweep, target)
    launch = _launch(sweep, target, sizes)
    arguments, _ = in_order_and_named(launch.arguments)
    return replace(
        blank,
        dtype=_dtype([given for given in arguments if isinstance(given, ArrayArgument)]),
        block=Block(*(*launch.block, 1)[:2]) if 0 < len(launch.block) < 3 else None,
        compiler=_COMPILERS.get(Path(target.partition(":")[0]).suffix, "python"),
        parameters=tuple((name, value) for name, value in sizes.items() if name != "n"),
        launch=launch,
    )


def _launch(sweep: LaunchSweep, target: str, sizes: Mapping[str, int]) -> UserLaunch:
    grid, block, cluster = (
        dimensions_of(text, sizes, name) if text else ()
        for name, text in (("--grid", sweep.grid), ("--block", sweep.block), ("--cluster", sweep.cluster))
    )
    check_launch(grid, block, cluster)
    tuned = [f"{name}={sizes[name]}" for name in sweep.tune]
    macros = is_cuda_file(target)
    texts = tuple(argument(text, sizes) for text in (*sweep.arg, *([] if macros else tuned)))
    arguments, named = in_order_and_named(texts)
    if named and all(Path(kernel.partition(":")[0]).suffix in _WITHOUT_NAMES for kernel in sweep.kernel):
        raise UsageError(
            f"{next(iter(named))}=…: is no option, and {target} takes no argument by name; give arguments in their "
            "order, and macros of a .cu file with --define"
        )
    sizes_of_arrays, resets = [*map(_allocated, arguments)], tuple(map(_reset, sweep.reset))
    counts = {**sizes, **{f"bytes{place}": size for place, size in enumerate(map(_bytes, arguments)) if size}}
    moved = _count(sweep.bytes, counts, "--bytes", 1) if sweep.bytes else sum(map(_bytes, arguments))
    allocated = tuple(size + 2 * GUARD_BYTES for size in sizes_of_arrays if size is not None)
    saved = _saved(sizes_of_arrays, (*sweep.inout, *(name for name, _ in resets)))
    shared, flops = _count(sweep.shared_bytes, sizes, "--shared-bytes"), _count(sweep.flops, counts, "--flops")
    options = (*sweep.option, *(f"-D{definition}" for definition in tuned if macros))
    return UserLaunch(
        *(target, texts, grid, block, cluster, shared, sweep.cooperative, sweep.carveout, options),
        *(sweep.out, sweep.inout, resets, sweep.scratch, sweep.check or UNCHECKED, sweep.rtol, sweep.atol),
        *(allocated, saved, moved, flops),
    )


def _count(text: str, sizes: Mapping[str, int], name: str, least: int = 0) -> int:
    """The value of an expression that is no less than this.

    Raises:
        UsageError: for one that is, and as ``number``.
    """
    value = number(text, sizes, name)
    if value < least:
        raise UsageError(f"{name} {text!r}: is {value}; give {least} or more")
    return value


def _dtype(arrays: Sequence[ArrayArgument]) -> str:
    """The element type of the first array, as tables name it, or ``NO_DTYPE``."""
    return arrays[0].dtype.name.removesuffix("fn") if arrays else NO_DTYPE


def _bytes(value: Argument) -> int:
    """The bytes of an array's elements, of a tensor map its array's; 0 for a number."""
    if isinstance(value, TensorMapArgument):
        return ArrayArgument(value.shape, value.dtype).bytes
    return value.element_bytes if isinstance(value, ArrayArgument) else 0


def _allocated(value: Argument) -> int | None:
    """The bytes of an array's allocation; None for a number."""
    if isinstance(value, TensorMapArgument):
        return _bytes(value)
    return value.bytes if isinstance(value, ArrayArgument) else None


def _saved(sizes_of_arrays: Sequence[int | None], names: Sequence[str]) -> int:
    """The bytes of copies of these arrays; of one by the kernel's name, unknown here, those of the largest array."""
    largest = max((size or 0 for size in sizes_of_arrays), default=0)
    known = dict(enumerate(sizes_of_arrays))
    return sum(known.get(int(name)) or 0 if name.isdecimal() else largest for name in names)


def _reset(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--reset {text!r}: write the argument and what it is filled with, such as 3=0")
    return name.strip(), value.strip()


def sweep_of(case: Case) -> dict[str, object]:
    """The sweep of this case alone, as a config has it."""
    launch = launch_of(case)
    sides = {name: as_text(getattr(launch, name)) for name in ("grid", "block", "cluster")}
    choices = {name: getattr(launch, name) for name in ("cooperative", "carveout", "check", "rtol", "atol")}
    return {
        "problem": case.problem,
        "kernel": launch.target,
        "name": case.kernel,
        "device": case.device,
        "cache": case.cache,
        "sizes": {**({"n": case.n} if case.n > 1 else {}), **dict(case.parameters)},
        "arg": [*launch.arguments],
        "option": [*launch.options],
        "out": [*launch.outputs],
        "inout": [*launch.restored],
        "reset": [f"{name}={value}" for name, value in launch.resets],
        "scratch": [*launch.scratch],
        **{name: str(getattr(launch, name)) for name in ("bytes", "flops", "shared_bytes")},
        **{name: text for name, text in sides.items() if text},
        **{name: value for name, value in choices.items() if value not in (None, False)},
    }
