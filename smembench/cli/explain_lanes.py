"""``smembench explain --layout``: an access of a warp without a kernel."""

from __future__ import annotations

from smembench.cli.options import Outputs
from smembench.cli.output import opened
from smembench.cli.signature import group, option
from smembench.model.errors import UsageError


@group("An access without a kernel")
class Layout:
    """An access of a warp by its lanes' offsets, in place of a kernel."""

    layout: str | None = option(
        "EXPR", "In place of a kernel: element offsets of a warp's load, such as 'lane // 8 * 64 + lane % 8 * 8'."
    )
    store: str | None = option("EXPR", "The same of a store to the tile, alone or with --layout.")
    itemsize: int = option("BYTES", "Bytes per element.", min=1, default=4)
    vector: int = option("N", "Elements per lane, from its offset on.", min=1, default=1)

    @property
    def given(self) -> bool:
        """True if there is an access."""
        return self.layout is not None or self.store is not None


def explain_layout(asked: Layout, row: int | None, outputs: Outputs) -> None:
    """Explain the accesses.

    Raises:
        UsageError: for an expression that is none, and offsets that no instruction takes.
    """
    from rich.text import Text

    from smembench.explain.lanes import lanes, offsets_of
    from smembench.explain.record import cure_dict
    from smembench.views.console import plain, stdout
    from smembench.views.explain_lanes import lanes_picture, lanes_records, lanes_section
    from smembench.views.export import Result
    from smembench.views.table import draw

    target = opened(outputs)
    load = None if asked.layout is None else offsets_of(asked.layout, "--layout")
    store = None if asked.store is None else offsets_of(asked.store, "--store")
    accesses = lanes(load, store, itemsize=asked.itemsize, vector=asked.vector, row=row)
    section = lanes_section(accesses)
    records = lanes_records(accesses)

    def show() -> None:
        draw(stdout, [section.below()])
        for line in lanes_picture(accesses):
            line.plain = plain(stdout, line.plain)
            stdout.print(line, soft_wrap=True)
        stdout.print(Text(plain(stdout, section.sentence)))

    cure = None if accesses.cure is None else cure_dict(accesses.cure)
    data = {"accesses": records, "cure": cure}
    target.show(Result(sections=[section], data=lambda: data, rows=lambda: records), show)


def refuse_others(asked: Layout, kernel: str | None, others: list[str]) -> None:
    """Raise UsageError for what does not go with an access without a kernel."""
    option = "--layout" if asked.layout is not None else "--store"
    if kernel is not None:
        raise UsageError(f"{kernel}: {option} replaces a kernel; give one of them")
    if others:
        named = {"--capability": "--cc"}.get(others[0], others[0])
        raise UsageError(f"{named}: goes with a kernel, not with {option}")
