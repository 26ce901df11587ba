"""What the first launch of a ``triton.jit`` function makes of its arguments, beside Triton's own code for it."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from random import Random
from typing import Any

import ml_dtypes  # noqa: F401 - names bfloat16
import numpy as np
import pytest

from smembench import UsageError
from smembench.launches.array_argument import ArrayArgument
from smembench.launches.triton_launch import specialization

pytest.importorskip("triton")
import triton
import triton.language as tl
from triton.runtime import jit

TYPES = ("float32", "float16", "int64", "bfloat16", "uint8", "int8")
INTEGERS = (0, 1, 2, 16, -16, 17, 48, 2**31 - 1, 2**31, -(2**31), 2**40 + 1, 2**63)
NUMBERS = (1.5, 0.0, True, False)


@triton.jit
def plain(x, y, n, m, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(x, 1)


@triton.jit
def annotated(x, n: tl.int64, s: tl.float16, b: tl.int1, opt=None, BLOCK: tl.constexpr = 64):  # type: ignore[no-untyped-def]
    tl.store(x, 1)


@triton.jit(do_not_specialize=["n", "x"], do_not_specialize_on_alignment=["m", "y"])
def unspecialized(x, n, y, m, BLOCK: tl.constexpr = 64):  # type: ignore[no-untyped-def]
    tl.store(x, 1)


class Tensor(jit.MockTensor):  # type: ignore[misc]
    def __init__(self, dtype: Any, address: int) -> None:
        super().__init__(dtype)
        self.address = address

    def data_ptr(self) -> int:
        return self.address


def drawn(random: Random, parameter: Any) -> tuple[Any, Any]:
    """A value as it is given here, and as Triton gets it."""
    if parameter.is_constexpr:
        return 64, 64
    if random.random() < 0.5 or parameter.annotation_type:
        value = random.choice(INTEGERS + NUMBERS)
        return value, value
    if random.random() < 0.1:
        return None, None
    name, offset = random.choice(TYPES), random.choice((0, 4, 8, 16, 48))
    return ArrayArgument((64,), np.dtype(name), offset=offset), Tensor(getattr(tl, name), offset)


@pytest.mark.filterwarnings("ignore::UserWarning")  # about defaults of a later version
@pytest.mark.parametrize("function", [plain, annotated, unspecialized])
def test_types_constants_and_multiples_are_triton_s(function: Any) -> None:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend

    backend = make_backend(GPUTarget("cuda", 90, 32))
    bind = jit.create_function_from_signature(function.signature, function.params, backend)
    random = Random(0)
    for _ in range(300):
        pairs = {item.name: drawn(random, item) for item in function.params}
        bound, special, options = bind(**{name: theirs for name, (_, theirs) in pairs.items()})
        _, types, _, attributes = function._pack_args(backend, {}, bound, special, options)
        divisible = {function.arg_names[place] for (place,), result in attributes.items() if result}
        values = {name: ours for name, (ours, _) in pairs.items()}
        assert specialization(function, values) == (types, divisible), values


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n", None, "n: is a number of type i64; give one"),
        ("s", ArrayArgument((1,), np.dtype("float16")), "s: is a number of type fp16; give one"),
        ("s", "half", "s: is a number of type fp16; give one"),
        ("opt", "text", "opt: is an array or a number, not 'text'"),
        ("x", ArrayArgument((1,), np.dtype("complex64")), "x: Triton has no type complex64; it has float16"),
        ("BLOCK", ArrayArgument((1,), np.dtype("int8")), "BLOCK: is a constant, not"),
    ],
)
def test_what_no_kernel_takes_is_told(name: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        specialization(annotated, {"x": 1, "n": 1, "s": 1.0, "b": True, "opt": None, "BLOCK": 64, name: value})
    assert message in str(raised.value)
