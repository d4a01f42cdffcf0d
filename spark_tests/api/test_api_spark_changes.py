"""Change data by the options and with the columns of Spark, without Spark."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.api_tables import DAYS, new_table, rows
from built.contents import head
from built.rows import arrow_table
from built.tables import TableBuilder
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from strategies.random_tables import RandomTable

from icebergds import Table, load_table
from icebergds.errors import InvalidOptionError, NoSuchSnapshotError
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.operations.read.options import ReadOptions, parse_read_options
from icebergds.operations.read.snapshot_read import make_read_plan, plan_task_groups, resolve_read
from icebergds.scan.plan.changes import commit_version
from icebergds.scan.read.changes import read_task_group
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import RefType, Snapshot, SnapshotRef
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import LONG, NestedField

_SETTINGS = examples(60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
_BY_DAY = PartitionSpec(1, (PartitionField((2,), 1000, IdentityTransform(), "day"),))
_Rows = Counter[str]
_Commits = Counter[tuple[str, str, int]]


@given(st.data())
@_SETTINGS
def test_changes_of_a_range_are_those_of_the_feed_and_lead_to_its_end(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = _random_table(data, Path(directory))
        known = table.metadata.lineage(table.current_snapshot())[::-1]
        for _ in range(6 if known else 0):
            _check_range(table, known, _range(data, known))


def _check_range(table: Table, known: list[Snapshot], span: _Range) -> None:
    if span.is_unknown:
        with pytest.raises(NoSuchSnapshotError, match="has expired"):
            table.scan(options=span.options).to_arrow()
        return
    changes = table.scan(options=span.options).to_arrow()
    if span.start >= span.stop:
        assert changes.num_rows == 0
        return
    assert _commits(changes, known) == _own_feed(table, known, span)
    schema = resolve_read(parse_read_options(span.options), table.metadata, "t")[1]
    before = _rows(table, known[span.start - 1] if span.start else None, schema)
    after = _rows(table, known[span.stop - 1], schema)
    assert _replayed(before, changes) == after
    raw = table.scan(options={**span.options, "deduplicationMode": "none"}).to_arrow()
    assert _replayed(before, raw) == after
    net = table.scan(options={**span.options, "deduplicationMode": "netChanges"}).to_arrow()
    assert _of_type(net, "insert") == after - before
    assert _of_type(net, "delete") == before - after


def _random_table(data: st.DataObject, directory: Path) -> Table:
    """A table with deletes of all kinds, evolved, rolled back, and whose oldest commits expired."""
    made = RandomTable(data.draw, directory / "t")
    for _ in range(data.draw(st.integers(4, 10))):
        snapshots = made.builder.metadata.snapshots
        if snapshots and data.draw(st.integers(0, 5)) == 0:
            to = data.draw(st.sampled_from(snapshots))
            made.builder.set_ref("main", SnapshotRef(to.snapshot_id, RefType.BRANCH))
        made.step()
    metadata = made.builder.metadata
    known = metadata.lineage(metadata.current_snapshot())
    if known and data.draw(st.booleans()):
        gone = {s.snapshot_id for s in known[data.draw(st.integers(1, max(1, len(known) - 1))) :]}
        gone -= {ref.snapshot_id for ref in metadata.refs.values()}
        made.builder.set_snapshots([s for s in metadata.snapshots if s.snapshot_id not in gone])
    return load_table(str(made.builder.location))


@dataclass(frozen=True)
class _Range:
    """Commits `start` to `stop` among the known ones, and options that ask for their changes.

    `is_unknown`: the changes of the first one are not known, as the commit before it has expired.
    """

    options: dict[str, str]
    start: int
    stop: int
    is_unknown: bool = False

    @property
    def has_end(self) -> bool:
        return any(name.startswith("endingV") or name == "endingTimestamp" for name in self.options)


def _range(data: st.DataObject, known: list[Snapshot]) -> _Range:
    kind = data.draw(st.sampled_from(["Version", "Timestamp", "all"]))
    if kind == "all":
        return _Range({"changes": "true"}, 0, len(known))
    is_cut = known[0].parent_snapshot_id is not None
    first = data.draw(st.integers(0, len(known) - 1))
    last = data.draw(st.integers(first, len(known) - 1) | st.none())
    from_included, to_included = data.draw(st.booleans()), data.draw(st.booleans())
    options = {"startingBoundInclusive": str(from_included).lower()}
    if last is not None:
        options["endingBoundInclusive"] = str(to_included).lower()
    if kind == "Version":
        start = first + (not from_included)
        stop = len(known) if last is None else last + to_included
        bounds = {"startingVersion": first, "endingVersion": last}
        options |= {n: _version(data, known[at]) for n, at in bounds.items() if at is not None}
        return _Range(options, start, stop, is_cut and start == 0)
    # Up to a millisecond beside the time of the commit.
    microseconds = st.integers(-1000, 1000)
    begin = 1000 * known[first].timestamp_ms + data.draw(microseconds)
    end = 10**18 if last is None else 1000 * known[last].timestamp_ms + data.draw(microseconds)
    end = max(begin, end)
    options["startingTimestamp"] = _text(begin)
    if last is not None:
        options["endingTimestamp"] = _text(end)
    times = [1000 * snapshot.timestamp_ms for snapshot in known]
    start = sum(time < begin or (time == begin and not from_included) for time in times)
    stop = sum(time < end or (time == end and (to_included or last is None)) for time in times)
    return _Range(options, start, stop, is_cut and (start == 0 or stop == 0))


def _version(data: st.DataObject, snapshot: Snapshot) -> str:
    return str(data.draw(st.sampled_from([snapshot.snapshot_id, commit_version(snapshot)])))


def _text(microseconds: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)).isoformat()


def _own_feed(table: Table, known: list[Snapshot], span: _Range) -> _Commits:
    """The same changes, as our own feed has them."""
    start = known[span.start - 1].snapshot_id if span.start else None
    end = known[span.stop - 1].snapshot_id if span.has_end else None
    feed = table.changes(start, end).to_arrow()
    return Counter(
        (repr(row), kind.lower(), snapshot_id) for *row, kind, _, snapshot_id in _values(feed)
    )


def _commits(changes: pa.Table, known: list[Snapshot]) -> _Commits:
    """How often each change of a commit is in Spark's change data."""
    by_version = {commit_version(snapshot): snapshot for snapshot in known}
    assert list(by_version) == sorted(by_version)
    found: _Commits = Counter()
    for *row, kind, version, moment in _values(changes):
        snapshot = by_version[version]
        assert moment == datetime.fromisoformat(_text(1000 * snapshot.timestamp_ms))
        found[repr(row), kind, snapshot.snapshot_id] += 1
    return found


