"""Lets columns be qualified as before where a DataFrame stands for a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from icebergds.expr.names import in_backticks
from icebergds.statements.queries.relations import Relation
from icebergds.statements.spark_sql import Replacement
from icebergds.statements.text.cursor import Cursor, Span


def alias_of(relation: Relation, relations: Sequence[Relation]) -> str | None:
    """The alias that a relation gets, in backticks; None if the query gives one or none can be.

    It is the last part of the name, or the whole name if another relation has the same last part.
    """
    reference = relation.reference
    if reference.suffix.alias is not None or not reference.can_have_alias:
        return None
    last = reference.name[-1]
    return in_backticks([str(relation.name) if _is_shared(relation, relations) else last])


def qualifiers(query: Cursor, relations: Sequence[Relation]) -> Iterator[Replacement]:
    """What takes the place of qualifiers of columns that are longer than an alias.

    `lake.db.t.id` is the column `id` of the relation `lake.db.t`, if that has no alias.
    """
    names = {
        shorter: alias
        for relation in relations
        if (alias := alias_of(relation, relations)) is not None
        for name in (relation.reference.name, (relation.name.catalog, *relation.name.parts))
        for shorter in long_qualifiers(name)
    }
    places = {relation.reference.start for relation in relations}
    yield from replace_qualifiers(query, names, places)


def long_qualifiers(name: Sequence[str]) -> list[tuple[str, ...]]:
    """What may qualify columns of a relation beside the last part of its name, in lower case."""
    return [_lowered(name[first:]) for first in range(len(name) - 1)]


def replace_qualifiers(
    query: Cursor, names: Mapping[tuple[str, ...], str], places: Collection[int] = ()
) -> Iterator[Replacement]:
    """What takes the place of qualifiers of columns.

    Args:
        names: what qualifiers, in lower case, are replaced by; with empty text they are left out.
        places: where names of relations begin, which stay.
    """
    if not names:
        return
    cursor = Cursor(query.statement, query.tokens, query.at, query.end)
    while (token := cursor.peek()) is not None:
        start = cursor.at
        if not token.is_identifier or token.start in places:
            cursor.next()
            if token.start in places:
                _skip_name(cursor)
            continue
        parts, spans = _name(cursor)
        for length in range(len(parts) - 1, 0, -1):
            found = names.get(_lowered(parts[:length]))
            if found is not None:
                end = spans[length - 1].end if found else spans[length].start
                yield Replacement(Span(query.tokens[start].start, end), found)
                break


def _is_shared(relation: Relation, relations: Sequence[Relation]) -> bool:
    """Whether another table without an alias has the same last part."""
    counts = Counter(
        (each.reference.name[-1].lower(), each.name != relation.name)
        for each in relations
        if each.reference.suffix.alias is None
    )
    return counts[relation.reference.name[-1].lower(), True] > 0


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
