"""Puts other text in the places of parts of a statement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from icebergds.statements.text.cursor import Cursor, Span


class Splice(Protocol):
    """A part of a statement, and the text that takes its place."""

    @property
    def span(self) -> Span: ...

    @property
    def text(self) -> str: ...


def spliced(part: Cursor, replacements: Iterable[Splice]) -> str:
    """A part of a statement as it was written, with other text in some places.

    Args:
        replacements: in their order; they do not overlap.
    """
    span = part.span
    pieces: list[str] = []
    at = span.start
    for each in replacements:
        pieces += [part.statement[at : each.span.start], each.text]
        at = each.span.end
    return "".join([*pieces, part.statement[at : span.end]])
