"""Pages: self-contained HTML files that make no network request."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from smembench.model.text import visible
from smembench.model.version import VERSION
from smembench.report.charts import PRINTED, THEMES
from smembench.report.contents import Report
from smembench.report.glossary import explained
from smembench.studies.compare import Verdict
from smembench.views.sections import Section


def page(report: Report) -> str:
    """A report. Vega, Vega-Lite and Vega-Embed, which draw the charts, are in its script."""
    tables = [section for topic in report.topics for section in topic.sections]
    tables += [chart.data for chart in report.charts]
    return document("report.html.j2", _script(), tables, report=report)


@cache
def _script() -> str:
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(asset("charts.js") + asset("tables.js"))
    return bundle


def document(template: str, script: str, tables: Iterable[Section], **context: object) -> str:
    """The text of a page that shows some tables.

    Every string is escaped by the template or in JSON. The content security policy allows one script, by its hash,
    and no requests.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    # A script ends at its end tag, which only the libraries' texts could contain.
    script = script.replace("</script", "<\\/script")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        loader=PackageLoader("smembench.report", "."),
        autoescape=True,
        finalize=lambda text: (
            text if isinstance(text, Markup) or not isinstance(text, str) else visible(text, keep="\t\n")
        ),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    dark = f"@media screen and (prefers-color-scheme: dark) {{ {_theme('dark')} }}\n"
    return environment.get_template(template).render(
        version=VERSION,
        verdicts=list(Verdict),
        words=explained(tables),
        style=Markup(_theme("light") + dark + PRINTED + asset("report.css")),
        script=Markup(script),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        **context,
    )


def asset(name: str) -> str:
    """The text of a file of this package."""
    return (files("smembench.report") / name).read_text(encoding="utf-8")


def _theme(name: str) -> str:
    """The colours of a theme as CSS variables."""
    return f":root {{ {' '.join(f'--{colour}: {value};' for colour, value in THEMES[name].items())} }}\n"
