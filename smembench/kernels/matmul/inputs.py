"""The inputs of a product: how their values are distributed.

Values decide how many bits switch from one operation to the next, and so the power, and where that is limited the
clock. Sums of small integers are exact in every order, in float32 too.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from smembench.model.case import UNIFORM
from smembench.model.formats import NARROW, accumulated, carried, rounded

if TYPE_CHECKING:
    import numpy as np

    from smembench.model.problem import Array

NORMAL, INTEGERS, ZEROS = "normal", "integers", "zeros"
DISTRIBUTIONS = {
    NORMAL: "mean 0 and variance 1",
    UNIFORM: "in [-1/2, 1/2)",
    INTEGERS: "-4 to 4",
    ZEROS: "nothing else, after a check on normal ones",
}
"""The values of each distribution, by its name."""
LARGEST_INTEGER = 4
_PART = 2**20
"""Elements that are drawn from one stream of random numbers."""


def usual(dtype: str) -> str:
    """The default: normal for types for tensor cores, as matrices of neural networks are, else uniform."""
    return NORMAL if dtype in NARROW else UNIFORM


def draw(rng: np.random.Generator, count: int, dtype: str, distribution: str) -> Array:
    """``count`` random elements: those of a large matrix in parts, each from a stream of its own, on all cores."""
    import numpy as np

    if count <= _PART:
        return _values(rng, count, dtype, distribution)
    values = np.empty(count, carried(dtype))
    parts = [values[start : start + _PART] for start in range(0, count, _PART)]

    def fill(part: Array, stream: np.random.Generator) -> None:
        part[:] = _values(stream, part.size, dtype, distribution)

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, parts, rng.spawn(len(parts))))  # raises what a part raised
    return values


def _values(rng: np.random.Generator, count: int, dtype: str, distribution: str) -> Array:
    import numpy as np

    wide: Any = np.dtype(accumulated(dtype))
    match distribution:
        case "normal":
            values = rng.standard_normal(count, dtype=wide)
        case "integers":
            values = rng.integers(-LARGEST_INTEGER, LARGEST_INTEGER, count, np.int8, endpoint=True).astype(wide)
        case "zeros":
            values = np.zeros(count, wide)
        case _:
            values = rng.random(count, dtype=wide)
            values -= wide.type(0.5)
    return rounded(values, dtype) if dtype in NARROW else values
