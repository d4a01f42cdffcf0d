"""Reads Iceberg's extensions of ALTER TABLE: partition fields, write order, identifier fields."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from icebergds.errors import InvalidOptionError
from icebergds.spec.table_properties import DISTRIBUTION_MODE
from icebergds.spec.transforms import IdentityTransform
from icebergds.statements.commands.definitions.change import AlteredTable, Change
from icebergds.statements.text.cursor import Cursor
from icebergds.suggestions import did_you_mean


def read_added_field(cursor: Cursor) -> Change:
    """Reads what follows `ADD PARTITION FIELD`."""
    term = _term(cursor)
    return partial(_change_spec, added=term, name=_field_name(cursor))


def read_dropped_field(cursor: Cursor) -> Change:
    """Reads what follows `DROP PARTITION FIELD`: the name of a field, or a transform."""
    return partial(_change_spec, dropped=_term(cursor))


def read_replaced_field(cursor: Cursor) -> Change:
    """Reads what follows `REPLACE PARTITION FIELD`."""
    dropped = _term(cursor)
    cursor.expect("WITH")
    added = _term(cursor)
    return partial(_change_spec, dropped=dropped, added=added, name=_field_name(cursor))


def read_write_order(cursor: Cursor) -> Change:
    """Reads what follows `WRITE`: how new files are distributed and sorted."""
    by_partition, order, mode = False, None, None
    while not cursor.is_done:
        if not by_partition and cursor.take("DISTRIBUTED"):
            cursor.expect("BY", "PARTITION")
            by_partition = True
        elif order is None and cursor.take("UNORDERED"):
            order, mode = "", "none"
        elif order is None and (cursor.is_at("LOCALLY") or cursor.is_at("ORDERED")):
            mode = None if cursor.take("LOCALLY") else "range"
            cursor.expect("ORDERED", "BY")
            order = _order(cursor)
        else:
            raise cursor.error("DISTRIBUTED BY PARTITION, [LOCALLY] ORDERED BY or UNORDERED, once")
    if order is None and not by_partition:
        raise cursor.error("DISTRIBUTED BY PARTITION, [LOCALLY] ORDERED BY or UNORDERED")
    return partial(_set_write_order, order=order or "", mode="hash" if by_partition else mode)


def read_identifier_fields(cursor: Cursor) -> Change:
    """Reads what follows `SET IDENTIFIER FIELDS`."""
    return partial(_set_identifier_fields, paths=_paths(cursor))


def read_dropped_identifier_fields(cursor: Cursor) -> Change:
    """Reads what follows `DROP IDENTIFIER FIELDS`."""
    return partial(_drop_identifier_fields, paths=_paths(cursor))


_OF_ORDER = ("DISTRIBUTED", "LOCALLY", "ORDERED", "UNORDERED")


def _term(cursor: Cursor) -> Cursor:
    """Reads a column or a transform, as a cursor of its own."""
    start = cursor.at
    cursor.name("a column or a transform, such as days(ts)")
    if cursor.is_at_sign("("):
        cursor.group()
    return cursor.part(start, cursor.at)


def _field_name(cursor: Cursor) -> str | None:
    return cursor.identifier("the name of the partition field") if cursor.take("AS") else None


def _order(cursor: Cursor) -> str:
    """Reads the terms of an order, and returns them as written."""
    listed = cursor.group() if cursor.is_at_sign("(") else cursor.until(*_OF_ORDER)
    if listed.is_done:
        raise listed.error("columns or transforms, such as days(ts) DESC")
    return listed.written


def _paths(cursor: Cursor) -> list[tuple[str, ...]]:
    paths = [cursor.name("the name of a column")]
    while cursor.take_sign(","):
        paths.append(cursor.name("the name of a column"))
    return paths


def _change_spec(
    altered: AlteredTable,
    *,
    dropped: Cursor | None = None,
    added: Cursor | None = None,
    name: str | None = None,
) -> None:
    with altered.table.update_spec() as update:
        if dropped is not None:
            update.remove_field(_dropped_field(altered, dropped))
        if added is not None:
            update.add_field(added.written, None, name)


def _dropped_field(altered: AlteredTable, term: Cursor) -> str:
    """The partition field with a name or a transform.

    A column's name stands for its identity field.
    """
    read = term.part()
    path = read.name()
    if not read.is_done:
        return term.written
    table = altered.table
    column = altered.find_field(table.schema(), path)
    if column is not None:
        for field in table.spec().fields:
            if field.source_ids == (column.field_id,) and field.transform == IdentityTransform():
                return field.name
    return ".".join(path)


def _set_write_order(altered: AlteredTable, *, order: str, mode: str | None) -> None:
    with altered.table.transaction() as changes:
        with changes.update_sort_order() as update:
            if order:
                update.by(order)
        if mode is not None:
            changes.set_properties({DISTRIBUTION_MODE.name: mode})


def _set_identifier_fields(altered: AlteredTable, *, paths: Sequence[tuple[str, ...]]) -> None:
    with altered.update_schema() as update:
        update.set_identifier_fields(*paths)


def _drop_identifier_fields(altered: AlteredTable, *, paths: Sequence[tuple[str, ...]]) -> None:
    schema = altered.table.schema()
    kept = {each: schema.paths_by_id[each] for each in schema.identifier_field_ids}
    for path in paths:
        field = altered.find_field(schema, path)
        if field is None or field.field_id not in kept:
            shown, names = ".".join(path), [".".join(names) for names in kept.values()]
            raise InvalidOptionError(
                f"table {altered.table.name}: {shown} is not an identifier field; "
                f"{did_you_mean(shown, names) or 'there are ' + (', '.join(names) or 'none')}"
            )
        del kept[field.field_id]
    with altered.update_schema() as update:
        update.set_identifier_fields(*kept.values())
