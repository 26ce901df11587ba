"""What a trace says of the elements of an array."""

from __future__ import annotations

from smembench.explain.trace import ARRAY_SPACING, Trace


def elements(traced: Trace, array: str, itemsize: int) -> list[int]:
    """Indices of the elements that lanes load or store, each as often as they do."""
    found: list[int] = []
    for request in traced.requests:
        if request.site.array == array:
            starts = [address % ARRAY_SPACING // itemsize for address in request.addresses if address is not None]
            found += [start + i for start in starts for i in range(request.site.width // itemsize)]
    return found
