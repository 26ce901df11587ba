"""Copies between host and device: what an array costs before a kernel can touch it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from smembench.model.axis import Axis
from smembench.model.case import Case
from smembench.model.clauses import Compared, Result, fastest
from smembench.model.errors import UsageError
from smembench.model.problem import ITEMSIZE, Problem, Shape
from smembench.model.texts import Texts

if TYPE_CHECKING:
    from smembench.model.problem import Array

_ITEMSIZE = ITEMSIZE["int32"]
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_DEFAULT_BYTES = (2**10, 2**15, 2**20, 2**25, 2**30)


class HostArrays(Problem):
    """Two arrays of n int32, at least one of them on the host: what is timed is the link to the device.

    The time is the host's, from the call until the output is there: whoever asks for a copy waits that long.
    """

    dtypes = ("int32",)
    memory = "link"
    uses_host = True
    options = ("kernel", "device")
    arrays = ("out", "in")

    def unsupported(self, case: Case) -> str | None:
        """Cold caches: what a copy finds there is the driver's affair."""
        return f"cache {case.cache}: copies are timed warm only; leave cache out" if case.cache != "warm" else None


class Transfer(HostArrays):
    """``out = in``: each byte crosses the link once, n·itemsize bytes."""

    name = "transfer"
    order = 5
    default_n = _DEFAULT_BYTES[0] // _ITEMSIZE
    sizes = (Axis("bytes", "Bytes of the arrays copied, a number, a list or a range.", "1024:1073741824:*32"),)

    def shapes(self, sizes: Mapping[str, tuple[int, ...]]) -> list[Shape]:
        """A row of ``bytes``/4 elements; without sizes 1 KiB, 32 KiB, 1 MiB, 32 MiB and 1 GiB."""
        chosen = sizes.get("bytes") or _DEFAULT_BYTES
        for size in chosen:
            if size % _ITEMSIZE:
                raise UsageError(f"bytes {size}: not a whole number of int32 elements; use a multiple of {_ITEMSIZE}")
        return [Shape(m=1, n=size // _ITEMSIZE) for size in chosen]

    def sizes_of(self, case: Case) -> dict[str, int]:
        """``bytes``."""
        return {"bytes": case.n * _ITEMSIZE}

    def inputs(self, case: Case, seed: int) -> tuple[Array, ...]:
        """An array, uniform in [0, 2^31): none is the poison, which is -1."""
        import numpy as np

        return (self.rng(case, seed).integers(0, 2**31, case.n, dtype=np.int32),)

    def reference(self, case: Case, inputs: tuple[Array, ...], computes: str) -> Array:
        """The input."""
        return inputs[0]

    def bytes_moved(self, case: Case) -> int:
        """n·itemsize: the array once, whatever reads and writes of memory that takes."""
        return case.n * _ITEMSIZE


class TransferTexts(Texts):
    """The command and the tables of copies."""

    title = "host-device copy"
    help = """
    Time host-device copies, and add-one with its copies.

    Add-one, of the blog post, runs with and without copies, against a loop on the CPU. Host memory is pageable, as from
    malloc or NumPy, or page-locked (pinned). Times are measured on the host, from the call until the copy is done.
    Without a GPU, a copy within host memory and the loop run.

    Examples:

      smembench transfer
      smembench transfer --bytes 1024:1073741824:*4 --kernel h2dPageable,h2dPinned
      smembench transfer --kernel addOne,addOnePinned --n 1000:100000000:*10
    """
    kernel_axes = ()
    columns = ("effective_gb_s",)

    def summary(self, results: Sequence[Result], compared: Compared) -> list[str]:
        """Page-locked memory against pageable, each way."""
        clauses = []
        for way, words in (("h2d", "host to device"), ("d2h", "device to host")):
            pageable, pinned = (fastest(results, way + kind) for kind in ("Pageable", "Pinned"))
            if pageable and pinned:
                clauses.append(f"{words} page-locked memory is {compared(pinned, pageable, 'pageable')}")
        return clauses

    def size(self, case: Case) -> str:
        """Bytes: ``32 MiB``."""
        size = case.n * _ITEMSIZE
        return next((f"{size // unit} {name}" for unit, name in _UNITS if size % unit == 0), f"{size} bytes")


PROBLEM = Transfer(TransferTexts())
