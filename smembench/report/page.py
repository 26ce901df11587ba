"""A report as one self-contained HTML file, which makes no network request."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from importlib.resources import files

from smembench.model.text import visible
from smembench.report.charts import THEMES
from smembench.report.contents import Report
from smembench.report.glossary import explained, plain
from smembench.studies.compare import Verdict
from smembench.views.sections import Section


def page(report: Report, *, version: str) -> str:
    """The file's text.

    Every string is escaped by the template or in JSON. The content security policy allows one script, by its hash,
    and no requests: Vega, Vega-Lite and Vega-Embed, which draw the charts, with ``report.js``.
    """
    import vl_convert
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    # A script ends at its end tag, which only the libraries' texts could contain.
    script = vl_convert.javascript_bundle(_asset("report.js")).replace("</script", "<\\/script")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        loader=PackageLoader("smembench.report", "."),
        autoescape=True,
        finalize=lambda found: (
            found if isinstance(found, Markup) or not isinstance(found, str) else visible(found, keep="\t\n")
        ),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.html.j2").render(
        report=report,
        version=version,
        plain=plain,
        verdicts=list(Verdict),
        words=explained(_sections(report)),
        style=Markup(
            _theme("light") + f"@media (prefers-color-scheme: dark) {{ {_theme('dark')} }}\n" + _asset("report.css")
        ),
        script=Markup(script),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
    )


def _sections(report: Report) -> Iterator[Section]:
    """Every table of a report."""
    topics = [topic for chapter in report.chapters for topic in chapter.topics]
    for part in (part for topic in topics for part in (topic, *topic.folded)):
        yield from part.sections
    yield from (chart.data for chart in report.charts)


def _theme(name: str) -> str:
    """The colours of a theme as CSS variables."""
    return f":root {{ {' '.join(f'--{colour}: {value};' for colour, value in THEMES[name].items())} }}\n"


def _asset(name: str) -> str:
    return (files("smembench.report") / name).read_text(encoding="utf-8")
