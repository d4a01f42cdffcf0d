"""Which snapshots, branches and tags expire, and what their metadata leaves behind."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from built.api_tables import new_table, rows
from built.commit_tables import IMPATIENT, SCHEMA, open_table
from built.contents import data_files, metadata_files
from built.tables import TableBuilder

from icebergds import ExpiredSnapshots, Table, load_table
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.data_files import Append
from icebergds.commit.operations import TableOperations, TableState
from icebergds.commit.retention import ExpiryRequest
from icebergds.display import WIDTH
from icebergds.errors import (
    CommitStateUnknownError,
    InvalidOptionError,
    NoSuchSnapshotError,
    ValidationError,
)
from icebergds.operations.maintenance.unused_files.expire_snapshots import expire_snapshots
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.updates.requirements import (
    AssertRefSnapshotId,
    AssertTableUuid,
    TableRequirement,
)
from icebergds.spec.updates.table_updates import SetProperties, SetSnapshotRef, TableUpdate
from icebergds.testing.faults import Fault, Faults, FaultyOperations, When

_DAY = 24 * 60 * 60 * 1000
_ALL = 1_750_000_000_000
"""After all snapshots of a builder, which are of 2023."""


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    """A table of snapshots 1001 to 1004, each of which replaces the rows of the one before."""
    builder = TableBuilder(tmp_path / "t", SCHEMA, properties=IMPATIENT)
    files = [builder.data_file([(number, 0)]) for number in range(4)]
    builder.commit(files[0])
    for before, after in pairwise(files):
        builder.commit(after, removed=[before], operation="overwrite")
    return builder


def _table(builder: TableBuilder) -> Table:
    return load_table(builder.location)


def _ids(table: Table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.snapshots()]


def _time(builder: TableBuilder, snapshot_id: int) -> int:
    return builder.metadata.snapshots_by_id[snapshot_id].timestamp_ms


def _set(builder: TableBuilder, **properties: str) -> None:
    named = {f"history.expire.{name.replace('_', '-')}": v for name, v in properties.items()}
    builder.set_properties({**builder.metadata.properties, **named})


def test_snapshots_before_a_time_expire(builder: TableBuilder) -> None:
    table = _table(builder)
    expired = table.expire_snapshots(_time(builder, 1003))
    assert expired.expired_snapshot_ids == (1001, 1002)
    assert _ids(table) == _ids(_table(builder)) == [1003, 1004]
    assert [entry.snapshot_id for entry in table.metadata.snapshot_log] == [1003, 1004]


def test_the_head_never_expires(builder: TableBuilder) -> None:
    table = _table(builder)
    table.expire_snapshots(_ALL)
    assert _ids(table) == [1004]
    assert table.scan(columns="id").to_arrow()["id"].to_pylist() == [3]


def test_the_last_ones_are_kept_however_old(builder: TableBuilder) -> None:
    table = _table(builder)
    table.expire_snapshots(_ALL, retain_last=3)
    assert _ids(table) == [1002, 1003, 1004]


def test_without_arguments_snapshots_of_five_days_are_kept(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.append(rows(2))
    before = table.metadata_location
    assert table.expire_snapshots() == ExpiredSnapshots()
    assert (len(table.snapshots()), table.metadata_location) == (2, before)


def test_properties_say_what_is_kept(builder: TableBuilder) -> None:
    _set(builder, min_snapshots_to_keep="2")
    table = _table(builder)
    table.expire_snapshots()
    assert _ids(table) == [1003, 1004]
    _set(builder, max_snapshot_age_ms=str(100 * 365 * _DAY))
    table = _table(builder)
    assert table.expire_snapshots().expired_snapshot_ids == ()


def test_a_malformed_property_is_an_error_and_nothing_expires(builder: TableBuilder) -> None:
    _set(builder, max_snapshot_age_ms="5 days")
    with pytest.raises(InvalidOptionError, match=r"history\.expire\.max-snapshot-age-ms is '5 day"):
        _table(builder).expire_snapshots()
    assert len(_table(builder).snapshots()) == 4


def test_a_branch_s_own_retention_comes_first(builder: TableBuilder) -> None:
    main = SnapshotRef(1004, RefType.BRANCH, min_snapshots_to_keep=3)
    builder.set_ref("main", main)
    table = _table(builder)
    table.expire_snapshots(_ALL, retain_last=1)
    assert _ids(table) == [1002, 1003, 1004]
    builder.set_ref("main", replace(main, max_snapshot_age_ms=100 * 365 * _DAY))
    table = _table(builder)
    assert table.expire_snapshots(_ALL).expired_snapshot_ids == ()


def test_each_branch_keeps_its_own_snapshots(builder: TableBuilder) -> None:
    builder.branch("audit", 1002)
    table = _table(builder)
    table.expire_snapshots(_ALL, retain_last=2)
    assert _ids(table) == [1001, 1002, 1003, 1004]
    table.expire_snapshots(_ALL)
    assert _ids(table) == [1002, 1004]
    assert table.scan(columns="id", branch="audit").to_arrow()["id"].to_pylist() == [1]


def test_a_tagged_snapshot_is_kept_without_its_ancestors(builder: TableBuilder) -> None:
    builder.tag("release", 1002)
    table = _table(builder)
    table.expire_snapshots(_ALL)
    assert _ids(table) == [1002, 1004]
    assert table.scan(columns="id", tag="release").to_arrow()["id"].to_pylist() == [1]


def test_history_below_a_tag_still_belongs_to_its_branch(builder: TableBuilder) -> None:
    """Its snapshots are not taken for ones that nothing refers to."""
    builder.set_ref("main", SnapshotRef(1004, RefType.BRANCH, max_snapshot_age_ms=1))
    builder.tag("release", 1003)
    table = _table(builder)
    table.expire_snapshots(_time(builder, 1001))
    assert _ids(table) == [1003, 1004]


def test_refs_older_than_their_maximum_age_are_removed_but_main(builder: TableBuilder) -> None:
    builder.set_ref("old", SnapshotRef(1001, RefType.TAG, max_ref_age_ms=_DAY))
    builder.set_ref("side", SnapshotRef(1002, RefType.BRANCH, max_ref_age_ms=_DAY))
    builder.set_ref("main", SnapshotRef(1004, RefType.BRANCH, max_ref_age_ms=_DAY))
    builder.tag("kept", 1003)
    table = _table(builder)
    expired = table.expire_snapshots(_ALL)
    assert expired.expired_refs == ("old", "side")
    assert sorted(table.refs()) == ["kept", "main"]
    assert _ids(table) == [1003, 1004]


def test_the_maximum_age_of_refs_may_be_a_property(builder: TableBuilder) -> None:
    builder.tag("release", 1002)
    builder.set_ref("kept", SnapshotRef(1003, RefType.TAG, max_ref_age_ms=100 * 365 * _DAY))
    _set(builder, max_ref_age_ms=str(_DAY))
    table = _table(builder)
    table.expire_snapshots(_ALL)
    assert sorted(table.refs()) == ["kept", "main"]


def test_snapshots_expire_by_id_however_young(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in range(3):
        table.append(rows(number))
    first, second, third = _ids(table)
    assert table.expire_snapshots(snapshot_ids=[second]).expired_snapshot_ids == (second,)
    assert _ids(table) == [first, third]
    assert table.expire_snapshots(snapshot_ids=first).expired_snapshot_ids == (first,)


def test_a_head_does_not_expire_by_its_id(builder: TableBuilder) -> None:
    builder.tag("release", 1004)
    with pytest.raises(
        ValidationError,
        match="snapshot 1004 cannot be expired: branch 'main', tag 'release' refer to it",
    ):
        _table(builder).expire_snapshots(_ALL, snapshot_ids=[1001, 1004])
    assert _ids(_table(builder)) == [1001, 1002, 1003, 1004]


def test_an_unknown_id_is_an_error_and_nothing_expires(builder: TableBuilder) -> None:
    with pytest.raises(NoSuchSnapshotError, match=r"snapshot 7 cannot be expired: .* 4 snapshots"):
        _table(builder).expire_snapshots(_ALL, snapshot_ids=[1001, 7])
    assert _ids(_table(builder)) == [1001, 1002, 1003, 1004]


def test_a_table_that_shares_files_expires_nothing(builder: TableBuilder) -> None:
    builder.set_properties({"gc.enabled": "false"})
    with pytest.raises(ValidationError, match=r"gc\.enabled = false"):
        _table(builder).expire_snapshots(_ALL)
    assert _ids(_table(builder)) == [1001, 1002, 1003, 1004]


@pytest.mark.parametrize(
    "moment",
    [
        lambda ms: ms,
        str,
        lambda ms: datetime.fromtimestamp(ms / 1000, UTC),
        lambda ms: datetime.fromtimestamp(ms / 1000, UTC).isoformat(),
        # An age is measured again later; snapshots are a second apart.
        lambda ms: datetime.now(UTC) - datetime.fromtimestamp((ms - 500) / 1000, UTC),
    ],
)
def test_times_are_milliseconds_datetimes_text_or_ages(
    builder: TableBuilder, moment: Callable[[int], Any]
) -> None:
    table = _table(builder)
    table.expire_snapshots(moment(_time(builder, 1003)))
    assert _ids(table) == [1003, 1004]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"older_than": datetime(2026, 1, 1)}, "has no time zone"),
        ({"older_than": "2026-01-01T00:00:00"}, "has no time zone"),
        ({"older_than": "yesterday"}, "older_than = 'yesterday': expected an age"),
        ({"older_than": "7 days"}, r"'7 days': expected an age, such as timedelta\(days=7\)"),
        ({"older_than": 7}, "older_than = 7: a number means milliseconds since 1970.*timedelta"),
        ({"older_than": 1_790_000_000}, "1790000000: a number means milliseconds.*timedelta"),
        ({"older_than": "1790000000"}, "'1790000000': a number means milliseconds.*timedelta"),
        ({"older_than": -1}, "older_than = -1: a number means milliseconds"),
        ({"older_than": True}, "older_than = True: expected an age"),
        ({"older_than": timedelta(days=-1)}, "expected an age of 0 or more"),
        ({"older_than": 1.5}, r"older_than = 1\.5: expected an age"),
        ({"retain_last": 0}, "retain_last = 0: expected a whole number of at least 1"),
        ({"retain_last": True}, "retain_last = True is of type bool, expected a whole number"),
        ({"dry_run": "yes"}, "dry_run = 'yes': expected True or False"),
        ({"clean_expired_metadata": 1}, "clean_expired_metadata = 1: expected True or False"),
        ({"retain_last": "two"}, "retain_last = 'two' is of type str"),
        ({"snapshot_ids": ["1001"]}, "snapshot_ids = '1001' is of type str"),
        ({"snapshot_ids": "1001"}, "snapshot_ids = '1001' is of type str"),
        ({"max_concurrent_deletes": 0}, "max_concurrent_deletes = 0: expected"),
    ],
)
def test_a_wrong_argument_is_an_error(
    builder: TableBuilder, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        _table(builder).expire_snapshots(**arguments)
    assert _ids(_table(builder)) == [1001, 1002, 1003, 1004]


def test_the_result_is_shown_in_a_few_lines(builder: TableBuilder) -> None:
    table = _table(builder)
    planned = table.expire_snapshots(_ALL, dry_run=True)
    expired = table.expire_snapshots(_ALL)
    assert str(planned).splitlines() == [
        "ExpiredSnapshots: 3 snapshots would expire; would be deleted: 3 data files, "
        "3 manifests, 3 manifest lists (dry run)",
        "  1001, 1002, 1003",
    ]
    assert str(expired).splitlines()[0] == (
        "ExpiredSnapshots: 3 snapshots expired; deleted: 3 data files, 3 manifests, "
        "3 manifest lists"
    )
    assert "1002" in expired._repr_html_()


def test_the_result_of_many_snapshots_fits_a_screen() -> None:
    many = ExpiredSnapshots(expired_snapshot_ids=tuple(range(10**18, 10**18 + 1000)))
    first, second = str(many).splitlines()
    assert first == "ExpiredSnapshots: 1,000 snapshots expired"
    assert second.endswith("more snapshots")
    assert len(second) <= WIDTH


def test_nothing_is_older_than_the_year_1970(builder: TableBuilder) -> None:
    expired = _table(builder).expire_snapshots(0, snapshot_ids=[1002])
    assert expired.expired_snapshot_ids == (1002,)


def test_a_dry_run_says_what_would_go_and_changes_nothing(builder: TableBuilder) -> None:
    table = _table(builder)
    before = metadata_files(builder.location), data_files(builder.location)
    planned = table.expire_snapshots(_ALL, dry_run=True)
    assert (metadata_files(builder.location), data_files(builder.location)) == before
    assert _ids(table) == [1001, 1002, 1003, 1004]
    assert planned.deleted_data_files_count == 3
    assert table.expire_snapshots(_ALL) == planned


# What others commit meanwhile.


class _Interrupted:
    """Lets others commit before the first attempts; remembers what the last one required."""

    def __init__(self, operations: TableOperations, *others: Callable[[], object]) -> None:
        self._operations = operations
        self._others = list(others)
        self.requirements: list[TableRequirement] = []

    @property
    def name(self) -> str:
        return self._operations.name

    def refresh(self) -> TableState:
        return self._operations.refresh()

    def commit(self, base: TableState, requirements: Any, updates: Any) -> TableState:
        self.requirements = list(requirements)
        if self._others:
            self._others.pop(0)()
        return self._operations.commit(base, requirements, updates)


def _loaded(builder: TableBuilder, operations: TableOperations | None = None) -> LoadedTable:
    address = TableAddress(str(builder.location))
    found = operations or address.operations()
    return LoadedTable(address, found, found.refresh())


def _commit(builder: TableBuilder, *updates: TableUpdate) -> None:
    operations = TableAddress(str(builder.location)).operations()
    operations.commit(operations.refresh(), [], updates)


def test_after_a_lost_race_the_choice_is_made_again(builder: TableBuilder) -> None:
    tagged = SetSnapshotRef("late", SnapshotRef(1002, RefType.TAG))
    others = _Interrupted(
        TableAddress(str(builder.location)).operations(), lambda: _commit(builder, tagged)
    )
    _, expired = expire_snapshots(_loaded(builder, others), ExpiryRequest(_ALL, _ALL))
    assert expired.expired_snapshot_ids == (1001, 1003)
    assert _table(builder).scan(columns="id", tag="late").to_arrow()["id"].to_pylist() == [1]


def test_files_that_others_added_again_meanwhile_are_kept(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA, properties=IMPATIENT)
    again, gone = builder.data_file([(1, 0)]), builder.data_file([(2, 0)])
    builder.commit(again, gone)
    builder.commit(removed=[again, gone], operation="delete")
    others = _Interrupted(
        TableAddress(str(builder.location)).operations(),
        lambda: open_table(builder.location).commit(Append((again,))),
    )
    _, expired = expire_snapshots(_loaded(builder, others), ExpiryRequest(_ALL, _ALL))
    assert expired.deleted_data_files_count == 1
    assert _table(builder).scan(columns="id").to_arrow()["id"].to_pylist() == [1]


def test_a_snapshot_that_others_expired_meanwhile_is_no_error(builder: TableBuilder) -> None:
    def expire_first() -> None:
        expire_snapshots(_loaded(builder), ExpiryRequest(_ALL, 0, None, frozenset({1001})))

    others = _Interrupted(TableAddress(str(builder.location)).operations(), expire_first)
    request = ExpiryRequest(_ALL, 0, None, frozenset({1001, 1002}))
    _, expired = expire_snapshots(_loaded(builder, others), request)
    assert expired.expired_snapshot_ids == (1002,)
    assert _ids(_table(builder)) == [1003, 1004]


def test_collection_that_was_switched_off_meanwhile_stops_it(builder: TableBuilder) -> None:
    off = SetProperties({"gc.enabled": "false"})
    others = _Interrupted(
        TableAddress(str(builder.location)).operations(), lambda: _commit(builder, off)
    )
    with pytest.raises(ValidationError, match=r"gc\.enabled"):
        expire_snapshots(_loaded(builder, others), ExpiryRequest(_ALL, _ALL))
    assert _ids(_table(builder)) == [1001, 1002, 1003, 1004]


def test_the_commit_requires_the_table_and_its_refs_as_they_were_seen(
    builder: TableBuilder,
) -> None:
    builder.tag("release", 1002)
    builder.set_ref("old", SnapshotRef(1001, RefType.TAG, max_ref_age_ms=1))
    seen = _Interrupted(TableAddress(str(builder.location)).operations())
    expire_snapshots(_loaded(builder, seen), ExpiryRequest(_ALL, _ALL))
    assert builder.metadata.table_uuid is not None
    assert AssertTableUuid(builder.metadata.table_uuid) in seen.requirements
    refs = {r.ref: r.snapshot_id for r in seen.requirements if isinstance(r, AssertRefSnapshotId)}
    assert refs == {"main": 1004, "release": 1002, "old": 1001}


def test_nothing_is_deleted_while_it_is_not_known_what_was_committed(
    builder: TableBuilder,
) -> None:
    builder.set_properties({**IMPATIENT, "commit.status-check.num-retries": "0"})
    files = data_files(builder.location)
    lost = [
        Fault(0, When.BEFORE, OSError("no answer")),
        Fault(1, When.BEFORE, OSError("no answer")),
    ]
    operations = TableAddress(str(builder.location)).operations()
    table = _loaded(builder)
    faulty = replace(
        table, operations=FaultyOperations(operations, Faults(lost, ["commit", "refresh"]))
    )
    with pytest.raises(CommitStateUnknownError):
        expire_snapshots(faulty, ExpiryRequest(_ALL, _ALL))
    assert data_files(builder.location) == files


def test_a_commit_whose_answer_was_lost_goes_on_to_delete(builder: TableBuilder) -> None:
    lost = Faults([Fault(0, When.AFTER, OSError("no answer"))], ["commit"])
    table = _loaded(builder)
    faulty = replace(table, operations=FaultyOperations(table.operations, lost))
    _, expired = expire_snapshots(faulty, ExpiryRequest(_ALL, _ALL))
    assert expired.deleted_data_files_count == 3
    assert len(data_files(builder.location)) == 1


# Unused specs and schemas.


def test_unused_specs_and_schemas_are_removed_if_asked_for(builder: TableBuilder) -> None:
    by_day = PartitionSpec(1, (PartitionField((2,), 1000, IdentityTransform(), "day"),))
    builder.evolve(spec=by_day)
    builder.evolve(schema=Schema(SCHEMA.fields[:1], 1))
    builder.evolve(schema=Schema(SCHEMA.fields, 2))
    builder.evolve(spec=PartitionSpec(2, ()))
    last = builder.data_file([(9, 9)], spec_id=2)
    builder.commit(last, removed=[_only_file(builder)], operation="overwrite")
    table = _table(builder)
    table.expire_snapshots(_ALL)
    assert sorted(table.metadata.specs_by_id) == [0, 1, 2]
    assert sorted(table.metadata.schemas_by_id) == [0, 1, 2]
    table.expire_snapshots(_ALL, clean_expired_metadata=True)
    # The head still has a manifest of spec 0, which says what the snapshot removed.
    assert sorted(table.metadata.specs_by_id) == [0, 2]
    assert sorted(table.metadata.schemas_by_id) == [2]
    assert table.scan(columns="id").to_arrow()["id"].to_pylist() == [9]


def test_the_spec_without_fields_stays_for_changes_by_key_that_are_under_way(
    builder: TableBuilder,
) -> None:
    by_day = PartitionSpec(1, (PartitionField((2,), 1000, IdentityTransform(), "day"),))
    by_id = PartitionSpec(2, (PartitionField((1,), 1001, IdentityTransform(), "id"),))
    builder.evolve(spec=by_day)
    builder.evolve(spec=by_id)
    removed = [task.file for task in _table(builder).scan().plan_files()]
    builder.commit(
        builder.data_file([(9, 9)], spec_id=2, partition=(9,)),
        removed=removed,
        operation="overwrite",
    )
    builder.commit(builder.data_file([(8, 8)], spec_id=2, partition=(8,)))
    table = _table(builder)
    table.rewrite_manifests()
    table.expire_snapshots(_ALL, clean_expired_metadata=True)
    assert sorted(table.metadata.specs_by_id) == [0, 2]


def test_the_last_schema_stays_lest_nobody_could_tell_that_some_were_removed(
    builder: TableBuilder,
) -> None:
    builder.evolve(schema=Schema(SCHEMA.fields[:1], 1))
    builder._replace_metadata(replace(builder.metadata, current_schema_id=0))
    table = _table(builder)
    table.expire_snapshots(_ALL, clean_expired_metadata=True)
    assert sorted(table.metadata.schemas_by_id) == [0, 1]


def _only_file(builder: TableBuilder) -> Any:
    (task,) = _table(builder).scan().plan_files()
    return task.file


def test_specs_of_kept_manifests_and_schemas_of_kept_snapshots_stay(builder: TableBuilder) -> None:
    by_day = PartitionSpec(1, (PartitionField((2,), 1000, IdentityTransform(), "day"),))
    builder.evolve(spec=by_day)
    builder.commit(builder.data_file([(8, 8)], partition=(8,)))
    builder.evolve(spec=PartitionSpec(2, ()), schema=Schema(SCHEMA.fields[:1], 1))
    builder.commit(builder.data_file([(9,)]))
    builder.tag("release", 1004)
    table = _table(builder)
    table.expire_snapshots(_ALL, clean_expired_metadata=True)
    assert sorted(table.metadata.specs_by_id) == [0, 1, 2]
    assert sorted(table.metadata.schemas_by_id) == [0, 1]


def test_the_type_of_a_dropped_key_is_kept_while_there_are_deletes(tmp_path: Path) -> None:
    """Equality deletes by a column that was dropped still delete."""
    builder = TableBuilder(tmp_path / "t", SCHEMA)
    builder.commit(builder.data_file([(1, 1), (2, 2)]))
    builder.commit(builder.equality_deletes(["day"], [(2,)]), operation="delete")
    builder.evolve(schema=Schema(SCHEMA.fields[:1], 1))
    builder.commit(builder.data_file([(3,)]))
    table = _table(builder)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3]
    table.expire_snapshots(_ALL, clean_expired_metadata=True)
    assert sorted(table.metadata.schemas_by_id) == [0, 1]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3]


# Writes that are committed once.


def _once(version: int) -> dict[str, str]:
    return {"txn-app-id": "job", "txn-version": str(version)}


def test_a_write_that_expired_is_still_committed_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = new_table(tmp_path)
    for version in range(3):
        table.append(rows(version), options=_once(version))
    table.append(rows(9))
    with caplog.at_level(logging.WARNING):
        table.expire_snapshots(table.metadata.last_updated_ms + 1)
    assert len(table.snapshots()) == 1
    assert caplog.messages == []
    table.append(rows(2), options=_once(2))
    table.append(rows(3), options=_once(3))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 9]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_write_that_only_its_snapshot_records_is_warned_of(
    builder: TableBuilder, caplog: pytest.LogCaptureFixture, dry_run: bool
) -> None:
    """As Java Iceberg records batches of streams."""
    query = {"spark.sql.streaming.queryId": "q", "spark.sql.streaming.epochId": "7"}
    metadata = builder.metadata
    marked = [
        replace(s, summary={**s.summary, **query}) if s.snapshot_id == 1002 else s
        for s in metadata.snapshots
    ]
    builder.set_snapshots(marked)
    with caplog.at_level(logging.WARNING):
        _table(builder).expire_snapshots(_ALL, dry_run=dry_run)
    (message,) = caplog.messages
    assert "branch main: the newest known version of 'q' was 7, and is none" in message
