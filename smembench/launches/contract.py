"""The contract of a user's launch: inputs, reference, check."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smembench.kernels.time.problem import Time, TimeTexts, launch_of
from smembench.launches.arguments import in_order_and_named, share_memory
from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.dimensions import as_text
from smembench.launches.library_arrays import on_host
from smembench.launches.live import is_token, name_of, value_of
from smembench.launches.python_file import callable_in, is_kernel
from smembench.launches.tensor_map_argument import TensorMapArgument
from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.problem import Verification
from smembench.model.text import number_of, one_line
from smembench.model.user_launch import UNCHECKED

Outputs = Mapping[int, NDArray[Any]]
"""Arrays by their place among the arguments."""
_LARGEST_INTEGER = 100
"""Random integers lie below this, in any type."""
_ACCUMULATED = np.finfo(np.float32).eps
"""Sums of shorter types are usually accumulated in float32."""


class Expected(NamedTuple):
    """Results of a reference in the order of the outputs, or None; its arguments after the call; what it wrote."""

    returned: Sequence[NDArray[Any]] | None
    arguments: Outputs
    written: Collection[int] = ()


class Contract(Time):
    """The contract of one launch, which needs no GPU. Its arrays are those among the arguments, in their order."""

    def __init__(self, case: Case) -> None:
        super().__init__(TimeTexts())
        self.launch = launch_of(case)
        self.arguments, self.named = in_order_and_named(self.launch.arguments)
        # Nothing is checked against itself.
        self.checks = self.launch.check not in (UNCHECKED, self.launch.target)
        every = ((place, array_of(argument)) for place, argument in enumerate(self.arguments))
        self.placed = {place: array for place, array in every if array is not None}
        # By the kernel's names: what each launch finds where it is reset, and what is only worked in.
        self.filled: dict[int, NDArray[Any]] = {}
        self.scratch: set[int] = set()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for readers of its times."""
        notes = [] if self.checks else ["not checked: give --check path.py:function"]
        if self.launch.check == self.launch.target:
            notes = ["the kernel that the others are checked against"]
        if any(array.data is not None for array in self.placed.values()):
            notes.append("the same data in every round")
        tokens = [text for text in self.launch.arguments if is_token(text)]
        if share_memory(map(value_of, tokens)):
            notes.append("arrays that share memory lie apart here")
        return tuple(notes)

    def input_name(self, number: int) -> str:
        """``argument 1``, by the number of the array among all arrays."""
        return f"argument {[*self.placed][number]}"

    def inputs(self, case: Case, seed: int) -> tuple[NDArray[Any], ...]:
        """The contents of all arrays: data that was given, or else random numbers from this seed.

        Floats are uniform in [-1, 1), integers in [0, 100).
        """
        generator = np.random.default_rng(seed)
        return tuple(_content(array, generator) for array in self.placed.values())

    def reference(self, case: Case, inputs: tuple[NDArray[Any], ...], computes: str) -> Expected:
        """The results of the function of ``--check`` on copies of the arguments, NumPy's arrays and Python's numbers.

        Raises:
            UsageError: for a function that is not found or fails.
        """
        given = {**dict(zip(self.placed, inputs, strict=True)), **self.filled}
        arrays = {place: array.copy() for place, array in given.items()}
        values = [arrays.get(place, value) for place, value in enumerate(self.arguments)]
        check = self.launch.check
        function = value_of(check) if is_token(check) else callable_in(check)
        if not callable(function):
            many = [function] if hasattr(function, "shape") else function
            return Expected([on_host(array) for array in many], arrays)
        try:
            returned = function(*values, **_taken(function, self.named))
        except (Exception, SystemExit) as error:
            raise UsageError(f"--check {self._reference_name}: {one_line(error)}") from None
        if returned is None:
            return Expected(None, arrays, [place for place in arrays if not _same_bytes(arrays[place], given[place])])
        many = returned if isinstance(returned, (tuple, list)) else (returned,)
        return Expected([on_host(array) for array in many], arrays)

    @property
    def _reference_name(self) -> str:
        """The reference as it was given; of a Python object without the token's number."""
        return name_of(self.launch.check)

    def check(self, case: Case, reference: Any, output: Any) -> Verification:
        """Check outputs element by element: |output - reference| <= atol + rtol * |reference|.

        Without ``--atol``, atol is rtol times the root mean square of the reference: sums that cancel have errors of
        the size of their terms. Without ``--rtol`` it is 2·eps + 4·eps·√terms, the second eps that of float32 for
        shorter types. Terms are the multiplications and additions per element, from ``--flops``, or else the elements
        that are read per element that is written.
        """
        expected: Expected = reference
        outputs: Outputs = output
        if reason := self._other_outputs(expected, outputs):
            return Verification(False, None, reason)
        if not any(computed.size for computed in outputs.values()):
            return Verification(False, None, f"--check {self._reference_name}: the kernel has no output to compare")
        worst = 0.0
        for number, (place, computed) in enumerate(outputs.items()):
            wanted = expected.returned[number] if expected.returned is not None else expected.arguments[place]
            error, detail = self._compared(np.asarray(wanted), computed, self._terms(outputs))
            worst = max(worst, error)
            if detail and expected.returned is None and not expected.written:
                ways = "return the outputs, or write them to its arguments"
                return Verification(False, worst, f"--check {self._reference_name}: returns and writes nothing; {ways}")
            if detail:
                return Verification(False, worst, f"argument {place}: {detail}")
        return Verification(True, worst)

    def _other_outputs(self, expected: Expected, outputs: Outputs) -> str:
        """A sentence on arrays that only one of kernel and reference writes, "" for none."""
        check = self._reference_name
        if expected.returned is not None:
            many = len(expected.returned)
            returns = f"--check {check}: returns {number_of(many, 'array')}; the kernel writes {len(outputs)}"
            hint = "; declare with --scratch what is only worked in" if many < len(outputs) else ""
            return "" if many == len(outputs) else returns + hint
        for place in outputs:
            if place not in expected.arguments:
                return f"argument {place} is written, and not by --check {check}"
        for place in () if self.launch.outputs else expected.written:
            if place not in outputs and place not in self.scratch:
                return f"argument {place} is written by --check {check}, and not by the kernel"
        return ""

    def _compared(self, wanted: NDArray[Any], output: NDArray[Any], terms: int) -> tuple[float, str]:
        """The relative error of an output, and a sentence on what is wrong, "" for nothing."""
        if reason := _incomparable(wanted.dtype, output.dtype):
            return 0.0, reason
        if wanted.shape != output.shape:
            shapes = (as_text(array.shape) or "()" for array in (wanted, output))
            return 0.0, "the reference has shape {}, the output {}".format(*shapes)
        exact = output.dtype.kind in "biu"
        kind = np.complex128 if output.dtype.kind == "c" else np.float64
        one, other = (array if exact else array.astype(kind) for array in (wanted, output))
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(other.astype(kind) - one.astype(kind)) if exact else np.abs(other - one)
            size = np.abs(one.astype(kind))  # of the lowest integer, too, which has no absolute value of its type
            scale = _root_mean_square(size[np.isfinite(size)].astype(np.float64))
            rtol = tolerance(output.dtype, terms) if self.launch.rtol is None else self.launch.rtol
            atol = rtol * scale if self.launch.atol is None else self.launch.atol
            same = (one == other) | ((one != one) & (other != other))
            # Of an infinite reference every distance is infinite, and so is rtol times its size.
            close = np.isfinite(size) & (apart <= atol + rtol * size)
            wrong = ~same & ~close if rtol or atol else ~same
        known = apart[~same & np.isfinite(apart)]
        share = known.size / max(output.size, 1)
        error = _root_mean_square(known.astype(np.float64)) * float(np.sqrt(share)) / (scale or 1.0)
        if not wrong.any():
            return error, ""
        at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        count = f"{np.count_nonzero(wrong)} of {output.size} elements differ"
        place = ", ".join(map(str, at))
        hint = f" for sums of {terms}" if self.launch.rtol is None and rtol else ""
        return error, f"{count}, the first at [{place}]: {output[at]!s}, not {wanted[at]!s} (rtol {rtol:.2g}{hint})"

    def _terms(self, outputs: Outputs) -> int:
        """Terms of the sums that an element of the outputs is."""
        written = max(sum(output.size for output in outputs.values()), 1)
        read = sum(prod(array.shape) for place, array in self.placed.items() if place not in outputs)
        return max(self.launch.flops // (2 * written), read // written, 1)


def _taken(function: Callable[..., Any], named: Mapping[str, Any]) -> Mapping[str, Any]:
    """The named arguments that a function takes: a reference need not know of Triton's num_warps."""
    try:
        parameters = signature(function).parameters
    except (TypeError, ValueError):  # of a function in C
        return named
    every = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values())
    return {name: value for name, value in named.items() if every or name in parameters}


