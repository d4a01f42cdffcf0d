"""Finds where a query names tables, from its tokens only.

Names of relations follow FROM, JOIN and TABLE, and the commas of a FROM clause. Names of common
table expressions are left out where these are visible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from icebergds.expr.sql_tokens import Token
from icebergds.statements.queries.suffixes import Suffix, ends_relation, read_suffix
from icebergds.statements.text.cursor import Cursor, Span


@dataclass(frozen=True, slots=True)
class Reference:
    """A place where a query names a table.

    Attributes:
        name: its parts, as written.
        start: the position of the name.
        suffix: what follows the name in the relation, such as a version and an alias.
        can_have_alias: whether an alias can be added if the query gives none.
        clause: the number of the FROM clause that contains it.
        stream_at: the position of the word in `STREAM name`; None for other names.
    """

    name: tuple[str, ...]
    start: int
    suffix: Suffix
    can_have_alias: bool = True
    clause: int = 0
    stream_at: int | None = None

    @property
    def is_stream(self) -> bool:
        return self.stream_at is not None

    @property
    def span(self) -> Span:
        """The name, the word STREAM before it, and the version and options after it."""
        return Span(self.start if self.stream_at is None else self.stream_at, self.suffix.end)


def find_references(
    query: Cursor,
    visible: frozenset[str] = frozenset(),
    name_of: Callable[[Cursor], tuple[str, ...] | None] | None = None,
) -> list[Reference]:
    """The places in a query, or in a condition with sub-queries, in order.

    Args:
        visible: names of common table expressions of the statement, in lower case.
        name_of: gives the name in `IDENTIFIER(...)`, or None if it is not known. Without it, such
            places are left out.

    Raises:
        InvalidStatementError: a version or the options of a table are malformed.
    """
    walk = _Walk(query.part(), name_of)
    if walk.cursor.is_at("SHOW"):
        # For Spark's own tables: `SHOW COLUMNS FROM table FROM namespace` is not a query.
        return []
    try:
        while not walk.cursor.is_done:
            walk.group(visible)
            # An unmatched parenthesis: Spark reports it.
            walk.cursor.take_sign(")")
    finally:
        query.is_extension |= walk.cursor.is_extension
    return walk.found


# Words that end a FROM clause; commas after them do not separate relations.
_ENDS_OF_FROM = frozenset(
    """
    WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY SELECT UNION
    INTERSECT EXCEPT MINUS SET WHEN
    """.split()  # noqa: SIM905
)
_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE")
# Words before TABLE in statements on Spark's own tables, which are not queries: `DROP TABLE name`.
_COMMANDS = """
    ALTER ANALYZE CACHE CREATE DESC DESCRIBE DROP EXTERNAL INTO LAZY ON OVERWRITE REFRESH REPAIR
    REPLACE TEMPORARY TRUNCATE UNCACHE
    """.split()  # noqa: SIM905
# Functions that separate their arguments with the word FROM.
_FUNCTIONS = ("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY", "POSITION")


@dataclass(slots=True)
class _Walk:
    """Walks over the tokens of a query, with nested groups of parentheses."""

    cursor: Cursor
    name_of: Callable[[Cursor], tuple[str, ...] | None] | None = None
    found: list[Reference] = field(default_factory=list)
    clauses: int = 0

    def group(
        self,
        visible: frozenset[str],
        *,
        lists: bool = False,
        is_function: bool = False,
        clause: int = 0,
    ) -> None:
        """Reads to the end of a group of parentheses, or of the query.

        Args:
            visible: names of common table expressions, in lower case.
            lists: whether commas separate relations.
            is_function: whether FROM separates arguments of a function.
            clause: the number of the enclosing FROM clause.
        """
        cursor = self.cursor
        before: Token | None = None
        word_before = ""
        while (token := cursor.peek()) is not None and not token.is_sign(")"):
            cursor.next()
            word = token.keyword
            if before is not None and before.is_sign("."):
                # A field may have any name.
                pass
            elif token.is_sign("("):
                self.group(visible, is_function=word_before in _FUNCTIONS)
                cursor.take_sign(")")
            elif token.is_sign(","):
                if lists:
                    self._relation(visible, clause)
            elif word == "WITH" and self._defines_tables():
                visible = self._common_tables(visible)
            elif word == "JOIN" or (
                word == "FROM" and not is_function and word_before != "DISTINCT"
            ):
                if word == "FROM":
                    self.clauses += 1
                    clause = self.clauses
                lists = True
                self._relation(visible, clause)
            elif word == "TABLE" and word_before not in _COMMANDS:
                self._named_by_table(visible)
            elif word in _ENDS_OF_FROM or (word == "LATERAL" and cursor.is_at("VIEW")):
                lists = False
            before, word_before = token, word

    def _relation(self, visible: frozenset[str], clause: int) -> None:
        """Reads the beginning of a relation, or all of it if it is a name."""
        cursor = self.cursor
        cursor.take("LATERAL")
        if cursor.is_at_sign("("):
            cursor.next()
            if not any(cursor.is_at(word) for word in _QUERIES):
                self._relation(visible, clause)
                self.group(visible, lists=True, clause=clause)
            else:
                self.group(visible)
            cursor.take_sign(")")
            return
        token = cursor.peek()
        if token is None or not token.is_identifier or token.is_word("VALUES", "TABLE"):
            return
        self._named(visible, clause)

    def _named(
        self, visible: frozenset[str], clause: int = 0, *, can_have_alias: bool = True
    ) -> None:
        stream_at = self._takes_stream()
        in_parentheses = stream_at is not None and self.cursor.take_sign("(")
        start = self.cursor.at
        first = self.cursor.tokens[start]
        name: tuple[str, ...] | None = self.cursor.name()
        if in_parentheses:
            self.cursor.expect_sign(")")
        elif self.cursor.is_at_sign("("):
            if self.name_of is None or not first.is_word("IDENTIFIER"):
                # A table-valued function; its arguments are read next.
                return
            name = self.name_of(self.cursor.group())
            if self.cursor.is_at_sign("("):
                return
        suffix = read_suffix(self.cursor, is_stream=stream_at is not None)
        if name is not None and (len(name) > 1 or name[0].lower() not in visible):
            self.found.append(
                Reference(name, first.start, suffix, can_have_alias, clause, stream_at)
            )

    def _takes_stream(self) -> int | None:
        """Reads the word of `STREAM name` and `STREAM(name)`; returns its position.

        As in Spark, `stream t` is never a table with an alias; `stream AS t` is one.
        """
        cursor = self.cursor
        then, after = cursor.peek(1), cursor.peek(2)
        if not cursor.is_at("STREAM") or then is None:
            return None
        is_name = after is not None and after.is_sign(".")
        if then.is_sign("("):
            # Otherwise it is a table-valued function of that name.
            group = cursor.part(cursor.at + 1).group()
            is_name = not group.is_done and group.tokens[group.at].is_identifier
            if is_name:
                group.name()
                is_name = group.is_done
        elif then.is_identifier and not is_name:
            behind = cursor.part(cursor.at + 1)
            is_name = not then.is_word("AS") and not ends_relation(behind)
        if not is_name:
            return None
        return cursor.next().start

    def _named_by_table(self, visible: frozenset[str]) -> None:
        """Reads the name in the query `TABLE name`, and in the argument `TABLE(name)`."""
        cursor, start = self.cursor, self.cursor.at
        in_parentheses = cursor.take_sign("(")
        token = cursor.peek()
        is_name = token is not None and token.is_identifier and not token.is_word(*_QUERIES)
        if is_name:
            is_name = cursor.is_at("IDENTIFIER")
            cursor.name()
            is_name = is_name or not cursor.is_at_sign("(")
        cursor.at = start + in_parentheses if is_name else start
        if is_name:
            self._named(visible, can_have_alias=False)

    def _defines_tables(self) -> bool:
        """Whether common table expressions come next."""
        before = self.cursor.peek(-2)
        if before is not None and before.is_sign(")") and self.cursor.is_at("ORDINALITY"):
            # `UNNEST(...) WITH ORDINALITY [AS] u(a, at)`.
            then = self.cursor.peek(2)
            is_query = then is not None and then.is_sign("(")
            return is_query and self.cursor.is_at("ORDINALITY", "AS")
        ahead = 1 if self.cursor.is_at("RECURSIVE") else 0
        name, then = self.cursor.peek(ahead), self.cursor.peek(ahead + 1)
        return (
            name is not None
            and name.is_identifier
            and then is not None
            and (then.is_word("AS") or then.is_sign("("))
        )

    def _common_tables(self, visible: frozenset[str]) -> frozenset[str]:
        """Reads common table expressions; returns the names that are visible after them."""
        cursor = self.cursor
        is_recursive = cursor.take("RECURSIVE")
        while True:
            name = cursor.identifier().lower()
            if cursor.is_at_sign("("):
                cursor.group()
            while not cursor.is_at_sign("("):
                cursor.next()
            cursor.next()
            self.group(visible | {name} if is_recursive else visible)
            cursor.expect_sign(")")
            visible |= {name}
            if not cursor.take_sign(","):
                return visible
