"""Chapters as one self-contained HTML file, which makes no network request."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from smembench.report.canvas import Plot, printable, render
from smembench.report.contents import Chapter
from smembench.report.svg import inline


def page(chapters: Sequence[Chapter], *, title: str, version: str) -> str:
    """The file's text.

    Every string is escaped by the template or by the SVG's serialiser. The content security policy allows one
    script, by its hash, and no requests.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def drawn(plot: Plot) -> Markup:
        svg, values = render(plot, "svg", titled=False)
        return Markup(inline(svg, values, name=plot.name, title=plot.title, caption=plot.caption))

    script = _asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        loader=PackageLoader("smembench.report", "."),
        autoescape=True,
        finalize=lambda found: found if isinstance(found, Markup) or not isinstance(found, str) else printable(found),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.html.j2").render(
        chapters=chapters,
        title=title,
        version=version,
        drawn=drawn,
        style=Markup(_asset("report.css")),
        script=Markup(script),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
    )


def _asset(name: str) -> str:
    return (files("smembench.report") / name).read_text(encoding="utf-8")