def _replayed(before: _Rows, changes: pa.Table) -> _Rows:
    """The rows after changes; those of one commit may delete what another one inserts again."""
    rows = Counter(before)
    rows.update(_of_type(changes, "insert"))
    rows.subtract(_of_type(changes, "delete"))
    assert all(count >= 0 for count in rows.values())
    return +rows


def _of_type(changes: pa.Table, kind: str) -> _Rows:
    return Counter(repr(row) for *row, found, _, _ in _values(changes) if found == kind)


def _rows(table: Table, snapshot: Snapshot | None, schema: Schema) -> _Rows:
    state, options = table._state, ReadOptions()
    plan = make_read_plan(options, state, schema, schema)
    groups = plan_task_groups(options, state, snapshot, plan)
    batches = [batch for group in groups for batch in read_task_group(plan, group)]
    read = pa.Table.from_batches(batches, schema_to_arrow(schema))
    return Counter(repr(list(row)) for row in _values(read))


def _values(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_columns_follow_those_of_the_table_with_sparks_names_and_types(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    changes = table.scan(options={"changes": "true"}).to_arrow()
    assert changes.schema.remove_metadata().names[3:] == [
        "_change_type",
        "_commit_version",
        "_commit_timestamp",
    ]
    assert [str(field.type) for field in list(changes.schema)[3:]] == [
        "string",
        "int64",
        "timestamp[us, tz=UTC]",
    ]
    commit = head(table)
    [row] = changes.to_pylist()
    assert (row["_change_type"], row["_commit_version"]) == ("insert", commit.sequence_number)
    assert row["_commit_timestamp"].timestamp() * 1000 == pytest.approx(commit.timestamp_ms)


def test_the_snapshot_of_a_change_can_be_named(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    columns = ["id", "_change_type", "_commit_snapshot_id"]
    changes = table.scan(columns=columns, options={"startingVersion": "main"}).to_arrow()
    snapshot_id = head(table).snapshot_id
    assert changes.to_pylist() == [
        {"id": 1, "_change_type": "insert", "_commit_snapshot_id": snapshot_id}
    ]


def test_versions_of_snapshots_without_sequence_numbers_come_first_and_in_order(
    tmp_path: Path,
) -> None:
    builder = TableBuilder(tmp_path / "t", DAYS, format_version=1)
    for at in range(2):
        builder.commit(builder.data_file([(at, 0, "a")]))
    builder.upgrade(2)
    builder.commit(builder.data_file([(2, 0, "a")]))
    table = load_table(str(builder.location))
    changes = table.scan(options={"changes": "true"}).to_arrow().to_pylist()
    by_version = sorted((row["_commit_version"], row["id"]) for row in changes)
    assert [row_id for _, row_id in by_version] == [0, 1, 2]
    assert [version < 0 for version, _ in by_version] == [True, True, False]
    after = {"startingVersion": str(by_version[0][0]), "startingBoundInclusive": "false"}
    assert sorted(table.scan(options=after).to_arrow()["id"].to_pylist()) == [1, 2]


def test_versions_that_several_snapshots_have_are_refused(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", DAYS, format_version=1)
    for at in range(2):
        builder.commit(builder.data_file([(at, 0, "a")]))
    first, second = builder.metadata.snapshots
    builder.set_snapshots([first, replace(second, timestamp_ms=first.timestamp_ms)])
    table = load_table(str(builder.location))
    with pytest.raises(InvalidOptionError, match=r"2 commits have the version .*: 1001, 1002"):
        table.scan(options={"startingVersion": str(commit_version(first))}).to_arrow()


def test_tags_and_branches_are_versions(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for at in range(3):
        table.append(rows(at))
        table.manage_snapshots().create_tag(f"t{at}").commit()
    table.manage_snapshots().create_branch("b").commit()
    assert _ids(table, startingVersion="t1") == [1, 2]
    assert _ids(table, startingVersion="t1", startingBoundInclusive="false") == [2]
    assert _ids(table, startingVersion="t0", endingVersion="t2", endingBoundInclusive="false") == [
        *(0, 1)
    ]
    assert _ids(table, startingVersion="t2", endingVersion="b") == [2]
    assert _ids(table, startingVersion="b", branch="b") == [2]
    with pytest.raises(NoSuchSnapshotError, match="no branch or tag 't9'"):
        _ids(table, startingVersion="t9")


def test_a_range_between_the_same_version_may_be_empty_but_not_turned_around(
    tmp_path: Path,
) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.append(rows(2))
    first, last = (str(snapshot.snapshot_id) for snapshot in table.snapshots())
    for included in ("true", "false"):
        bounds = {"startingBoundInclusive": included, "endingBoundInclusive": "false"}
        assert _ids(table, startingVersion=first, endingVersion=first, **bounds) == []
    with pytest.raises(InvalidOptionError, match="is later than their end"):
        _ids(table, startingVersion=last, endingVersion=first)


def _ids(table: Table, **options: str) -> list[int]:
    return sorted(table.scan(options=options).to_arrow()["id"].to_pylist())


def test_changes_of_a_commit_whose_parent_expired_are_not_known(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for at in range(3):
        table.append(rows(at))
    first, second, _ = (snapshot.snapshot_id for snapshot in table.snapshots())
    table.expire_snapshots(snapshot_ids=[first])
    version = {"startingVersion": str(second)}
    with pytest.raises(NoSuchSnapshotError, match=f"snapshot {first}, before .* has expired.*EXCL"):
        _ids(table, **version)
    assert _ids(table, **version, startingBoundInclusive="false") == [2]
    with pytest.raises(NoSuchSnapshotError, match="has expired"):
        _ids(table, startingVersion=str(first))
    # Without a start, the oldest snapshot counts as having inserted its rows.
    assert _ids(table, changes="true") == [0, 1, 2]


def test_a_table_without_rows_has_no_changes(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    assert _ids(table, changes="true") == []
    assert _ids(table, startingTimestamp="2020-01-01T00:00:00Z") == []
    with pytest.raises(NoSuchSnapshotError, match="branch main has no snapshot yet"):
        _ids(table, startingVersion="main")


@pytest.mark.parametrize("by_vector", [False, True])
@pytest.mark.parametrize("spec", [PartitionSpec(), _BY_DAY])
def test_rows_with_ids_are_updated_without_key_columns(
    tmp_path: Path, spec: PartitionSpec, by_vector: bool
) -> None:
    """Row 2 moves to another day, and row 3 is deleted."""
    builder = TableBuilder(tmp_path / "t", DAYS, spec=spec, format_version=3)
    days = [(day,) if spec.fields else () for day in (0, 1)]
    old = builder.data_file([(1, 0, "a"), (2, 0, "b"), (3, 0, "c")], partition=days[0])
    builder.commit(old)
    lineage = Schema((*DAYS.fields, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER))
    new = [builder.data_file([(2, 1, "B", 1, None)], partition=days[1], schema=lineage)]
    if by_vector:
        builder.commit(*new, *builder.deletion_vectors([(old, [1, 2])]), operation="overwrite")
    else:
        new.append(builder.data_file([(1, 0, "a", 0, 1)], partition=days[0], schema=lineage))
        builder.commit(*new, removed=[old], operation="overwrite")
    table = load_table(str(builder.location))
    assert _types(table, startingVersion="1002") == [("delete", 2), ("delete", 3), ("insert", 2)]
    updates = [("delete", 3), ("update_postimage", 2), ("update_preimage", 2)]
    asked = {"startingVersion": "1002", "computeUpdates": "true"}
    assert _types(table, **asked) == updates
    assert _types(table, **asked, deduplicationMode="netChanges") == updates
    own = table.changes(1001, compute_updates=True).to_arrow()
    assert sorted(own["_change_type"].to_pylist()) == ["DELETE", "UPDATE_AFTER", "UPDATE_BEFORE"]


def test_net_updates_are_from_the_first_row_to_the_last(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for name in ("a", "b", "c"):
        table.upsert(arrow_table(DAYS, [(1, 0, name)]), ["id"])
    start = str(table.snapshots()[0].snapshot_id)
    options = {"deduplicationMode": "netChanges", "identifier-columns": "id"}
    after = {"startingVersion": start, "startingBoundInclusive": "false"}
    changes = table.scan(options={**options, **after}).to_arrow().to_pylist()
    assert sorted((row["_change_type"], row["name"]) for row in changes) == [
        *(("update_postimage", "c"), ("update_preimage", "a")),
    ]


def test_rows_written_before_row_ids_are_no_updates(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", DAYS)
    old = builder.data_file([(1, 0, "a")])
    builder.commit(old)
    builder.commit(builder.data_file([(1, 0, "A")]), removed=[old], operation="overwrite")
    builder.upgrade(3)
    table = load_table(str(builder.location))
    found = _types(table, startingVersion="1002", computeUpdates="true")
    assert found == [("delete", 1), ("insert", 1)]


def test_updates_need_a_key_where_rows_have_no_ids(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    with pytest.raises(InvalidOptionError, match="computeUpdates needs columns that identify rows"):
        _types(table, changes="true", computeUpdates="true")
    columns = {"identifier-columns": "id"}
    table.upsert(arrow_table(DAYS, [(1, 0, "new")]), ["id"])
    assert _types(table, startingVersion="main", **columns) == [
        *(("update_postimage", 1), ("update_preimage", 1)),
    ]


def test_without_deduplication_rewritten_rows_are_changes(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1, 2))
    table.overwrite(rows(1, 3))
    assert _types(table, startingVersion="main") == [("delete", 2), ("insert", 3)]
    assert _types(table, startingVersion="main", deduplicationMode="none") == [
        *(("delete", 1), ("delete", 2), ("insert", 1), ("insert", 3)),
    ]


def test_compaction_is_no_change(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for at in range(3):
        table.append(rows(at))
    table.rewrite_data_files(options={"rewrite-all": "true"})
    assert head(table).operation == "replace"
    for mode in ("none", "dropCarryovers", "netChanges"):
        assert _types(table, startingVersion="main", deduplicationMode=mode) == []


def _types(table: Table, **options: str) -> list[tuple[str, int]]:
    changes = table.scan(options=options).to_arrow().to_pylist()
    return sorted((row["_change_type"], row["id"]) for row in changes)


def test_a_column_of_the_name_of_a_change_column_is_named_in_the_error(tmp_path: Path) -> None:
    table = new_table(tmp_path, schema=Schema((NestedField(1, "_commit_version", LONG),)))
    with pytest.raises(InvalidOptionError, match="has a column _commit_version"):
        table.scan(options={"changes": "true"}).to_arrow()
    assert table.changes().to_arrow().num_rows == 0
