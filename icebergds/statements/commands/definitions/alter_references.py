"""Reads Iceberg's extensions of ALTER TABLE for branches and tags."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from icebergds.api.table import Table
from icebergds.errors import NoSuchSnapshotError
from icebergds.spec.snapshot import RefType
from icebergds.statements.commands.definitions.change import AlteredTable, Change
from icebergds.statements.text.cursor import Cursor

_MILLISECONDS = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}


@dataclass(frozen=True, slots=True)
class _Reference:
    """A branch or tag that a statement creates or moves; None leaves a value unchanged."""

    ref_type: RefType
    name: str
    create: bool
    replace: bool
    if_not_exists: bool
    snapshot_id: int | None = None
    max_ref_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None


def read_reference(cursor: Cursor) -> Change:
    """Reads `CREATE [OR REPLACE] | REPLACE` of a `BRANCH` or `TAG`."""
    create = cursor.take("CREATE")
    if create and cursor.take("OR"):
        cursor.expect("REPLACE")
        replace = True
    else:
        replace = not create and cursor.take("REPLACE")
    ref_type = _ref_type(cursor)
    if_not_exists = not replace and cursor.take("IF", "NOT", "EXISTS")
    name = cursor.identifier(f"the name of the {ref_type}")
    snapshot_id = max_ref_age = count = max_snapshot_age = None
    if cursor.take("AS", "OF"):
        cursor.expect("VERSION")
        snapshot_id = cursor.integer("the id of a snapshot")
    if cursor.take("RETAIN"):
        max_ref_age = _age(cursor, cursor.integer())
    if ref_type is RefType.BRANCH and cursor.take("WITH", "SNAPSHOT"):
        cursor.expect("RETENTION")
        number = cursor.integer()
        if cursor.take("SNAPSHOTS"):
            count = number
            if not cursor.is_done:
                max_snapshot_age = _age(cursor, cursor.integer())
        else:
            max_snapshot_age = _age(cursor, number)
    reference = _Reference(
        ref_type,
        name,
        create,
        replace,
        if_not_exists,
        snapshot_id,
        max_ref_age,
        count,
        max_snapshot_age,
    )
    return partial(_set_reference, reference=reference)


def read_dropped_reference(cursor: Cursor) -> Change:
    """Reads `BRANCH` or `TAG` and what follows it, after `DROP`."""
    ref_type = _ref_type(cursor)
    only_existing = cursor.take("IF", "EXISTS")
    name = cursor.identifier(f"the name of the {ref_type}")
    return partial(_drop_reference, ref_type=ref_type, name=name, only_existing=only_existing)


def _ref_type(cursor: Cursor) -> RefType:
    if cursor.take("BRANCH"):
        return RefType.BRANCH
    cursor.expect("TAG")
    return RefType.TAG


def _age(cursor: Cursor, number: int) -> int:
    unit = cursor.take_any(*_MILLISECONDS)
    if unit is None:
        raise cursor.error(", ".join(_MILLISECONDS))
    return number * _MILLISECONDS[unit]


def _set_reference(altered: AlteredTable, *, reference: _Reference) -> None:
    exists = reference.name in altered.table.refs()
    if exists and reference.if_not_exists:
        return
    with altered.table.transaction() as changes:
        if reference.replace and (exists or not reference.create):
            _move(changes, reference)
        elif _needs_snapshot(changes, reference):
            # An empty snapshot, as in Java Iceberg.
            nothing = changes.scan().to_arrow()
            changes.append(nothing, branch=reference.name, options={"create-branch": "true"})
        else:
            _create(changes, reference)
        _retain(changes, reference)


def _needs_snapshot(table: Table, reference: _Reference) -> bool:
    return (
        reference.ref_type is RefType.BRANCH
        and reference.snapshot_id is None
        and table.current_snapshot() is None
    )


def _create(table: Table, reference: _Reference) -> None:
    with table.manage_snapshots() as manage:
        if reference.ref_type is RefType.BRANCH:
            manage.create_branch(reference.name, reference.snapshot_id)
        else:
            manage.create_tag(reference.name, reference.snapshot_id)


def _move(table: Table, reference: _Reference) -> None:
    target = reference.snapshot_id
    if target is None:
        target = table.metadata.current_snapshot_id
    if target is None:
        raise NoSuchSnapshotError(
            f"table {table.name}: {reference.ref_type} {reference.name} cannot be moved to the "
            "current snapshot, because the table has none yet; write rows first"
        )
    with table.manage_snapshots() as manage:
        if reference.ref_type is RefType.BRANCH:
            manage.replace_branch(reference.name, target)
        else:
            manage.replace_tag(reference.name, target)


def _retain(table: Table, reference: _Reference) -> None:
    with table.manage_snapshots() as manage:
        if reference.max_ref_age_ms is not None:
            manage.set_max_ref_age_ms(reference.name, reference.max_ref_age_ms)
        if reference.min_snapshots_to_keep is not None:
            manage.set_min_snapshots_to_keep(reference.name, reference.min_snapshots_to_keep)
        if reference.max_snapshot_age_ms is not None:
            manage.set_max_snapshot_age_ms(reference.name, reference.max_snapshot_age_ms)


def _drop_reference(
    altered: AlteredTable, *, ref_type: RefType, name: str, only_existing: bool
) -> None:
    if only_existing and name not in altered.table.refs():
        return
    with altered.table.manage_snapshots() as manage:
        if ref_type is RefType.BRANCH:
            manage.remove_branch(name)
        else:
            manage.remove_tag(name)
