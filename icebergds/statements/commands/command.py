"""What runs statements that begin with certain words (`Command`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame

from icebergds.statements.names.scope import NameScope
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor

Run: TypeAlias = Callable[[NameScope, Cursor, Arguments], DataFrame | None]
"""Runs a statement from its first word on.

Parameters are literals in its text by then. It returns None if the statement concerns Spark's own
tables only, which then runs it, with our tables where it reads them.
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A kind of statement.

    Attributes:
        words: its first, in upper case.
        applies: whether a statement with these words is of the kind; None if it always is.
    """

    words: tuple[str, ...]
    run: Run
    applies: Callable[[Cursor], bool] | None = None

    def is_of(self, cursor: Cursor) -> bool:
        """Whether a statement is of this kind."""
        return cursor.is_at(*self.words) and (self.applies is None or self.applies(cursor))
