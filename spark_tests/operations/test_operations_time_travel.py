"""Which snapshot a read resolves to, and with which schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from icebergds.errors import InvalidMetadataError, NoSuchSnapshotError
from icebergds.operations.read.time_travel import TimeTravel, resolve_snapshot
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import RefType, Snapshot, SnapshotLogEntry, SnapshotRef
from icebergds.spec.sort import SortOrder
from icebergds.spec.types import LONG, STRING, NestedField

_OLD = Schema((NestedField(1, "id", LONG),), 0)
_NEW = Schema((*_OLD.fields, NestedField(2, "name", STRING)), 1)
_SNAPSHOTS = (
    Snapshot(11, 1000, 1, schema_id=0),
    Snapshot(12, 2000, 2, schema_id=0),
    Snapshot(13, 3000, 3, schema_id=1),
    # On a branch alone.
    Snapshot(14, 4000, 4, schema_id=0),
)
_BRANCH, _TAG = RefType.BRANCH, RefType.TAG
_REFS = {
    "main": SnapshotRef(13, _BRANCH),
    "audit": SnapshotRef(14, _BRANCH),
    "release": SnapshotRef(12, _TAG),
    "12": SnapshotRef(11, _TAG),
}


# What is asked for, the snapshot and the schema it is read with.
@pytest.mark.parametrize(
    ("asked", "snapshot_id", "schema"),
    [
        ({}, 13, _NEW),
        ({"snapshot_id": 11}, 11, _OLD),
        ({"snapshot_id": 13}, 13, _NEW),
        ({"snapshot_id": 14}, 14, _OLD),
        ({"branch": "main"}, 13, _NEW),
        # The head of a branch is what is written to next, with the schema of today.
        ({"branch": "audit"}, 14, _NEW),
        ({"tag": "release"}, 12, _OLD),
        ({"tag": "12"}, 11, _OLD),
        ({"as_of_ms": 1000}, 11, _OLD),
        ({"as_of_ms": 1999}, 11, _OLD),
        ({"as_of_ms": 2000}, 12, _OLD),
        ({"as_of_ms": 10**15}, 13, _NEW),
        ({"version": "13"}, 13, _NEW),
        # A number is always an id.
        ({"version": "12"}, 12, _OLD),
        ({"version": "release"}, 12, _OLD),
        ({"version": "audit"}, 14, _NEW),
        ({"version": "main"}, 13, _NEW),
    ],
    ids=str,
)
def test_each_way_to_name_a_snapshot(
    asked: dict[str, Any], snapshot_id: int, schema: Schema
) -> None:
    snapshot, read_with = resolve_snapshot(_table(), TimeTravel(**asked), "t")
    assert snapshot is not None
    assert snapshot.snapshot_id == snapshot_id
    assert read_with == schema


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"snapshot_id": 99}, r"snapshot 99 does not exist; the table has 4, newest 14"),
        ({"snapshot_id": -1}, r"snapshot -1 does not exist"),
        ({"as_of_ms": 999}, r"no snapshot was current at 1970-01-01T00:00:00\.999Z; the table"),
        ({"as_of_ms": -1}, r"no snapshot was current at 1969-12-31T23:59:59\.999Z"),
        ({"branch": "audti"}, r"no branch 'audti'; did you mean audit\?"),
        ({"branch": "x"}, r"no branch 'x'; it has audit, main$"),
        ({"branch": "release"}, r"no branch 'release'; release is a tag"),
        ({"tag": "relaese"}, r"no tag 'relaese'; did you mean release\?"),
        ({"tag": "main"}, r"no tag 'main'; main is a branch"),
        ({"version": "99"}, r"snapshot 99 does not exist"),
        ({"version": "relaese"}, r"no branch or tag 'relaese'; did you mean release\?"),
        ({"version": "x"}, r"no branch or tag 'x'; it has 12, audit, main, release"),
        # No number to this format, whatever Python makes of it.
        ({"version": "\u0661\u0662"}, r"no branch or tag"),
        ({"version": "\u00b2"}, r"no branch or tag"),
        ({"version": ""}, r"no branch or tag ''"),
    ],
    ids=str,
)
def test_what_is_not_there_is_named(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(NoSuchSnapshotError, match=f"table db.t: {message}"):
        resolve_snapshot(_table(), TimeTravel(**asked), "db.t")


@pytest.mark.parametrize("asked", [{}, {"branch": "main"}, {"version": "main"}], ids=str)
def test_a_table_without_rows_has_a_main_branch(asked: dict[str, Any]) -> None:
    empty = _table(snapshots=(), snapshot_log=(), refs={}, current_snapshot_id=None)
    assert resolve_snapshot(empty, TimeTravel(**asked), "t") == (None, _NEW)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"snapshot_id": 1}, "the table has no snapshots"),
        ({"as_of_ms": 1}, "the table has no snapshots"),
        ({"tag": "x"}, "it has none"),
        ({"branch": "audit"}, "it has none"),
    ],
    ids=str,
)
def test_a_table_without_rows_has_nothing_else(asked: dict[str, Any], message: str) -> None:
    empty = _table(snapshots=(), snapshot_log=(), refs={}, current_snapshot_id=None)
    with pytest.raises(NoSuchSnapshotError, match=message):
        resolve_snapshot(empty, TimeTravel(**asked), "t")


def test_a_time_is_looked_up_in_the_log_not_in_the_snapshots() -> None:
    # Rolled back to 11 at 5000: 12 and 13 are newer, but not current any more.
    log = tuple(SnapshotLogEntry(*e) for e in ((1000, 11), (2000, 12), (3000, 13), (5000, 11)))
    table = _table(snapshot_log=log, current_snapshot_id=11)
    for at, snapshot_id in ((4999, 13), (5000, 11), (9000, 11)):
        snapshot, _ = resolve_snapshot(table, TimeTravel(as_of_ms=at), "t")
        assert snapshot is not None
        assert snapshot.snapshot_id == snapshot_id


def test_of_entries_at_one_time_the_last_counts() -> None:
    log = (SnapshotLogEntry(1000, 11), SnapshotLogEntry(1000, 12))
    snapshot, _ = resolve_snapshot(_table(snapshot_log=log), TimeTravel(as_of_ms=1000), "t")
    assert snapshot is not None
    assert snapshot.snapshot_id == 12


def test_a_time_whose_snapshot_has_expired_is_refused() -> None:
    table = _table(snapshots=_SNAPSHOTS[1:])
    with pytest.raises(NoSuchSnapshotError, match="snapshot 11, current at 1500 ms, has expired"):
        resolve_snapshot(table, TimeTravel(as_of_ms=1500), "t")


def test_snapshots_that_name_no_schema_are_read_with_the_current_one() -> None:
    table = _table(snapshots=tuple(replace(s, schema_id=None) for s in _SNAPSHOTS))
    assert resolve_snapshot(table, TimeTravel(snapshot_id=11), "t")[1] == _NEW


def test_a_snapshot_of_an_unlisted_schema_is_refused() -> None:
    table = _table(snapshots=(replace(_SNAPSHOTS[0], schema_id=7), *_SNAPSHOTS[1:]))
    with pytest.raises(InvalidMetadataError, match="no schema 7"):
        resolve_snapshot(table, TimeTravel(snapshot_id=11), "t")


def test_a_reference_without_its_snapshot_is_refused() -> None:
    table = _table(refs={**_REFS, "gone": SnapshotRef(99, _TAG)})
    with pytest.raises(NoSuchSnapshotError, match="snapshot 99 does not exist"):
        resolve_snapshot(table, TimeTravel(tag="gone"), "t")


def _table(**changes: Any) -> TableMetadata:
    fields: Mapping[str, Any] = {
        "format_version": 2,
        "table_uuid": "u",
        "location": "/t",
        "last_updated_ms": 4000,
        "last_column_id": 2,
        "schemas": (_OLD, _NEW),
        "current_schema_id": 1,
        "partition_specs": (PartitionSpec(),),
        "default_spec_id": 0,
        "last_partition_id": 999,
        "sort_orders": (SortOrder(),),
        "default_sort_order_id": 0,
        "current_snapshot_id": 13,
        "snapshots": _SNAPSHOTS,
        "snapshot_log": tuple(
            SnapshotLogEntry(s.timestamp_ms, s.snapshot_id) for s in _SNAPSHOTS[:3]
        ),
        "refs": _REFS,
    }
    return TableMetadata(**{**fields, **changes})
