"""Reads the clauses of ALTER TABLE for properties and the location."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from icebergds.api.table import Table
from icebergds.errors import InvalidOptionError, InvalidStatementError, UnsupportedFeatureError
from icebergds.statements.commands.definitions.change import AlteredTable, Change
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.properties import read_properties, read_property_name

# Properties that Spark reserves, and the clauses that set them.
_OF_SPARK = {
    "provider": "USING",
    "external": "CREATE EXTERNAL TABLE",
    "is_managed_location": "LOCATION",
    "owner": "nothing: it is the current user",
}
_OTHER_STATEMENTS = {
    "sort-order": "ALTER TABLE ... WRITE ORDERED BY",
    "identifier-fields": "ALTER TABLE ... SET IDENTIFIER FIELDS",
}
_LOCATION = "location"
_CURRENT_SNAPSHOT = "current-snapshot-id"
_CHERRY_PICK = "cherry-pick-snapshot-id"


def read_set_properties(cursor: Cursor) -> Change:
    """Reads what follows `SET TBLPROPERTIES`.

    `location`, `current-snapshot-id` and `cherry-pick-snapshot-id` change the table itself.

    Raises:
        UnsupportedFeatureError: another statement sets the property.
    """
    properties = read_properties(cursor.group())
    refuse_reserved(properties)
    for name in properties:
        if (statement := _OTHER_STATEMENTS.get(name.lower())) is not None:
            raise UnsupportedFeatureError(f"property {name!r} is reserved; use {statement}")
    return partial(_set, properties=properties)


def read_unset_properties(cursor: Cursor) -> Change:
    """Reads what follows `UNSET TBLPROPERTIES`."""
    cursor.take("IF", "EXISTS")
    listed = cursor.group()
    names = [read_property_name(listed)]
    while listed.take_sign(","):
        names.append(read_property_name(listed))
    listed.expect_end()
    return partial(_unset, names=names)


def read_location(cursor: Cursor) -> Change:
    """Reads what follows `SET LOCATION`."""
    return partial(_set, properties={_LOCATION: cursor.text("a location in quotes")})


def refuse_reserved(properties: Mapping[str, str]) -> None:
    """Raises InvalidStatementError for properties that Spark reserves."""
    for name in properties:
        if (clause := _OF_SPARK.get(name)) is not None:
            raise InvalidStatementError(f"property {name!r} is reserved; use {clause}")


def _set(altered: AlteredTable, *, properties: Mapping[str, str]) -> None:
    reserved = {name.lower(): value for name, value in properties.items() if _is_reserved(name)}
    others = {name: value for name, value in properties.items() if not _is_reserved(name)}
    if not reserved:
        altered.table.set_properties(others)
        return
    if _CURRENT_SNAPSHOT in reserved and _CHERRY_PICK in reserved:
        raise InvalidOptionError(
            f"table {altered.table.name}: {_CURRENT_SNAPSHOT} and {_CHERRY_PICK} are set together; "
            "set one after the other, because the result depends on their order"
        )
    with altered.table.transaction() as changes:
        _set_reserved(changes, reserved)
        if others:
            changes.set_properties(others)


def _set_reserved(changes: Table, properties: Mapping[str, str]) -> None:
    for name, value in properties.items():
        if name == _LOCATION:
            changes.update_location(value)
        elif name == _CURRENT_SNAPSHOT:
            with changes.manage_snapshots() as manage:
                manage.set_current_snapshot(_snapshot_id(name, value))
        else:
            with changes.manage_snapshots() as manage:
                manage.cherry_pick(_snapshot_id(name, value))


def _unset(altered: AlteredTable, *, names: Sequence[str]) -> None:
    altered.table.remove_properties(*names)


def _is_reserved(name: str) -> bool:
    return name.lower() in (_LOCATION, _CURRENT_SNAPSHOT, _CHERRY_PICK)


def _snapshot_id(name: str, value: str) -> int:
    if not value.strip().isdecimal():
        raise InvalidOptionError(f"{name} = {value!r}: expected the id of a snapshot")
    return int(value)
