"""An explanation as a page to step through: which lanes of a warp each wavefront serves, and from which banks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from smembench.explain.analysis import Explanation, explain
from smembench.explain.banks import served
from smembench.explain.costs import SharedAccess
from smembench.kernels import registry
from smembench.model.errors import UsageError
from smembench.model.hardware import BANKS, WORD_BYTES
from smembench.report.page import asset, document
from smembench.views.explain import conflict
from smembench.views.sections import Section, block

_PADS = range(5)
_MOST = 40
"""Rows of an array that are drawn whole; of more, those that a request touches."""


def explanation_page(explained: Explanation, tables: Sequence[Section]) -> str:
    """The page of a case, with other pads of its tile if it has any, above the explanation as tables.

    Raises:
        UsageError: for a kernel whose threads access no shared memory.
    """
    case = explained.case
    if not explained.shared:
        raise UsageError(f"--html: no thread of {case.kernel} accesses shared memory, so there are no banks to draw")
    own = case.pad or 0
    pads = {own: _accesses(explained)}
    if registry.kernel_of(case).pad is not None:
        pads |= {pad: _accesses(explain(replace(case, pad=pad))) for pad in _PADS if pad != case.pad}
    if all(accesses == pads[own] for accesses in pads.values()):
        pads = {own: pads[own]}
    waves = {pad: max(len(access["waves"]) for access in accesses) for pad, accesses in pads.items()}
    start = own if waves[own] > 1 else max(waves, key=lambda pad: waves[pad])  # what there is to step through
    steps = {"pad": start, "banks": BANKS, "pads": dict(sorted(pads.items()))}
    return document(
        "explanation.html.j2",
        '"use strict";\n' + asset("explanation.js") + asset("tables.js"),
        tables,
        title=f"{case.kernel} {block(replace(case, pad=None))} {case.dtype}",
        sections=tables,
        adjustable=len(pads) > 1,
        own=own,
        start=start,
        steppable=max(waves.values()) > 1,
        steps=json.dumps(steps, separators=(",", ":")).replace("<", "\\u003c"),
    )


def _accesses(explained: Explanation) -> list[dict[str, Any]]:
    """Drawing data per access: its words by lane, its wavefronts, and the rows of its array."""
    return [_access(explained, access) for access in explained.shared]


def _access(explained: Explanation, access: SharedAccess) -> dict[str, Any]:
    request, site = access.worst, access.site
    words = [
        [] if address is None else [byte // WORD_BYTES for byte in range(address, address + site.width, WORD_BYTES)]
        for address in request.addresses
    ]
    array = next(array for array in explained.trace.shared if array.name == site.array)
    width, odd = divmod(array.shape[-1] * array.itemsize, WORD_BYTES)
    tile = len(array.shape) > 1 and not odd and width <= 2 * BANKS
    first, columns = (array.base // WORD_BYTES, width) if tile else (0, BANKS)
    touched = sorted({(word - first) // columns for of_lane in words for word in of_lane})
    whole = range(touched[0], touched[-1] + 1)
    return {
        "title": f"line {site.line}, {site.kind} {site.array}: {conflict(access)}",
        "source": access.source,
        "kind": site.kind,
        "words": words,
        "waves": served(request.addresses, site.width, site.kind),
        "ideal": access.ideal,
        "first": first,
        "columns": columns,
        "padding": (explained.case.pad or 0) * array.itemsize // WORD_BYTES if tile else 0,
        "rows": list(whole if len(whole) <= _MOST else touched),
    }
