"""Reads the table that a statement changes (`StatementTarget`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import SparkSession

from icebergds.api.table import Table
from icebergds.errors import InvalidFilterError, InvalidOptionError, InvalidStatementError
from icebergds.expr.names import in_backticks, quote_name, resolve
from icebergds.spec.table_properties import (
    AUTO_SCHEMA_EVOLUTION,
)
from icebergds.spec.types import NestedField
from icebergds.statements.names.scope import NameScope, audit_options
from icebergds.statements.names.table_names import read_name
from icebergds.statements.names.tables import NamedTable, find_table_to_write
from icebergds.statements.queries.naming import is_name_of_other, is_qualified, long_qualifiers
from icebergds.statements.queries.references import find_references
from icebergds.statements.queries.suffixes import spans_of_versions
from icebergds.statements.spark_sql import Replacement
from icebergds.statements.syntax import knows_newest_words, syntax_error
from icebergds.statements.text.cursor import Cursor, Span
from icebergds.statements.text.properties import read_properties
from icebergds.statements.text.splice import spliced


@dataclass(frozen=True, slots=True)
class StatementTarget:
    """The table that a statement changes.

    Attributes:
        name: its parts, as written.
        given: the write options in the statement.
        alias: its alias in the statement.
        shown: its name in the texts for Spark if there is no alias; by default the last part of its
            name.
    """

    named: NamedTable
    name: tuple[str, ...]
    given: Mapping[str, str] = field(default_factory=dict)
    alias: str | None = None
    shown: str | None = None

    @property
    def table(self) -> Table:
        return self.named.table

    @property
    def called(self) -> str:
        """The qualifier of its columns in the texts for Spark."""
        return self.alias or self.shown or self.name[-1]

    @property
    def may_evolve(self) -> bool:
        """Whether statements WITH SCHEMA EVOLUTION change its columns."""
        return AUTO_SCHEMA_EVOLUTION.of(self.table.properties)

    def qualifiers(self) -> dict[tuple[str, ...], str]:
        """Replacements for longer qualifiers of its columns."""
        if self.alias is not None:
            return {}
        alias = in_backticks([self.called])
        full = (self.named.name.catalog, *self.named.name.parts)
        return {each: alias for name in (self.name, full) for each in long_qualifiers(name)}

    def within(self, scope: NameScope, statement: Cursor) -> StatementTarget:
        """The table under its full name, if the last part could mean something else.

        Args:
            statement: what follows the name; its sub-queries may use the same last part, and
                qualify columns of this table with longer names.
        """
        if self.alias is not None or self.shown is not None:
            return self
        references = find_references(statement)
        others = [each for each in references if scope.table(each.name) != self.named.name]
        full = (self.named.name.catalog, *self.named.name.parts)
        places = {each.start for each in references}
        if is_qualified(statement, (self.name, full), places) and is_name_of_other(
            statement, self.name[-1], others, places
        ):
            return replace(self, shown=str(self.named.name))
        return self

    def column(self, parts: tuple[str, ...], statement: str) -> NestedField:
        """The column, or nested field, with a name that may be qualified.

        Raises:
            InvalidStatementError: there is no such column.
        """
        schema = self.table.schema()
        known = {*self.qualifiers(), (self.called.lower(),)}
        for length in range(len(parts) - 1, 0, -1):
            if tuple(part.lower() for part in parts[:length]) in known:
                try:
                    return resolve(quote_name(parts[length:]), schema, case_sensitive=False)
                except InvalidFilterError:
                    # A column may be named like the table.
                    break
        try:
            return resolve(quote_name(parts), schema, case_sensitive=False)
        except InvalidFilterError as error:
            raise InvalidStatementError(f"{statement}: table {self.named.name}: {error}") from None

    def write_arguments(self, scope: NameScope) -> dict[str, Any]:
        """The branch and options of a write: the statement's, or else the session's.

        Raises:
            InvalidOptionError: they contradict each other.
        """
        branch, options = self.named.branch, dict(self.given)
        if (chosen := options.get("branch")) is not None and branch is not None:
            if chosen != branch:
                raise InvalidOptionError(
                    f"table {self.named.name}: its name ends with branch {branch!r}, and option "
                    f"'branch' is {chosen!r}; give one"
                )
            branch = None
        if chosen is None and branch is None:
            options |= audit_options(scope.spark, self.table)
        return {"branch": branch, "options": options}


def read_target(
    scope: NameScope, cursor: Cursor, newer: Callable[[Cursor], Iterable[Span]]
) -> StatementTarget | None:
    """Reads the name of a table; None if it is Spark's own.

    Args:
        newer: gives the parts of the statement that not every version of Spark can parse, from
            after the name on.

    Raises:
        NoSuchTableError: there is no such table.
        InvalidStatementError: the name selects something that cannot be written to, or the
            statement as a whole is malformed.
        ParseException: Spark cannot parse the statement.
    """
    parts = read_name(scope, cursor)
    name = scope.table(parts)
    if name is None:
        return None
    _check_syntax(scope.spark, cursor, newer)
    return StatementTarget(find_table_to_write(scope, name), parts)


def read_options(cursor: Cursor) -> dict[str, str]:
    """Reads `WITH (options)` after the name and the alias of a table; empty if there are none."""
    then = cursor.peek(1)
    if not cursor.is_at("WITH") or then is None or not then.is_sign("("):
        return {}
    cursor.next()
    return read_properties(cursor.group())


def newer_options(cursor: Cursor) -> Iterator[Span]:
    """The options of the tables that DELETE, UPDATE and MERGE name."""
    while not cursor.is_done:
        cursor.until("WITH", *_ENDS_OF_TABLES)
        start = cursor.at
        if not cursor.take("WITH"):
            return
        if cursor.is_at_sign("("):
            cursor.group()
            yield cursor.part(start, cursor.at).span


_ENDS_OF_TABLES = ("SET", "WHERE", "ON", "WHEN")


def _check_syntax(
    spark: SparkSession, cursor: Cursor, newer: Callable[[Cursor], Iterable[Span]]
) -> None:
    """Raises Spark's error if the statement is malformed; older versions do not see newer parts."""
    whole = cursor.part(0)
    braces = list(_names_in_braces(whole))
    error = syntax_error(spark, spliced(whole, braces) if braces else cursor.statement)
    if error is None:
        return
    if knows_newest_words(spark) or cursor.is_at_sign("@"):
        raise error
    spans = {
        *newer(cursor.part()),
        *spans_of_versions(whole),
    }
    found = [*braces, *(Replacement(span) for span in spans)]
    found.sort(key=lambda each: each.span.start)
    if not spans or syntax_error(spark, spliced(whole, found)) is not None:
        raise error
    cursor.is_extension = True


def _names_in_braces(whole: Cursor) -> Iterator[Replacement]:
    """Plain names instead of names in braces that the user gave values for."""
    tokens = whole.tokens
    for at in range(whole.end - 2):
        if tokens[at].is_sign("{") and tokens[at + 2].is_sign("}"):
            yield Replacement(Span(tokens[at].start, tokens[at + 2].end), "given")


def read_alias(cursor: Cursor, *ends: str) -> str | None:
    """Reads `[AS] alias`; None if WITH, one of the keywords, or the end comes next."""
    if cursor.take("AS"):
        return cursor.identifier("an alias")
    if cursor.is_done or any(cursor.is_at(end) for end in ("WITH", *ends)):
        return None
    return cursor.identifier(f"an alias, {' or '.join(ends)}")
