"""A figure's SVG adapted for HTML: the page's colours, marks with their values, and no external links."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from smembench.report.canvas import COLOURS, printable

_COLOUR = re.compile("|".join(COLOURS))
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_FONT = re.compile(r"font-family: [^;\"]+;?\s*")
_REFERENCE = re.compile(r'[("]#([^")]+)')
_UNWANTED = ("metadata", "style")


def inline(svg: bytes, values: Mapping[str, str], *, name: str, title: str, caption: str) -> str:
    """What matplotlib wrote as SVG for inclusion in HTML; ``values`` has the text of each mark by its id.

    Every id begins with ``name``, which is unique in the page. ``title`` and ``caption`` are for screen readers.
    """
    # The file is matplotlib's own, and every string in it is escaped.
    root = ElementTree.fromstring(svg)
    referred = set(_REFERENCE.findall(svg.decode()))
    for element in list(root.iter()):
        element.tag, element.tail = element.tag.rpartition("}")[2], None
        if element.tag != "text":
            element.text = None
        for child in [child for child in element if child.tag.endswith(_UNWANTED)]:
            element.remove(child)
        found = element.get("id", "")
        if found not in referred:
            element.attrib.pop("id", None)
        for attribute, value in list(element.attrib.items()):
            del element.attrib[attribute]
            element.set(*_adapted(attribute.rpartition("}")[2], value, name))
        if found in values:
            element.set("data-value", values[found])
            _describe(element, "title", values[found])
    width, height = root.attrib.pop("width"), root.attrib.pop("height")
    root.set("style", f"--width: {width}; --height: {height}")
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    _describe(root, "desc", printable(caption), id=f"{name}-desc")
    _describe(root, "title", printable(title), id=f"{name}-title")
    return ElementTree.tostring(root, encoding="unicode")


def _adapted(attribute: str, value: str, name: str) -> tuple[str, str]:
    """Ids that begin with ``name``, colours as CSS variables, the page's font, numbers rounded to two decimals."""
    if attribute == "id":
        return attribute, f"{name}-{value}"
    if attribute == "href":
        return attribute, f"#{name}-{value[1:]}"
    value = _COLOUR.sub(lambda match: f"var(--{COLOURS[match[0]]})", _FONT.sub("", value))
    value = _NUMBER.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), value)
    return attribute, " ".join(value.replace("url(#", f"url(#{name}-").split())


def _describe(element: Element, tag: str, text: str, **attributes: str) -> None:
    """Add a text that screen readers read for the element."""
    described = Element(tag, attributes)
    described.text = text
    element.insert(0, described)
