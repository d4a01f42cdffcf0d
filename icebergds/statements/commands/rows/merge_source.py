"""Reads the source of MERGE."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from icebergds.expr.names import in_backticks, quote_name
from icebergds.statements.commands.rows.target import Target, read_alias
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.queries.common_tables import CommonTables
from icebergds.statements.queries.naming import long_qualifiers
from icebergds.statements.queries.query import replace_tables
from icebergds.statements.spark_sql import Arguments, Replacement, spliced_sql, written
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.user_text import Piece

_UNNAMED = "icebergds_source"


@dataclass(frozen=True, slots=True)
class MergeSource:
    """The source of a merge.

    Attributes:
        relation: as written.
        alias: what the texts that Spark gets call it.
        name: its parts as written, if it has a name and no alias.
        full_name: if it is a table or view of ours.
    """

    relation: Cursor
    alias: str
    name: tuple[str, ...] = ()
    full_name: CatalogName | None = None

    def qualifiers(self) -> dict[tuple[str, ...], str]:
        """What takes the place of longer qualifiers of its columns."""
        alias = in_backticks([self.alias])
        names = [self.name]
        if self.full_name is not None:
            names.append((self.full_name.catalog, *self.full_name.parts))
        return {each: alias for name in names for each in long_qualifiers(name)}


def read_merge_source(scope: NameScope, cursor: Cursor) -> MergeSource:
    """Reads `table [[AS] alias]` or `(query) [[AS] alias]`."""
    start = cursor.at
    name: tuple[str, ...] = ()
    if cursor.is_at_sign("("):
        cursor.group()
    elif cursor.take_sign("{"):
        while not cursor.take_sign("}"):
            cursor.next()
    else:
        name = read_name(scope, cursor)
        if cursor.take("WITH"):
            cursor.group()
    relation = Cursor(cursor.statement, cursor.tokens, start, cursor.at)
    alias = read_alias(cursor, "ON")
    if alias is not None or not name:
        return MergeSource(relation, alias or _UNNAMED)
    return MergeSource(relation, name[-1], name, scope.table(name))


def all_rows(
    scope: NameScope, arguments: Arguments, common: CommonTables, relation: Cursor
) -> DataFrame:
    """The rows of a relation.

    Errors are those of `run_query`.
    """
    query = [Piece("SELECT * FROM ", relation.span.start, is_users=False), written(relation)]
    return common.query(scope, arguments, relation.statement, query)


def told_apart(target: Target, source: MergeSource) -> tuple[Target, MergeSource]:
    """Both sides under their whole names, if the last parts of these are the same."""
    if target.alias is not None or not source.name or target.called.lower() != source.alias.lower():
        return target, source
    whole = str(source.full_name) if source.full_name is not None else quote_name(source.name)
    return replace(target, shown=str(target.named.name)), replace(source, alias=whole)


def merge_into_table_of_spark(
    scope: NameScope, cursor: Cursor, arguments: Arguments, common: CommonTables
) -> DataFrame | None:
    """Runs a merge of a table of ours into one of Spark's own; None if the source is Spark's, too.

    Args:
        cursor: behind the name of the target.
    """
    if cursor.take("WITH"):
        cursor.group()
    read_alias(cursor, "USING")
    cursor.expect("USING")
    if cursor.is_at_sign("(", "{"):
        return None
    start = cursor.at
    name = read_name(scope, cursor)
    is_common = len(name) == 1 and name[0].lower() in common.names
    if is_common or scope.table(name) is None:
        return None
    if cursor.take("WITH"):
        cursor.group()
    source = Cursor(cursor.statement, cursor.tokens, start, cursor.at)
    frame = all_rows(scope, arguments, common, source)
    alias = read_alias(cursor, "ON")
    text = f" AS {in_backticks([name[-1]])}" if alias is None else ""
    whole = Cursor(cursor.statement, cursor.tokens, 0, cursor.end)
    found = [*replace_tables(scope, whole, arguments), Replacement(source.span, text, frame)]
    found.sort(key=lambda each: each.span.start)
    return spliced_sql(scope.spark, whole.statement, whole.span, found, arguments)
