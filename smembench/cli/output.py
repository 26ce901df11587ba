"""What commands print on stdout: tables, Markdown, or the tables' records as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from smembench.views.sections import Section


def print_json(**parts: object) -> None:
    """Print one JSON object."""
    from smembench.views.records import json as as_json

    typer.echo(as_json(**parts), nl=False)


def show(sections: Sequence[Section], /, *, json: bool, markdown: bool = False, **records: object) -> None:
    """Print sections as tables or as Markdown; with ``json`` the ``records`` instead."""
    from smembench.views.console import stdout
    from smembench.views.markdown import markdown as as_markdown
    from smembench.views.table import draw

    if json:
        print_json(**records)
    elif markdown:
        typer.echo(as_markdown(sections), nl=False)
    else:
        draw(stdout, sections)
