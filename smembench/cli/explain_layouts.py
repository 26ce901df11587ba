"""``smembench explain --best-pad`` and ``--best-swizzle`` of any launch, from its trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smembench.cli.output import Opened

if TYPE_CHECKING:
    from smembench.explain.costs import Costs


def show_pads(explained: Costs, heading: str, row: int | None, target: Opened) -> None:
    """Show the pads that were tried of each shared array, and the smallest without conflicts."""
    from smembench.explain.launch_layouts import pads_of
    from smembench.views.explain_layouts import pad_rows, tried_pads
    from smembench.views.export import Result

    results = pads_of(explained, row)
    records = pad_rows(results)
    best = {pads.tile.array.name: pads.best and pads.best.layout.pad for pads in results}
    data = {"title": explained.title, "best": best, "pads": records}
    target.show(Result(sections=tried_pads(results, heading), data=lambda: data, rows=lambda: records))


def show_layouts(explained: Costs, heading: str, row: int | None, target: Opened) -> None:
    """Show each shared array as it is, with the best pad, and with the best swizzle."""
    from smembench.explain.launch_layouts import layouts_of
    from smembench.views.explain_layouts import layout_records, layouts, verdict_records
    from smembench.views.export import Result

    results = layouts_of(explained, row)
    records = layout_records(results)
    data = {"title": explained.title, "layouts": records, "verdicts": verdict_records(results)}
    target.show(Result(sections=layouts(results, heading), data=lambda: data, rows=lambda: records))
