"""Finds what a query can need of each table: a condition and columns.

sqlglot parses the query only for this. Spark runs it unchanged, over at least the rows that matter.
What cannot be analysed prunes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from icebergds.errors import InvalidStatementError
from icebergds.expr.nodes import TRUE, Expr
from icebergds.expr.sql_tokens import Token
from icebergds.operations.conditions import Setting, is_read_by_setting
from icebergds.operations.read.first_rows import FirstRows
from icebergds.scan.projection import metadata_columns
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField, StructType
from icebergds.statements.names.tables import NamedTable
from icebergds.statements.queries.aggregates import aggregate_queries
from icebergds.statements.queries.analysis import Equality, QueryAnalysis
from icebergds.statements.queries.derived import selects_of
from icebergds.statements.queries.first_rows import first_rows, plain_selects
from icebergds.statements.queries.joined_values import with_joined_values
from icebergds.statements.queries.joins import is_plain, relations_of
from icebergds.statements.queries.needed import AggregateQuery, ColumnPath, Needed, ViewNeeded
from icebergds.statements.queries.outline import Outline, outline_of
from icebergds.statements.queries.relations import Relation
from icebergds.statements.queries.stars import StarOfColumns, stars_of_columns
from icebergds.statements.text.cursor import Cursor, Span

_LOG = logging.getLogger(__name__)
# A name in backticks may then match many columns.
_REGEX_NAMES = "spark.sql.parser.quotedRegexColumnNames"
# A node of sqlglot's tree.
_Node = Any


def prune(
    query: Cursor,
    relations: Sequence[Relation],
    setting: Setting,
    time_zone: str | None,
    needed: ViewNeeded | None = None,
) -> list[Needed]:
    """What a query can need of each relation; more than that if it is not known.

    Args:
        setting: of the session that runs the query.
        time_zone: of timestamps without an offset.
        needed: of the query's result, if the query is a view's.

    Raises:
        InvalidStatementError: a query over several tables names metadata columns beside `*`.
    """
    if setting(_REGEX_NAMES) == "true" and "`" in query.written:
        return [Needed() for _ in relations]
    tree, outline = _parsed(query, relations)
    has_same_text = not is_read_by_setting(query.written, setting)
    said = _Said()
    aggregates: Mapping[int, AggregateQuery] = {}
    first: Mapping[int, FirstRows] = {}
    plain: Set[int] = frozenset()
    if tree is not None and outline is not None:
        analysis = QueryAnalysis(relations, tree, outline, setting, time_zone, datetime.now(UTC))
        try:
            if has_same_text:
                # Before conditions of outer queries are added to those of inner ones.
                aggregates = aggregate_queries(tree, analysis, query)
                first = first_rows(tree, analysis)
                plain = plain_selects(tree, analysis)
            said = _said(tree, analysis, needed, has_same_text=has_same_text)
        except RecursionError:
            _LOG.info("too many queries within each other: %s", query.written[:200])
    conditions = with_joined_values(relations, said.conditions, said.equalities)
    as_one = (needed is not None and needed.as_one) or _has_sub_queries_as_columns(tree)
    words = words_of(query)
    is_turned = not words.isdisjoint({"pivot", "unpivot", "identifier"})
    found = [
        _needed(
            relation,
            words,
            conditions.get(at, TRUE),
            partial(stars_of_columns, query, tree),
            is_explicit=at in said.explicit and not is_turned,
            query=query if has_same_text else None,
        )
        for at, relation in enumerate(relations)
    ]
    return [
        replace(
            each,
            as_one=as_one,
            aggregates=None if each.stars else aggregates.get(at),
            first=first.get(at),
            may_be_local=at in plain,
        )
        for at, each in enumerate(found)
    ]


@dataclass(frozen=True, slots=True)
class _Said:
    """What the SELECTs of a query say about relations, which are identified by number.

    Attributes:
        explicit: the relations of which only columns that the query names can be needed.
    """

    conditions: Mapping[int, Expr] = field(default_factory=dict)
    equalities: Sequence[Equality] = ()
    explicit: Set[int] = frozenset()


def _said(
    tree: _Node, analysis: QueryAnalysis, needed: ViewNeeded | None, *, has_same_text: bool
) -> _Said:
    conditions: dict[int, Expr] = {}
    equalities: list[Equality] = []
    explicit: set[int] = set()
    if has_same_text:
        analysis.carry_conditions(needed)
    for select in selects_of(tree):
        numbers = analysis.numbers(select)
        if not takes_all(select):
            explicit |= analysis.named(select, numbers)
        if has_same_text and is_plain(select):
            conditions |= analysis.conditions(select, numbers)
            equalities.extend(analysis.equalities(select))
    return _Said(conditions, equalities, explicit)


def _has_sub_queries_as_columns(tree: _Node | None) -> bool:
    """Whether a SELECT of a query may have sub-queries among its columns."""
    from sqlglot.expressions import Select

    if tree is None:
        return True
    return any(
        column.find(Select) is not None
        for select in tree.find_all(Select)
        for column in select.expressions
    )


def _parsed(query: Cursor, relations: Sequence[Relation]) -> tuple[_Node | None, Outline | None]:
    hidden: list[Span] = []
    for reference in (each.reference for each in relations):
        if reference.stream_at is not None:
            hidden.append(Span(reference.stream_at, reference.start))
        hidden.append(Span(_end_of_name(query, reference.start), reference.span.end))
    outline = outline_of(query, hidden)
    return (None, None) if outline is None else (outline.parsed(), outline)


def _end_of_name(query: Cursor, start: int) -> int:
    at = next(n for n in range(query.at, query.end) if query.tokens[n].start == start)
    cursor = query.part(at)
    cursor.name()
    return query.tokens[cursor.at - 1].end


def _needed(
    relation: Relation,
    words: frozenset[str],
    condition: Expr,
    stars_of: Callable[[Sequence[str]], Sequence[StarOfColumns]],
    *,
    is_explicit: bool,
    query: Cursor | None,
) -> Needed:
    source = relation.source
    if relation.schema is None:
        return Needed()
    if not isinstance(source, NamedTable):
        return Needed(condition)
    columns = named_columns(
        words,
        relation.schema,
        () if source.metadata_table is not None else metadata_columns(source.table.metadata),
        takes_all=not is_explicit,
        query=query,
    )
    own = [field.name for field in relation.schema.fields]
    if is_explicit or columns is None:
        return Needed(condition, columns)
    # A star would include metadata columns, which are read in addition to all others.
    stars = stars_of(own)
    if not stars:
        names = ", ".join(name for name, *_ in columns if name not in own)
        raise InvalidStatementError(
            f"table {relation.name}: {names} cannot be read beside * here; list the columns"
        )
    return Needed(condition, columns, stars)


def words_of(query: Cursor) -> frozenset[str]:
    """All words and names of a query in lower case, which include all that it needs."""
    tokens = query.tokens[query.at : query.end]
    return frozenset(token.identifier.lower() for token in tokens if token.is_identifier)


def takes_all(select: _Node) -> bool:
    """Whether a SELECT may need columns of its relations that it does not name."""
    if not select.expressions:
        return True
    return any(
        star.parent.key != "count" and any(each is select for each in _selects_of(star))
        for star in _stars(select)
    ) or any(join.args.get("method") for join in select.args.get("joins") or ())


def named_columns(
    words: frozenset[str],
    schema: Schema,
    further: Sequence[NestedField],
    *,
    takes_all: bool,
    query: Cursor | None = None,
) -> Sequence[ColumnPath] | None:
    """The columns that a query can need; None for exactly the table's own columns.

    Args:
        words: of the query.
        further: the table's metadata columns.
        takes_all: whether it may need columns that it does not name.
        query: its text, if the fields of structs can be derived from it.
    """
    own = [field.name for field in schema.fields]
    known = {name.lower() for name in own}
    metadata_columns = [
        (field.name,) for field in further if field.name in words and field.name not in known
    ]
    if takes_all:
        return [*((name,) for name in own), *metadata_columns] if metadata_columns else None
    wanted = [
        path
        for field in schema.fields
        if field.name.lower() in words
        for path in ([(field.name,)] if query is None else _named_fields(query, field))
    ]
    # A row has at least one column.
    return wanted + metadata_columns or [(own[0],)]


def _named_fields(query: Cursor, column: NestedField) -> list[ColumnPath]:
    """The fields of a struct that a query names; the column if the query may need all of it."""
    whole = (column.name,)
    if not isinstance(column.field_type, StructType):
        return [whole]
    tokens = query.tokens[query.at : query.end]
    name = column.name.lower()
    found = dict.fromkeys(
        _path_at(tokens, at, column)
        for at, token in enumerate(tokens)
        if token.is_identifier and token.identifier.lower() == name
    )
    within = [path for path in found if not any(path[:n] in found for n in range(1, len(path)))]
    return within or [whole]


def _path_at(tokens: Sequence[Token], at: int, column: NestedField) -> ColumnPath:
    """The field that a dotted name leads to through structs."""
    path, field_type = [column.name], column.field_type
    while isinstance(field_type, StructType):
        ahead = tokens[at + 1 : at + 3]
        if len(ahead) < 2 or not ahead[0].is_sign(".") or not ahead[1].is_identifier:
            break
        name = ahead[1].identifier.lower()
        fields = [field for field in field_type.fields if field.name.lower() == name]
        if len(fields) != 1:
            break
        path.append(fields[0].name)
        field_type, at = fields[0].field_type, at + 2
    return tuple(path)


def _stars(select: _Node) -> Sequence[_Node]:
    from sqlglot.expressions import Star

    return list(select.find_all(Star))


def _selects_of(star: _Node) -> Iterator[_Node]:
    """The SELECTs whose relations a star may expand to: its own, and those around LATERAL."""
    from sqlglot.expressions import Lateral, Select

    select = star.find_ancestor(Select)
    yield select
    if star.parent.key != "column" and relations_of(select):
        return
    while (around := select.find_ancestor(Select, Lateral)) is not None and (
        around.key == "lateral"
    ):
        select = around.find_ancestor(Select)
        yield select
