"""Rewrites Spark's messages about a text with DataFrames to the user's text (`Splicing`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

# PySpark's names for the DataFrames in a text.
_GENERATED = re.compile(r"_pyspark_[0-9a-f]{32}(?: AS (?P<alias>`(?:[^`]|``)*`))?")
_NAME_LENGTH = len("_pyspark_") + 32
_PLACE = re.compile(r"(?P<before>\bline )(?P<line>\d+)(?P<between>,? pos(?:ition)? )(?P<pos>\d+)")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text that Spark ran.

    Attributes:
        text: as passed to Spark, or None for the name of a DataFrame.
        start: its position in the user's text, or that of what it replaces.
        is_users: whether the user wrote it.
    """

    text: str | None
    start: int
    is_users: bool = True

    @property
    def length(self) -> int:
        return _NAME_LENGTH if self.text is None else len(self.text)


@dataclass(frozen=True, slots=True)
class Splicing:
    """The user's text, and the pieces of the one that Spark ran."""

    original: str
    pieces: tuple[Piece, ...]

    def restore(self, error: Any) -> None:
        """Rewrites an error of classic Spark for the user's text; leaves other errors unchanged."""
        description = getattr(error, "_desc", None)
        if isinstance(description, str):
            placed = _PLACE.sub(self._placed, description)
            error._desc = _GENERATED.sub(lambda found: found["alias"] or "table", placed)

    def _placed(self, found: re.Match[str]) -> str:
        offset = self._offset(int(found["line"]), int(found["pos"]))
        if offset is None:
            return found[0]
        before = self.original[:offset]
        line, position = before.count("\n") + 1, offset - (before.rfind("\n") + 1)
        return f"{found['before']}{line}{found['between']}{position}"

    def _offset(self, line: int, position: int) -> int | None:
        """The position in the user's text of a position in the text that Spark ran."""
        ran = "".join(
            "x" * piece.length if piece.text is None else piece.text for piece in self.pieces
        )
        lines = ran.split("\n")
        if line > len(lines):
            return None
        left = sum(len(each) + 1 for each in lines[: line - 1]) + position
        for piece in self.pieces:
            if left < piece.length:
                return piece.start + (left if piece.is_users else 0)
            left -= piece.length
        return len(self.original)
