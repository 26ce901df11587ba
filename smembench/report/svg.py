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
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_DRAWN = ("d", "x", "y", "width", "height", "transform", "points")
_UNWANTED = ("metadata", "style")


def inline(svg: bytes, values: Mapping[str, str], *, name: str, title: str, caption: str) -> str:
    """SVG for inclusion in HTML.

    Args:
        svg: what matplotlib wrote.
        values: the text of each mark, by its id.
        name: unique in the page; every id begins with it.
        title: the figure's name for screen readers.
        caption: its description for screen readers.
    """
    # The file is matplotlib's own, and every string in it is escaped.
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    _remove(root)
    referred = _referred(root)
    for element in list(root.iter()):
        _restyle(element)
        found = element.attrib.pop("id", "")
        if found in values:
            _say(element, values[found])
        elif found in referred:
            element.set("id", f"{name}-{found}")
        for attribute, value in list(element.attrib.items()):
            if attribute.endswith("href"):
                del element.attrib[attribute]
                element.set("href", f"#{name}-{value[1:]}")
            elif attribute == "clip-path":
                element.set(attribute, _REFERENCE.sub(rf"url(#{name}-\1)", value))
    _describe(root, name, title, caption)
    return ElementTree.tostring(root, encoding="unicode")


def _remove(root: Element) -> None:
    for parent in root.iter():
        for child in [child for child in parent if child.tag in _UNWANTED]:
            parent.remove(child)


def _referred(root: Element) -> set[str]:
    found = set()
    for element in root.iter():
        for attribute, value in element.attrib.items():
            found |= {value[1:]} if attribute.endswith("href") else set(_REFERENCE.findall(value))
    return found


def _restyle(element: Element) -> None:
    """Colours as CSS variables, the page's font, and coordinates rounded to two decimals."""
    if style := element.get("style"):
        element.set("style", _COLOUR.sub(lambda match: f"var(--{COLOURS[match[0]]})", _FONT.sub("", style)))
    for attribute in _DRAWN:
        if value := element.get(attribute):
            short = _NUMBER.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), value)
            element.set(attribute, " ".join(short.split()))
    element.tail = None
    if element.tag != "text":
        element.text = None


def _say(element: Element, value: str) -> None:
    element.set("data-value", value)
    title = Element("title")
    title.text = value
    element.insert(0, title)


def _describe(root: Element, name: str, title: str, caption: str) -> None:
    width, height = root.attrib.pop("width"), root.attrib.pop("height")
    root.attrib.pop("version", None)
    root.set("style", f"--width: {width}; --height: {height}")
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    for place, (tag, text) in enumerate((("title", title), ("desc", caption))):
        element = Element(tag, {"id": f"{name}-{tag}"})
        element.text = printable(text)
        root.insert(place, element)
