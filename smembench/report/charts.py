"""Charts: Vega-Lite specifications, which a page draws in place, and PNG and SVG of them without a browser.

A specification is JSON (https://vega.github.io/vega-lite/docs/); a colour in it is a CSS variable, such as
``var(--ink)``, which stands for a value of ``THEMES``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from smembench.model.text import visible
from smembench.views.sections import Section

_COLOURS = {
    "paper": ("#ffffff", "#14171b"),
    "raised": ("#f4f6f8", "#1d2126"),
    "ink": ("#1b1f24", "#e8ebee"),
    "muted": ("#59626d", "#a3acb6"),
    "line": ("#d5dae0", "#363d45"),
    "link": ("#0b63aa", "#7ab8f0"),
    "warn": ("#8a4b00", "#f0b35c"),
    "good": ("#116b4f", "#4fd0a2"),
    "bad": ("#a6201b", "#ff8f85"),
    "series-0": ("#0b63aa", "#62aef0"),
    "series-1": ("#b3470b", "#ff8a4f"),
    "series-2": ("#1a8077", "#0fd39a"),
    "series-3": ("#9a45d5", "#c984ff"),
    "series-4": ("#797806", "#e8df6a"),
    "series-5": ("#1a2a5e", "#d3dcec"),
}
"""Light and dark."""
THEMES: Mapping[str, Mapping[str, str]] = {
    "light": {name: light for name, (light, _) in _COLOURS.items()},
    "dark": {name: dark for name, (_, dark) in _COLOURS.items()},
}
"""Every colour but that of lines has a contrast of 4.5:1 on the theme's paper."""


def _recoloured(media: str, colours: Iterable[tuple[str, str]]) -> str:
    """CSS that gives marks of the first colour of each pair the second one."""
    rules = (f'[{part}="{one}"] {{{part}: {other}}}' for one, other in colours for part in ("fill", "stroke"))
    return f"@media {media} {{{' '.join(rules)}}}\n"


_DARK = _recoloured("(prefers-color-scheme: dark)", _COLOURS.values())
PRINTED = _recoloured("print", ((dark, light) for light, dark in _COLOURS.values()))
"""CSS for a chart that was drawn on a dark screen."""
SERIES = [f"var(--series-{place})" for place in range(6)]
"""Distinguishable with protanopia, deuteranopia and tritanopia."""
_LABELS = {"labelColor": "var(--ink)", "titleColor": "var(--ink)", "labelFontSize": 12}
_CONFIG = {
    "font": "system-ui, 'DejaVu Sans', sans-serif",
    "background": "var(--paper)",
    "view": {"stroke": None},
    "range": {"category": SERIES},
    "axis": {
        **_LABELS,
        "gridColor": "var(--line)",
        "domainColor": "var(--muted)",
        "tickColor": "var(--muted)",
        "titleFontWeight": "normal",
        "titleFontSize": 12,
        "labelLimit": 230,
    },
    "axisDiscrete": {"grid": False, "ticks": False, "domain": False},
    "legend": {**_LABELS, "orient": "bottom", "columns": 2},
    "title": {"color": "var(--ink)", "anchor": "start", "fontSize": 15, "offset": 12},
    "mark": {"color": SERIES[0]},
    "text": {"color": "var(--ink)", "fontSize": 12},
}
ROW = 22
"""Height of a bar or another line of a chart, in pixels."""

Spec = dict[str, object]
Values = Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart that is drawn on demand.

    ``name`` is its file's name, ``caption`` says what is shown and in which units. ``data`` has the values as a table,
    for readers who cannot see the chart.
    """

    name: str
    title: str
    caption: str
    spec: Spec
    data: Section

    @property
    def json(self) -> str:
        """The whole specification, as wide as its place, without signs that would end a script in HTML."""
        shared: Spec = {"config": _CONFIG, "width": "container", "description": f"{self.title}. {self.caption}"}
        return json.dumps(_fit(shared | self.spec), separators=(",", ":")).replace("<", "\\u003c")

    @property
    def alone(self) -> Spec:
        """The specification of a picture that stands alone: titled, on white."""
        light = THEMES["light"]
        text = re.sub(r"var\(--([a-z0-9-]+)\)", lambda name: light.get(name[1], name[0]), self.json)
        return {**json.loads(text), "title": visible(self.title), "width": 720}

    def __repr__(self) -> str:
        return f"<Chart {self.name}: {self.title}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        """A chart to point at for notebooks that draw Vega-Lite, and a picture for all others."""
        svg = rendered(self, "svg").decode()
        return {"application/vnd.vegalite.v5+json": self.alone, "image/svg+xml": svg, "text/plain": repr(self)}


def layer(kind: str, values: Values, look: Spec | None = None, /, **encoding: object) -> Spec:
    """Marks of one kind; each says the ``says`` of its value to a pointer and a screen reader. Lines are silent."""
    says: Spec = {"tooltip": {"field": "says"}, "description": {"field": "says"}}
    silent = kind == "line" or not values or "says" not in values[0]
    mark: Spec = {"type": kind, **(look or {}), **({"aria": False} if silent else {})}
    return {"mark": mark, "encoding": encoding | ({} if silent else says), "data": {"values": values}}


def layered(height: float, *layers: Spec) -> Spec:
    """Layers one over the other, the first at the bottom; the height is in pixels."""
    return {"height": height, "layer": list(layers)}


def number_axis(field: str, title: str, axis: Spec | None = None, /, **scale: object) -> Spec:
    """An encoding of numbers."""
    return {"field": field, "type": "quantitative", "title": title, "axis": axis or {}, "scale": scale}


def names_axis(field: str, names: Sequence[str], /, **more: object) -> Spec:
    """An encoding of names, in their order."""
    return {"field": field, "type": "nominal", "title": None, "sort": list(names), **more}


def rendered(chart: Chart, kind: Literal["png", "svg"]) -> bytes:
    """The bytes of a file that stands alone: titled, on white; an SVG is dark where its reader's pages are."""
    import vl_convert

    if kind == "png":
        return vl_convert.vegalite_to_png(chart.alone, scale=2)
    head, end, rest = vl_convert.vegalite_to_svg(chart.alone).partition(">")
    return f"{head}{end}<style>{_DARK}</style>{rest}".encode()


def file_name(text: str) -> str:
    """Text as a file name: letters, digits, dots and dashes."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.") or "chart"


def _fit(part: object) -> object:
    """The same without characters that XML does not allow, which become escapes, and numbers of six digits."""
    if isinstance(part, str):
        return visible(part, keep="\t\n")
    if isinstance(part, float):
        return float(f"{part:.6g}")
    if isinstance(part, Mapping):
        return {name: _fit(value) for name, value in part.items()}
    return [_fit(value) for value in part] if isinstance(part, list | tuple) else part
