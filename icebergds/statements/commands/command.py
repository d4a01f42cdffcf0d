"""Runs statements that begin with certain words (`Command`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame

from icebergds.statements.names.scope import NameScope
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor

Run: TypeAlias = Callable[[NameScope, Cursor, Arguments], DataFrame | None]
"""Runs a statement, starting at its first word.

Parameters have been replaced by literals in its text. Returns None if the statement concerns only
Spark's own tables; Spark then runs it, with our tables where it reads them.
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A kind of statement.

    Attributes:
        words: the first words of the statement, in upper case.
        applies: decides if a statement with these words is of this kind; None if it always is.
    """

    words: tuple[str, ...]
    run: Run
    applies: Callable[[Cursor], bool] | None = None

    def is_of(self, cursor: Cursor) -> bool:
        """Whether a statement is of this kind."""
        return cursor.is_at(*self.words) and (self.applies is None or self.applies(cursor))
