"""Cases to be explained, and the elements that a trace touches."""

from __future__ import annotations

from smembench.explain.ptx.memory import SPACING
from smembench.explain.trace import Trace
from smembench.model.case import Case
from smembench.studies.explain import Axes, cases, explainable


def case(kernel: str, block: str = "32x32", dtype: str = "float32", pad: int = 1, n: int = 4096) -> Case:
    """The one case of a kernel that the options of explain mean."""
    (result,) = cases(kernel, Axes(block if explainable()[kernel].blocks else None, dtype, str(pad)), n=n)
    return result


def elements(traced: Trace, array: str, itemsize: int) -> list[int]:
    """Indices of the elements that lanes load or store, each as often as they do."""
    result: list[int] = []
    for request in traced.requests:
        if request.site.array == array:
            starts = [address % SPACING // itemsize for address in request.addresses if address is not None]
            result += [start + i for start in starts for i in range(request.site.width // itemsize)]
    return result
