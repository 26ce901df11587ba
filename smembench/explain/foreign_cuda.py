"""``numba.cuda`` as a traced kernel sees it that is not the package's, and the kernel with it in place of Numba's."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import BuiltinFunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from smembench.explain.foreign_memory import ForeignRecorder, LocalArray
from smembench.explain.functions import BUILTINS, Cast, following, from_module
from smembench.explain.lockstep import Values
from smembench.explain.trace import ATOMICS, AXES, SHUFFLES
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.rebound import Rebound
from smembench.launches.python_file import plain_function
from smembench.model.errors import UsageError
from smembench.model.hardware import WARP

_VOTES = ("all_sync", "any_sync", "eq_sync", "ballot_sync", "match_any_sync", "match_all_sync")
_SYNCS = ("syncthreads_count", "syncthreads_and", "syncthreads_or")
_BITS = ("popc", "brev", "clz", "ffs", "cbrt", "fma")
_NOTHING = ("threadfence", "threadfence_block", "threadfence_system", "nanosleep")


class _Libdevice:
    """In place of ``cuda.libdevice`` and ``cuda.random``: every function returns what is not known."""

    def __init__(self, recorder: ForeignRecorder, name: str) -> None:
        self._recorder, self._name = recorder, name

    def __getattr__(self, function: str) -> Callable[..., Any]:
        return lambda *values: self._recorder.unknown(f"what {self._name}.{function} returns")


def foreign_cuda(recorder: ForeignRecorder) -> Any:
    """The module that a kernel finds as ``cuda``."""

    def unknown_of(name: str) -> Callable[..., Any]:
        return lambda *values: recorder.unknown(f"what {name} returns")

    def shuffle(mask: Any, value: Any, lane: Any) -> Any:
        return recorder.unknown("what a shuffle returns") if isinstance(value, Values) else value

    def sync_with(name: str) -> Callable[[Any], Any]:
        def sync(predicate: Any) -> Any:
            recorder.barrier()
            return recorder.unknown(f"what {name} returns")

        return sync

    def sides(first: Any, second: Any, dimensions: int) -> Any:
        found = tuple(getattr(first, axis) * getattr(second, axis) for axis in "xyz"[:dimensions])
        return found[0] if dimensions == 1 else found

    def grid(dimensions: int) -> Any:
        corner = sides(fake.blockIdx, fake.blockDim, dimensions)
        own = tuple(getattr(fake.threadIdx, axis) for axis in "xyz"[:dimensions])
        return corner + own[0] if dimensions == 1 else tuple(map(sum, zip(corner, own, strict=True)))

    def update(array: Any, index: Any, *values: Any) -> Any:
        return array.update(index, *values)

    this_grid = SimpleNamespace(sync=recorder.barrier)
    fake: Any = _Cuda(
        **{name: SimpleNamespace() for name in AXES},
        **{name: unknown_of(name) for name in (*_VOTES, *_BITS, "activemask", "lanemask_lt")},
        **{name: sync_with(name) for name in _SYNCS},
        **dict.fromkeys(SHUFFLES, shuffle),
        **dict.fromkeys(_NOTHING, lambda *values: None),
        atomic=SimpleNamespace(**dict.fromkeys((*ATOMICS, "nanmin", "nanmax", "compare_and_swap"), update)),
        cg=SimpleNamespace(this_grid=lambda: this_grid),
        const=SimpleNamespace(array_like=recorder.constant_array),
        libdevice=_Libdevice(recorder, "libdevice"),
        local=SimpleNamespace(array=lambda shape, dtype, alignment=None: LocalArray(shape)),
        selp=following(lambda chosen, one, other: one if chosen else other),
        shared=SimpleNamespace(array=recorder.shared_array),
        syncthreads=recorder.barrier,
        syncwarp=recorder.sync_warp,
        warpsize=WARP,
        grid=grid,
        gridsize=lambda dimensions: sides(fake.gridDim, fake.blockDim, dimensions),
    )
    return fake


class _Cuda(SimpleNamespace):
    @property
    def laneid(self) -> Any:
        own, sides = self.threadIdx, self.blockDim
        return (own.x + sides.x * (own.y + sides.y * own.z)) % WARP

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(cuda, name):
            raise AttributeError(f"numba.cuda has no {name}")
        found = _type(getattr(cuda, name))
        if found is None:
            raise UsageError(f"cuda.{name} is not followed")
        return found


def _type(value: Any) -> Cast | None:
    """What a scalar type of Numba or NumPy is replaced by; None for any other value."""
    if isinstance(value, type) and issubclass(value, np.number | np.bool_):
        return Cast(np.dtype(value))
    if type(value).__module__.partition(".")[0] != "numba":
        return None
    try:
        return Cast(np.dtype(str(value)))
    except TypeError:
        return None


class _Module:
    """A module whose functions and types are replaced where a kernel finds them."""

    def __init__(self, module: ModuleType, replacements: Replacements) -> None:
        self._module, self._replacements = module, replacements

    def __getattr__(self, name: str) -> Any:
        replaced = from_module(self._module, name)
        return self._replacements.of(getattr(self._module, name), name) if replaced is None else replaced


class Replacements:
    """What takes the place of the names that a kernel uses, and of those of the functions that it calls."""

    def __init__(self, recorder: ForeignRecorder, fake: Any) -> None:
        self._recorder, self._fake = recorder, fake
        self._done: dict[int, Any] = {id(cuda): fake}
        self._done |= {id(getattr(cuda, name)): value for name, value in vars(fake).items() if hasattr(cuda, name)}
        if hasattr(cuda, "cg"):  # the simulator has it in kernels alone
            self._done[id(cuda.cg.this_grid)] = fake.cg.this_grid
        self._kept: list[Any] = []  # so that no other object takes its id
        self.function = Rebound(self.of, BUILTINS).function

    def of(self, value: Any, name: str) -> Any:
        """What replaces a value that a kernel finds under a name."""
        if id(value) in self._done:
            return self._done[id(value)]
        self._kept.append(value)
        replaced = self._new(value, name)
        self._done[id(value)] = replaced
        return replaced

    def _new(self, value: Any, name: str) -> Any:
        plain = plain_function(value)
        if plain is not None and plain.__module__ == "numba.cuda.random":
            return getattr(_Libdevice(self._recorder, "random"), name)
        if plain is not None:
            return self.function(plain)
        if isinstance(value, ModuleType):
            return _Module(value, self)
        if isinstance(value, BuiltinFunctionType) and value.__module__ == "math":
            return from_module(math, value.__name__)
        if isinstance(value, np.ufunc):
            return from_module(np, value.__name__)
        if isinstance(value, np.ndarray):
            return self._recorder.given("constant", name, value, 0)
        found = _type(value)
        return value if found is None else found
