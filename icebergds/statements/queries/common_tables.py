"""Reads the common table expressions that a statement begins with."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from icebergds.errors import InvalidStatementError
from icebergds.expr.names import in_backticks
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.query import run_query
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


@dataclass(frozen=True, slots=True)
class CommonTables:
    """The common table expressions of a statement.

    Attributes:
        text: the clause as it was written, from WITH on; empty if there is none.
        names: in lower case.
    """

    text: str = ""
    names: frozenset[str] = frozenset()

    def query(self, scope: NameScope, arguments: Arguments, text: str) -> DataFrame:
        """Runs a query that may use them.

        Errors are those of `run_query`.
        """
        tokens = sql_tokens(text)
        if tokens and tokens[0].is_word("WITH") and self.text:
            text = f"({text}\n)"
        whole = f"{self.text} {text}" if self.text else text
        tokens = sql_tokens(whole)
        if tokens is None:
            raise InvalidStatementError(f"{text}: the query cannot be read")
        return run_query(scope, Cursor(whole, tokens), arguments)

    def frame(self, scope: NameScope, arguments: Arguments, name: str) -> DataFrame:
        """The rows of one of them."""
        return self.query(scope, arguments, f"SELECT * FROM {in_backticks([name])}")


NONE = CommonTables()


def read_common_tables(cursor: Cursor) -> CommonTables:
    """Reads `WITH name [(columns)] [AS] (query), ...`.

    Raises:
        InvalidStatementError: something else stands there.
    """
    start = cursor.at
    cursor.expect("WITH")
    cursor.take("RECURSIVE")
    names = []
    while True:
        names.append(cursor.identifier("the name of a common table expression").lower())
        if cursor.is_at_sign("("):
            # The names of its columns; or the query, as AS can be left out.
            cursor.group()
        if cursor.take("MAX", "RECURSION", "LEVEL"):
            cursor.integer()
        if cursor.take("AS") or cursor.is_at_sign("("):
            cursor.group()
        if not cursor.take_sign(","):
            break
    clause = Cursor(cursor.statement, cursor.tokens, start, cursor.at)
    return CommonTables(clause.written, frozenset(names))
