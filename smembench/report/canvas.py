"""Figures drawn by matplotlib, without a screen: colours, marks that carry their values, labels, PNG and SVG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from smembench.model.text import visible
from smembench.views.sections import Section

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

INK, MUTED, LINE = "#1b1f24", "#59626d", "#d5dae0"
SERIES = ("#0b63aa", "#7a2a0a", "#1a8077", "#9a45d5", "#797806", "#1a2a5e")
"""Distinguishable with protanopia, deuteranopia and tritanopia; each has a contrast of 4.5:1 on white."""
MARKERS = ("o", "s", "^", "D", "v", "P")
COLOURS = {INK: "ink", MUTED: "muted", LINE: "line"} | {colour: f"series-{i}" for i, colour in enumerate(SERIES)}
"""The CSS variable for each colour in a page, whose light and dark themes differ."""
_STYLE: Any = {
    "font.size": 9,
    "text.color": INK,
    # Names from a file must not become formulas, and every stroke of a strip must be kept.
    "text.parse_math": False,
    "path.simplify": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": LINE,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.markersize": 4.5,
    "figure.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "smembench",
}


class Canvas:
    """A matplotlib figure, what all figures draw alike, and the text shown for each mark, by the mark's id."""

    def __init__(self, width: float, height: float) -> None:
        """Make an empty figure; width and height in inches."""
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(width, height), layout="constrained")
        self.values: dict[str, str] = {}

    def mark(self, artist: Artist, text: str) -> None:
        """Show a text when the reader points at an artist."""
        name = f"value-{len(self.values)}"
        artist.set_gid(name)
        self.values[name] = printable(text)

    def panels(self, count: int, *, sharey: bool = False) -> list[Axes]:
        """Panels in two columns, from left to right, that share the horizontal axis."""
        across = min(2, count)
        grid = self.figure.subplots(ceil(count / across), across, sharex=True, sharey=sharey, squeeze=False)
        for axes in grid.flat[count:]:
            axes.remove()
        return list(grid.flat[:count])

    def rows(self, axes: Axes, names: Sequence[str], *, fontsize: float = 9) -> None:
        """Name the places 0, 1 and so on of the vertical axis, from the top down."""
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_yticks(range(len(names)), [printable(name) for name in names], fontsize=fontsize)
        axes.set_ylim(len(names) - 0.4, -0.6)

    def bars(
        self, axes: Axes, bars: Mapping[int, float], texts: Sequence[str], says: Sequence[str], colour: str
    ) -> None:
        """Bars by their place, with a text at the end of each; ``says`` is shown when the reader points at them."""
        drawn = axes.barh(list(bars), list(bars.values()), height=0.7, color=colour)
        axes.bar_label(drawn, texts, padding=4, fontsize=8)
        for bar, said in zip(drawn, says, strict=True):
            self.mark(bar, said)


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure that is drawn on demand.

    ``name`` is its file's name, ``caption`` says what is shown and in which units, ``size`` is in inches.
    ``data`` has the values as a table, for readers who cannot see the figure; None if a table beside the figure has.
    """

    name: str
    title: str
    caption: str
    size: tuple[float, float]
    draw: Callable[[Canvas], None]
    data: Section | None = None


def render(plot: Plot, kind: str, *, titled: bool) -> tuple[bytes, dict[str, str]]:
    """The bytes of a file and the values of its marks; ``titled`` for a file that stands alone, on white."""
    from matplotlib import rc_context
    from matplotlib.text import Text

    stream = io.BytesIO()
    with rc_context(_STYLE), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box; a warning would not help.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        canvas = Canvas(*plot.size)
        plot.draw(canvas)
        for text in canvas.figure.findobj(Text):
            text.set_text(printable(text.get_text()))
        if titled:
            canvas.figure.suptitle(printable(plot.title), x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)
        canvas.figure.savefig(
            stream,
            format=kind,
            dpi=200,
            facecolor="white" if titled else "none",
            metadata={"Date": None} if kind == "svg" else {"Software": None},
        )
    return stream.getvalue(), canvas.values


def printable(text: str) -> str:
    """Text without characters that XML does not allow, which become escapes."""
    return visible(text, keep="\t\n")


def file_name(text: str) -> str:
    """Text as a file name: letters, digits, dots and dashes."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.") or "figure"


def tick(place: float, _: float = 0) -> str:
    """A number beside an axis, without powers of ten."""
    return f"{place:.0f}" if place >= 1 else f"{place:g}"


def label_ends(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Label lines at the right edge, without overlaps; ``ends`` are (y in data units, text, colour)."""
    if not ends:
        return
    height = axes.figure.get_figheight() / axes.get_gridspec().nrows  # type: ignore[union-attr]
    ends = sorted(ends)
    heights = (axes.transData - axes.transAxes).transform([(axes.get_xlim()[1], y) for y, _, _ in ends])[:, 1].tolist()
    for place, (_, text, colour) in zip(spread(heights, gap=0.16 / height), ends, strict=True):
        axes.text(1.02, place, text, color=colour, fontsize=8, va="center", transform=axes.transAxes)


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Ascending places moved at least ``gap`` apart, each group around its own middle, none above 1."""
    import numpy as np
    from scipy.optimize import isotonic_regression

    steps = gap * np.arange(len(places))
    apart = isotonic_regression(np.asarray(places) - steps).x
    return [float(place) for place in np.minimum(apart, 1 - steps[-1]) + steps]
