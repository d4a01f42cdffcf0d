"""Keeps qualified column names valid when a DataFrame replaces a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pyspark.sql import DataFrame

from icebergds.expr.names import in_backticks
from icebergds.statements.queries.references import Reference
from icebergds.statements.queries.relations import Relation
from icebergds.statements.spark_sql import Replacement
from icebergds.statements.text.cursor import Cursor, Span


def aliases_of(
    query: Cursor, relations: Sequence[Relation], references: Sequence[Reference]
) -> list[str | None]:
    """The aliases to give relations, in backticks; None if the query gives one or cannot have one.

    As in Spark, it is the last part of the name. It is the whole name if something else has the
    same last part: in the same FROM clause, or if columns are qualified with longer names.

    Args:
        references: all references of the query, including Spark's tables.
    """
    places = {each.start for each in references}
    found: list[str | None] = []
    for relation in relations:
        reference = relation.reference
        if reference.suffix.alias is not None or not reference.can_have_alias:
            found.append(None)
            continue
        names = (reference.name, _full_name(relation))
        same = {each.reference.start for each in relations if each.name == relation.name}
        others = [each for each in references if each.start not in same]
        is_whole = _is_shared(relation, relations) or (
            is_qualified(query, names, places)
            and is_name_of_other(query, names[0][-1], others, places)
        )
        found.append(in_backticks([str(relation.name) if is_whole else reference.name[-1]]))
    return found


def placed(reference: Reference, rows: DataFrame | str, alias: str | None) -> list[Replacement]:
    """Replaces a name with rows, and adds its alias after what follows the name.

    Args:
        rows: a DataFrame, or SQL that reads them.
        alias: in backticks; None to add none.
    """
    text = "" if alias is None else f" AS {alias}"
    frame, before = (None, rows) if isinstance(rows, str) else (rows, "")
    at = reference.suffix.alias_at
    if at == reference.span.end:
        return [Replacement(reference.span, before + text, frame)]
    return [Replacement(reference.span, before, frame), Replacement(Span(at, at), text)]


def qualifiers(
    query: Cursor, relations: Sequence[Relation], aliases: Sequence[str | None]
) -> Iterator[Replacement]:
    """Replacements for column qualifiers that are longer than an alias.

    `lake.db.t.id` is the column `id` of the relation `lake.db.t`, if that has no alias. A qualifier
    that may refer to several tables is kept.
    """
    names: dict[tuple[str, ...], set[str]] = {}
    for relation, alias in zip(relations, aliases, strict=True):
        if alias is not None:
            for name in (relation.reference.name, _full_name(relation)):
                for longer in long_qualifiers(name):
                    names.setdefault(longer, set()).add(alias)
    places = {relation.reference.start for relation in relations}
    clear = {name: next(iter(found)) for name, found in names.items() if len(found) == 1}
    yield from replace_qualifiers(query, clear, places)


def is_qualified(
    query: Cursor, names: Iterable[Sequence[str]], places: Collection[int] = ()
) -> bool:
    """Whether columns are qualified with more than the last part of a table's name.

    Args:
        names: of the table.
        places: where names of relations begin.
    """
    longer = {each: "any" for name in names for each in long_qualifiers(name)}
    return any(True for _ in replace_qualifiers(query, longer, places))


def is_name_of_other(
    query: Cursor, last: str, others: Iterable[Reference], places: Collection[int]
) -> bool:
    """Whether something else in a query may have the last part of a table's name as its name.

    Args:
        others: the places where the query names other tables.
        places: where the names of all tables that it reads begin.
    """
    if any(each.suffix.alias is None and each.name[-1].lower() == last.lower() for each in others):
        return True
    tokens = query.tokens
    for at in range(query.at, query.end):
        is_table = tokens[at].start in places or (
            at > query.at and tokens[at - 1].is_word("UPDATE", "INTO")
        )
        if is_table:
            continue
        if tokens[at].is_identifier and tokens[at].identifier.lower() == last.lower():
            around = [tokens[n] for n in (at - 1, at + 1) if query.at <= n < query.end]
            # An alias, a common table expression, or a column.
            if not any(each.is_sign(".") for each in around):
                return True
    return False


def _full_name(relation: Relation) -> tuple[str, ...]:
    return (relation.name.catalog, *relation.name.parts)


def long_qualifiers(name: Sequence[str]) -> list[tuple[str, ...]]:
    """Longer qualifiers for columns of a relation than the last part of its name, in lower case."""
    return [_lowered(name[first:]) for first in range(len(name) - 1)]


def replace_qualifiers(
    query: Cursor, names: Mapping[tuple[str, ...], str], places: Collection[int] = ()
) -> Iterator[Replacement]:
    """Replacements for qualifiers of columns.

    Args:
        names: qualifiers, in lower case, with their replacements; empty text removes them.
        places: where names of relations begin; these are kept.
    """
    if not names:
        return
    cursor = query.part()
    while (token := cursor.peek()) is not None:
        start = cursor.at
        if not token.is_identifier or token.start in places:
            cursor.next()
            if token.start in places:
                _skip_name(cursor)
            continue
        parts, spans = _name(cursor)
        # In `lake.db.t.*`, the whole name is a qualifier.
        is_star = cursor.is_at_sign(".")
        for length in range(len(parts) - (not is_star), 0, -1):
            found = names.get(_lowered(parts[:length]))
            if found is not None and (found or length < len(parts)):
                end = spans[length - 1].end if found else spans[length].start
                yield Replacement(Span(query.tokens[start].start, end), found)
                break


def _is_shared(relation: Relation, relations: Sequence[Relation]) -> bool:
    """Whether another table without an alias has the same last part in the same FROM clause."""
    reference = relation.reference
    return any(
        each.name != relation.name
        and each.reference.suffix.alias is None
        and each.reference.clause == reference.clause
        and each.reference.name[-1].lower() == reference.name[-1].lower()
        for each in relations
    )


def _name(cursor: Cursor) -> tuple[list[str], list[Span]]:
    """The parts of a name, and where each stands."""
    parts, spans = [], []
    while True:
        token = cursor.next()
        parts.append(token.identifier)
        spans.append(Span(token.start, token.end))
        then = cursor.peek(1)
        if not cursor.is_at_sign(".") or then is None or not then.is_identifier:
            return parts, spans
        cursor.next()


def _skip_name(cursor: Cursor) -> None:
    while cursor.take_sign("."):
        cursor.next()


def _lowered(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)