def checked_against(case: Case) -> Case | None:
    """The case of another kernel that results are checked against; None for those of a function, or of none."""
    launch = launch_of(case)
    path, colon, _ = launch.check.partition(":")
    if not colon or launch.check == launch.target or is_token(launch.check):
        return None
    if Path(path).suffix not in (".cu", ".ptx", ".cubin") and not is_kernel(callable_in(launch.check)):
        return None
    return replace(case, launch=replace(launch, target=launch.check, check=UNCHECKED))


def array_of(argument: Argument) -> ArrayArgument | None:
    """The array of an argument, or that which a tensor map describes; None for a number."""
    if isinstance(argument, TensorMapArgument):
        return ArrayArgument(argument.shape, argument.dtype)
    return argument if isinstance(argument, ArrayArgument) else None


def tolerance(dtype: np.dtype[Any], terms: int) -> float:
    """The default rtol of a type for sums of this many terms; 0 for integers."""
    if dtype.kind in "biu":
        return 0.0
    import ml_dtypes

    eps = float((np if dtype.isbuiltin == 1 else ml_dtypes).finfo(dtype).eps)
    return 2 * eps + 4 * min(eps, float(_ACCUMULATED)) * float(np.sqrt(terms))


def _same_bytes(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def _incomparable(wanted: np.dtype[Any], output: np.dtype[Any]) -> str:
    """The reason why a reference of one type cannot check an output of another, "" if it can."""
    if output.type is np.void:
        return f"its elements are structures ({output}), which are not compared; give --check none"
    if wanted.kind in "OSUMm" or wanted.type is np.void or (wanted.kind == "c" and output.kind != "c"):
        return f"the reference is of type {wanted}, the output {output}"
    return ""


def _root_mean_square(values: NDArray[np.float64]) -> float:
    """The root mean square of finite numbers, whose squares may overflow; 0 without any."""
    largest = float(values.max(initial=0.0))
    return largest * float(np.sqrt(np.mean((values / largest) ** 2))) if largest else 0.0


def _content(array: ArrayArgument, generator: np.random.Generator) -> NDArray[Any]:
    if array.data is not None:
        return _as_placed(array, np.asarray(array.data, order="C"))
    count, dtype = prod(array.shape), array.dtype
    if dtype.kind == "b":
        values = generator.integers(0, 2, count).astype(dtype)
    elif dtype.kind in "iu":
        values = generator.integers(0, _LARGEST_INTEGER, count).astype(dtype)
    elif dtype.kind == "c":
        values = (generator.uniform(-1, 1, count) + 1j * generator.uniform(-1, 1, count)).astype(dtype)
    else:
        values = generator.uniform(-1, 1, count).astype(dtype)
    return _as_placed(array, values.reshape(array.shape))


def _as_placed(array: ArrayArgument, content: NDArray[Any]) -> NDArray[Any]:
    """The content of an array in which elements may share memory, as with a stride of 0."""
    if array.steps == ArrayArgument(array.shape, array.dtype).steps:
        return content
    placed = replace(array, data=content).content()
    assert placed is not None
    return np.ndarray(array.shape, array.dtype, placed.data, array.begin, array.steps).copy()
