"""Reads the common table expressions that a statement begins with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from icebergds.errors import InvalidStatementError
from icebergds.expr.names import in_backticks
from icebergds.expr.sql_tokens import sql_tokens
from icebergds.statements.names.scope import NameScope
from icebergds.statements.queries.query import run_query
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.user_text import Piece, Splicing


@dataclass(frozen=True, slots=True)
class CommonTables:
    """The common table expressions of a statement.

    Attributes:
        text: the clause as written, from WITH on; empty if there is none.
        names: in lower case.
        start: the position of the clause in the statement.
    """

    text: str = ""
    names: frozenset[str] = frozenset()
    start: int = 0

    def query(
        self, scope: NameScope, arguments: Arguments, statement: str, query: Sequence[Piece]
    ) -> DataFrame:
        """Runs a query that may use them.

        Args:
            statement: the statement that positions in Spark's errors refer to.
            query: the text, in pieces from the statement and added ones.

        Errors are those of `run_query`.
        """
        text = "".join(each.text or "" for each in query)
        tokens = sql_tokens(text)
        pieces = list(query)
        if self.text and tokens and tokens[0].is_word("WITH"):
            pieces = [Piece("(", 0, is_users=False), *pieces, Piece("\n)", 0, is_users=False)]
        if self.text:
            pieces = [Piece(self.text, self.start), Piece(" ", 0, is_users=False), *pieces]
        whole = "".join(each.text or "" for each in pieces)
        tokens = sql_tokens(whole)
        if tokens is None:
            raise InvalidStatementError(f"{text}: the query cannot be read")
        try:
            return run_query(scope, Cursor(whole, tokens), arguments)
        except AnalysisException as error:
            Splicing(statement, tuple(pieces)).restore(error)
            raise

    def frame(self, scope: NameScope, arguments: Arguments, statement: str, name: str) -> DataFrame:
        """The rows of one of the common table expressions."""
        text = f"SELECT * FROM {in_backticks([name])}"
        return self.query(scope, arguments, statement, [Piece(text, self.start, is_users=False)])


NONE = CommonTables()


def read_common_tables(cursor: Cursor) -> CommonTables:
    """Reads `WITH name [(columns)] [AS] (query), ...`.

    Raises:
        InvalidStatementError: the clause is malformed.
    """
    start = cursor.at
    cursor.expect("WITH")
    cursor.take("RECURSIVE")
    names = []
    while True:
        names.append(cursor.identifier("the name of a common table expression").lower())
        if cursor.is_at_sign("("):
            # The column names; or the query, because AS is optional.
            cursor.group()
        if cursor.take("MAX", "RECURSION", "LEVEL"):
            cursor.integer()
        if cursor.take("AS") or cursor.is_at_sign("("):
            cursor.group()
        if not cursor.take_sign(","):
            break
    clause = cursor.part(start, cursor.at)
    return CommonTables(clause.written, frozenset(names), clause.span.start)
