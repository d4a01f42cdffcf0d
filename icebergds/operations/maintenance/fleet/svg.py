"""Turns figures of matplotlib into SVG that takes the colours and the font of its page."""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, BAR, MARK, RULE = "#010101", "#020202", "#030303", "#040404"
"""Colours that stand for those of the page: of text, of data, of marks, of lines."""

_OF_PAGE = {INK: "currentColor", BAR: "var(--bar)", MARK: "var(--mark)", RULE: "var(--rule)"}
_SETTINGS: dict[Any, Any] = {"svg.fonttype": "none"}
_DROPPED = re.compile(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_COLOUR = re.compile("|".join(_OF_PAGE))
_ID = re.compile(r' id="([^"]*)"')
_REFERENCE = re.compile(r'(url\(#|href="#)([^")]+)')
_FONT = re.compile(r' font-family: [^;"]*;| transform="rotate\(-0[^"]*"')
_DIGITS = re.compile(r"(\d+\.\d)\d+")
_LINES = re.compile(r"\s*\n\s*")


def to_svg(figure: Figure, prefix: str, label: str) -> str:
    """Draws a figure.

    Args:
        prefix: what ids within the figure begin with, which no other figure of the page has.
        label: what is read to those who do not see it.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    drawn = io.StringIO()
    # There is no other way to say this to the renderer; the salt makes ids the same in every run.
    with rc_context({**_SETTINGS, "svg.hashsalt": prefix}):
        FigureCanvasSVG(figure).print_svg(drawn, metadata={"Date": None})  # type: ignore[no-untyped-call]
    text = drawn.getvalue()
    body = _DROPPED.sub("", text[text.index("<svg") : text.rindex("</svg>")])
    head, content = body.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    assert box is not None
    used = {found[2] for found in _REFERENCE.finditer(content)}
    # Texts between tags are those of the figure: they stay as they are.
    content = _TAG.sub(lambda tag: _of_page(tag[0], prefix, used), _LINES.sub(" ", content))
    return f'<svg {box[0]} role="img" aria-label="{escape(label)}">{content.strip()}</svg>'


def _of_page(tag: str, prefix: str, used: set[str]) -> str:
    """A tag with ids of its own, without those that nothing refers to, in colours of the page."""
    tag = _ID.sub(lambda at: f' id="{prefix}{at[1]}"' if at[1] in used else "", tag)
    tag = _REFERENCE.sub(lambda at: f"{at[1]}{prefix}{at[2]}", tag)
    tag = _COLOUR.sub(lambda at: _OF_PAGE[at[0]], tag)
    return _DIGITS.sub(lambda at: at[1], _FONT.sub("", tag))
