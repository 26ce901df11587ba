"""Figures drawn by matplotlib, without a screen: colours, marks that carry their values, labels, PNG and SVG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

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
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
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
    "axes.unicode_minus": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "figure.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "smembench",
}


class Canvas:
    """A matplotlib figure, and the text shown for each mark, by the mark's id."""

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


def render(plot: Plot, kind: Literal["png", "svg"], *, titled: bool) -> tuple[bytes, dict[str, str]]:
    """The bytes of a file and the values of its marks; ``titled`` for a file that stands alone, on white."""
    from matplotlib import rc_context

    stream = io.BytesIO()
    with rc_context(_STYLE), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box; a warning would not help.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        canvas = Canvas(*plot.size)
        plot.draw(canvas)
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


def tick(place: float, _: int | None = None) -> str:
    """A number beside an axis, without powers of ten."""
    return f"{place:.0f}" if place >= 1 else f"{place:g}"


def label_ends(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Label lines at the right edge, without overlaps; ``ends`` are (y in data units, text, colour)."""
    if not ends:
        return
    height = axes.figure.get_figheight() / axes.get_gridspec().nrows  # type: ignore[union-attr]
    ends = sorted(ends)
    low, high = axes.get_ylim()
    forward = axes.yaxis.get_transform().transform
    bottom, top = (float(forward([y])[0]) for y in (low, high))
    places = spread([(float(forward([y])[0]) - bottom) / (top - bottom) for y, _, _ in ends], gap=0.16 / height)
    for place, (_, text, colour) in zip(places, ends, strict=True):
        axes.annotate(
            printable(text),
            xy=(1.0, place),
            xycoords="axes fraction",
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=8,
            annotation_clip=False,
        )


def spread(places: list[float], gap: float) -> list[float]:
    """Ascending places moved at least ``gap`` apart, each group around its own middle, none above 1."""
    clusters: list[list[float]] = []
    for place in places:
        clusters.append([place])
        while len(clusters) > 1 and _first(clusters[-1], gap) - _last(clusters[-2], gap) < gap:
            clusters[-2:] = [clusters[-2] + clusters[-1]]
    apart = [_first(cluster, gap) + index * gap for cluster in clusters for index in range(len(cluster))]
    above = 1.0 + gap
    for index in reversed(range(len(apart))):
        above = apart[index] = min(apart[index], above - gap)
    return apart


def _first(cluster: list[float], gap: float) -> float:
    return sum(cluster) / len(cluster) - gap * (len(cluster) - 1) / 2


def _last(cluster: list[float], gap: float) -> float:
    return sum(cluster) / len(cluster) + gap * (len(cluster) - 1) / 2
