"""Reads the clauses of ALTER TABLE that add, change, rename, replace and drop columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from icebergds.api.table_definition import type_argument
from icebergds.api.update_schema import UpdateSchema
from icebergds.errors import UnsupportedFeatureError
from icebergds.spec.types import IcebergType
from icebergds.statements.commands.definitions.change import AlteredTable, Change
from icebergds.statements.commands.definitions.columns import (
    ColumnDefinition,
    Place,
    evaluate_default,
    read_column,
    read_columns,
    read_default,
    read_place,
    read_type,
)
from icebergds.statements.text.cursor import Cursor

_Path: TypeAlias = tuple[str, ...]
_Edit: TypeAlias = Callable[[AlteredTable, UpdateSchema], None]


def read_added(cursor: Cursor) -> Change:
    """Reads what follows `ADD COLUMN[S]`: columns, with or without parentheses."""
    columns = read_columns(cursor.group() if cursor.is_at_sign("(") else cursor)
    return partial(_change, edits=[partial(_add, column=column) for column in columns])


def read_dropped(cursor: Cursor) -> Change:
    """Reads what follows `DROP COLUMN[S]`."""
    only_existing = cursor.take("IF", "EXISTS")
    listed = cursor.group() if cursor.is_at_sign("(") else cursor
    paths = [listed.name("the name of a column")]
    while listed.take_sign(","):
        paths.append(listed.name("the name of a column"))
    listed.expect_end()
    return partial(
        _change, edits=[partial(_drop, path=path, only_existing=only_existing) for path in paths]
    )


def read_renamed(cursor: Cursor) -> Change:
    """Reads what follows `RENAME COLUMN`."""
    path = cursor.name("the name of a column")
    cursor.expect("TO")
    new_name = cursor.identifier("the new name of the column")
    return partial(_change, edits=[partial(_rename, path=path, new_name=new_name)])


def read_changed(cursor: Cursor) -> Change:
    """Reads what follows `ALTER [COLUMN]`: columns, each with its changes."""
    edits = _column_actions(cursor)
    while cursor.take_sign(","):
        edits += _column_actions(cursor)
    return partial(_change, edits=edits)


def read_changed_as_hive(cursor: Cursor) -> Change:
    """Reads what follows `CHANGE [COLUMN]`: as `ALTER`, or `name name type` as in Hive.

    Raises:
        UnsupportedFeatureError: it renames the column, or makes it NOT NULL.
    """
    start = cursor.at
    path = cursor.name("the name of a column")
    if any(cursor.is_at(word) for word in _ACTIONS):
        cursor.at = start
        return read_changed(cursor)
    column = read_column(cursor)
    if len(column.path) > 1 or column.path[0].lower() != path[-1].lower():
        raise UnsupportedFeatureError(
            f"CHANGE COLUMN {'.'.join(path)}: it cannot rename a column; use ALTER TABLE ... "
            "RENAME COLUMN ... TO ..."
        )
    if column.required or column.default is not None:
        raise UnsupportedFeatureError(
            f"CHANGE COLUMN {'.'.join(path)}: NOT NULL and DEFAULT are not supported here; use "
            "ALTER TABLE ... ALTER COLUMN ... SET ..."
        )
    edits: list[_Edit] = [partial(_set_type, path=path, type_text=column.type_text)]
    if column.comment is not None:
        edits.append(partial(_set_comment, path=path, comment=column.comment))
    if column.place is not None:
        edits.append(partial(_move, path=path, place=column.place))
    return partial(_change, edits=edits)


def read_replaced(cursor: Cursor) -> Change:
    """Reads what follows `REPLACE COLUMNS`.

    Raises:
        UnsupportedFeatureError: a column is nested in another, or has a position.
    """
    columns = read_columns(cursor.group())
    for column in columns:
        if len(column.path) > 1 or column.place is not None:
            raise UnsupportedFeatureError(
                f"REPLACE COLUMNS: {'.'.join(column.path)} is inside of another column or has FIRST"
                " or AFTER; give all columns of the table in their order"
            )
    return partial(_change, edits=[_drop_all, *(partial(_add, column=each) for each in columns)])


def set_column_comments(comments: Mapping[_Path, str]) -> Change:
    """Sets comments of columns; the empty text removes one."""
    edits = [partial(_set_comment, path=path, comment=text) for path, text in comments.items()]
    return partial(_change, edits=edits)


_ACTIONS = ("TYPE", "COMMENT", "FIRST", "AFTER", "SET", "DROP")


def _column_actions(cursor: Cursor) -> list[_Edit]:
    """Reads a column and its changes."""
    path = cursor.name("the name of a column")
    found: list[_Edit] = []
    while (edit := _action(cursor, path)) is not None:
        found.append(edit)
    if not found:
        raise cursor.error("TYPE, COMMENT, FIRST, AFTER, SET or DROP")
    return found


def _action(cursor: Cursor, path: _Path) -> _Edit | None:
    if cursor.take("TYPE"):
        return partial(_set_type, path=path, type_text=read_type(cursor))
    if cursor.take("COMMENT"):
        return partial(_set_comment, path=path, comment=cursor.text())
    if (place := read_place(cursor)) is not None:
        return partial(_move, path=path, place=place)
    if cursor.take("SET", "NOT", "NULL"):
        return partial(_set_required, path=path, required=True)
    if cursor.take("DROP", "NOT", "NULL"):
        return partial(_set_required, path=path, required=False)
    if cursor.take("SET", "DEFAULT"):
        return partial(_set_default, path=path, text=read_default(cursor))
    if cursor.take("DROP", "DEFAULT"):
        return partial(_set_default, path=path, text="NULL")
    return None


def _change(altered: AlteredTable, *, edits: Sequence[_Edit]) -> None:
    with altered.update_schema() as update:
        for edit in edits:
            edit(altered, update)


def _add(altered: AlteredTable, update: UpdateSchema, *, column: ColumnDefinition) -> None:
    path = column.path
    found = type_argument(".".join(path), column.type_text)
    default = _evaluated(altered, path, found, column.default)
    update.add_column(path, found, column.comment, column.required, default)
    if column.place is not None:
        _move(altered, update, path=path, place=column.place)


def _drop(altered: AlteredTable, update: UpdateSchema, *, path: _Path, only_existing: bool) -> None:
    if only_existing and altered.find_field(update.schema, path) is None:
        return
    update.delete_column(path)


def _drop_all(altered: AlteredTable, update: UpdateSchema) -> None:
    for field in update.schema.fields:
        update.delete_column((field.name,))


def _rename(altered: AlteredTable, update: UpdateSchema, *, path: _Path, new_name: str) -> None:
    update.rename_column(path, (new_name,))


def _set_type(altered: AlteredTable, update: UpdateSchema, *, path: _Path, type_text: str) -> None:
    update.update_column(path, type_text)


def _set_comment(altered: AlteredTable, update: UpdateSchema, *, path: _Path, comment: str) -> None:
    update.update_column(path, doc=comment)


def _set_required(
    altered: AlteredTable, update: UpdateSchema, *, path: _Path, required: bool
) -> None:
    update.update_column(path, required=required)


def _move(altered: AlteredTable, update: UpdateSchema, *, path: _Path, place: Place) -> None:
    if place.after is None:
        update.move_first(path)
    else:
        update.move_after(path, (*path[:-1], place.after))


def _set_default(altered: AlteredTable, update: UpdateSchema, *, path: _Path, text: str) -> None:
    field = altered.find_field(update.schema, path)
    # The update raises if the column does not exist.
    value = None if field is None else _evaluated(altered, path, field.field_type, text)
    update.set_default(path, value)


def _evaluated(
    altered: AlteredTable, path: _Path, field_type: IcebergType, text: str | None
) -> object:
    if text is None:
        return None
    return evaluate_default(altered.spark, ".".join(path), field_type, text)
