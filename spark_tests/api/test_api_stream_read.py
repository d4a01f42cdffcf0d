"""What a stream reads of a table, batch by batch, without Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.api_tables import DAYS, ids_of, new_table, rows
from built.damage import drop_block
from effort import examples
from hypothesis import given, strategies as st

from icebergds import Schema, Table
from icebergds.catalog.address import TableAddress
from icebergds.commit.operations import Change
from icebergds.commit.retry import commit_change
from icebergds.errors import (
    CorruptFileError,
    InvalidOptionError,
    NoSuchSnapshotError,
    ValidationError,
)
from icebergds.operations.read.options import parse_load_options
from icebergds.operations.read.snapshot_read import chosen_columns, make_read_plan, resolve_read
from icebergds.operations.read.stream_files import StreamFiles
from icebergds.operations.read.stream_options import parse_stream_options
from icebergds.operations.read.stream_read import Limits, StreamOffset, TableStream, load_stream
from icebergds.scan.read.changes import read_task_group
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.types import LONG, NestedField
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddSchema,
    RemoveSnapshots,
    SetCurrentSchema,
    SetSnapshotRef,
    TableUpdate,
)


class Stream:
    """A streaming query without Spark: it keeps its offset as a checkpoint does."""

    def __init__(self, table: Table, **options: str) -> None:
        named = {name.replace("_", "-"): value for name, value in options.items()}
        self._stream_options = parse_stream_options(named)
        given = {**named, "path": table.location()}
        self._address, self._options = parse_load_options(given)
        _, schema = resolve_read(self._options, table.metadata, "t")
        columns = chosen_columns(self._options, table.metadata, schema)
        self._plan = make_read_plan(self._options, table._state, schema, columns)
        self._limits = Limits(self._stream_options.max_files, self._stream_options.max_rows)
        self.offset = self.loaded().first()
        self._known = StreamFiles()

    def loaded(self) -> TableStream:
        return load_stream(self._address, self._options, self._stream_options, self._plan)

    def batch(self) -> list[dict[str, Any]] | None:
        """The rows of the next micro-batch; None where there is nothing new."""
        loaded = replace(self.loaded(), known=self._known)
        end = loaded.next(self.offset, self._limits)
        if end == self.offset:
            return None
        found = self.between(self.offset, end, loaded)
        assert found == self.between(self.offset, end), "batches are repeated as they were"
        self.offset = StreamOffset.from_json(json.loads(json.dumps(end.to_json())))
        return found

    def between(
        self, start: StreamOffset, end: StreamOffset, loaded: TableStream | None = None
    ) -> list[dict[str, Any]]:
        task_groups = (loaded or self.loaded()).task_groups(start, end)
        batches = [
            batch for task_group in task_groups for batch in read_task_group(self._plan, task_group)
        ]
        return [row for batch in batches for row in batch.to_pylist()]

    def batches(self) -> Iterator[list[dict[str, Any]]]:
        while (found := self.batch()) is not None:
            yield found

    def ids(self) -> list[list[int]]:
        """The ids of each batch until there is nothing new."""
        return [sorted(row["id"] for row in batch) for batch in self.batches()]


def change(table: Table, *updates: TableUpdate) -> None:
    commit_change(
        TableAddress(table.location()).operations(),
        lambda _: Change([], updates),
        lambda _: False,
    )
    table.refresh()


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = new_table(tmp_path)
    made.append(rows(1, 2))
    made.append(rows(3))
    return made


@pytest.mark.parametrize("start", ["snapshot", "earliest"])
def test_files_with_other_counts_end_a_stream_unless_it_only_warns(
    table: Table, start: str
) -> None:
    newest = max(Path(table.location()).glob("metadata/*-m0.avro"), key=lambda p: p.stat().st_mtime)
    drop_block(newest)
    with pytest.raises(CorruptFileError, match="says 1 added file, 1 added row"):
        Stream(table, stream_from=start).ids()
    lenient = Stream(table, stream_from=start, wrong_counts="warn")
    assert lenient.ids() == [[1, 2]]


def test_rows_that_are_there_come_first_and_then_what_is_appended(table: Table) -> None:
    stream = Stream(table)
    assert stream.ids() == [[1, 2, 3]]
    table.append(rows(4))
    table.append(rows(5))
    assert stream.ids() == [[4, 5]]
    assert stream.ids() == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"stream_from": "now"}, []),
        ({"stream_from": "earliest"}, [[1, 2, 3]]),
        ({"stream_from": "snapshot"}, [[1, 2, 3]]),
        ({"stream_from_timestamp": "0"}, [[1, 2, 3]]),
        ({"stream_from_timestamp": "99999999999999"}, []),
    ],
)
def test_where_streams_start(
    table: Table, options: dict[str, str], expected: list[list[int]]
) -> None:
    stream = Stream(table, **options)
    assert stream.ids() == expected
    table.append(rows(9))
    assert stream.ids() == [[9]]


def test_stream_after_a_snapshot(table: Table) -> None:
    first = table.snapshots()[0]
    assert Stream(table, start_snapshot_id=str(first.snapshot_id)).ids() == [[3]]


def test_table_without_rows(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    stream = Stream(table)
    assert stream.ids() == []
    table.append(rows(1))
    assert stream.ids() == [[1]]


@pytest.mark.parametrize("options", [{}, {"read_change_feed": "true"}])
def test_conversions_of_equality_deletes_are_skipped(table: Table, options: dict[str, str]) -> None:
    table.delete_keys(rows(1), "id", options={"write.upsert.mode": "equality-deletes"})
    stream = Stream(table, stream_from="now", **options)
    assert table.convert_equality_deletes().deleted_rows_count == 1
    assert list(chain.from_iterable(stream.ids())) == []
    table.append(rows(4))
    assert stream.ids() == [[4]]


def test_limits_of_files_and_rows(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in range(5):
        table.append(rows(number * 2, number * 2 + 1))
    limit = "streaming_max_files_per_micro_batch"
    for start in ("snapshot", "earliest"):
        found = Stream(table, stream_from=start, **{limit: "2"}).ids()
        assert [len(batch) for batch in found] == [4, 4, 2]
        assert sorted(chain.from_iterable(found)) == list(range(10))
    by_rows = Stream(table, streaming_max_rows_per_micro_batch="3").ids()
    assert [len(batch) for batch in by_rows] == [2] * 5


def test_branch_is_followed(table: Table) -> None:
    table.append(rows(4), branch="audit", options={"create-branch": "true"})
    stream = Stream(table, branch="audit", stream_from="now")
    table.append(rows(5))
    table.append(rows(6), branch="audit")
    assert stream.ids() == [[6]]


def test_commits_that_are_no_appends_are_refused_or_left_out(table: Table) -> None:
    refusing = Stream(table, stream_from="now")
    overwrites = Stream(table, stream_from="now", streaming_skip_overwrite_snapshots="true")
    table.append(rows(4))
    table.overwrite(rows(7))
    table.append(rows(8))
    with pytest.raises(InvalidOptionError, match="streaming-skip-overwrite-snapshots=true"):
        refusing.batch()
    assert overwrites.ids() == [[4, 8]]


def test_deletes_of_the_first_snapshot_are_applied(table: Table) -> None:
    table.upsert(rows(2), ["id"])
    table.delete_keys(rows(3), ["id"])
    assert Stream(table).ids() == [[1, 2]]


def test_feed_has_what_was_inserted_and_deleted(table: Table) -> None:
    stream = Stream(table, read_change_feed="true")
    first = stream.batch() or []
    assert sorted(row["id"] for row in first) == [1, 2, 3]
    assert {row["_change_type"] for row in first} == {"INSERT"}
    table.delete_keys(rows(2), ["id"])
    table.append(rows(4))
    found = [(r["_change_ordinal"], r["id"], r["_change_type"]) for r in stream.batch() or []]
    assert sorted(found) == [(0, 2, "DELETE"), (1, 4, "INSERT")]


def test_expired_offset_says_where_to_go_on(table: Table) -> None:
    stream = Stream(table, stream_from="now")
    going_on = Stream(table, stream_from="now", stream_on_expired="latest")
    for number in (4, 5, 6):
        table.append(rows(number))
    head = table.current_snapshot()
    assert head is not None
    change(table, RemoveSnapshots(tuple(s.snapshot_id for s in table.snapshots() if s != head)))
    with pytest.raises(NoSuchSnapshotError, match=f"{head.snapshot_id}.*stream-on-expired"):
        stream.batch()
    assert going_on.ids() == [[]]
    table.append(rows(7))
    assert going_on.ids() == [[7]]


def test_table_that_was_rolled_back_is_refused(table: Table) -> None:
    stream = Stream(table, stream_from="now")
    table.append(rows(4))
    assert stream.ids() == [[4]]
    first = table.snapshots()[0].snapshot_id
    change(table, SetSnapshotRef("main", SnapshotRef(first, RefType.BRANCH)))
    table.append(rows(5))
    with pytest.raises(InvalidOptionError, match="new checkpoint"):
        stream.batch()


def test_checkpoint_of_another_table_is_refused(table: Table, tmp_path: Path) -> None:
    other = new_table(tmp_path / "other")
    other.append(rows(1))
    stream = Stream(other)
    stream.offset = Stream(table).offset
    with pytest.raises(ValidationError, match="new checkpoint"):
        stream.batch()
    with pytest.raises(InvalidOptionError, match="not one of this source"):
        StreamOffset.from_json({"offset": 1})


@pytest.mark.parametrize("start", ["snapshot", "earliest"])
def test_part_of_a_snapshot_is_read_with_the_filter_it_began_with(
    tmp_path: Path, start: str
) -> None:
    """Another filter would count other files."""
    table = new_table(tmp_path, partition_by="day")
    table.append(pa.concat_tables([rows(day, day=day) for day in range(4)]))
    options = {"stream_from": start, "streaming_max_files_per_micro_batch": "2"}
    stream = Stream(table, filter="day <> 0", **options)
    first = stream.batch() or []
    other = Stream(table, **options)
    other.offset = stream.offset
    with pytest.raises(InvalidOptionError, match="Start the query with its old filter"):
        other.batch()
    second = stream.batch() or []
    assert sorted(row["id"] for row in first + second) == [1, 2, 3]
    other.offset = stream.offset
    table.append(rows(9))
    assert other.ids() == [[9]]


def test_expired_beginnings_are_read_as_rows(table: Table) -> None:
    for number in (4, 5):
        table.append(rows(number))
    known = table.snapshots()[-2:]
    gone = tuple(s.snapshot_id for s in table.snapshots() if s not in known)
    change(table, RemoveSnapshots(gone))
    limit = {"streaming_max_files_per_micro_batch": "100"}
    assert Stream(table, stream_from="earliest", **limit).ids() == [[1, 2, 3, 4, 5]]
    feed = Stream(table, stream_from="earliest", read_change_feed="true").batch() or []
    assert sorted((row["id"], row["_change_ordinal"]) for row in feed) == [
        *((number, 0) for number in (1, 2, 3, 4)),
        (5, 1),
    ]


def test_rollback_is_no_expiry(table: Table) -> None:
    stream = Stream(table, stream_on_expired="latest")
    assert stream.ids() == [[1, 2, 3]]
    first = table.snapshots()[0].snapshot_id
    change(table, SetSnapshotRef("main", SnapshotRef(first, RefType.BRANCH)))
    table.append(rows(5))
    with pytest.raises(InvalidOptionError, match="new checkpoint"):
        stream.batch()


def evolve(table: Table, *fields: NestedField) -> None:
    change(table, AddSchema(Schema(fields)), SetCurrentSchema(LAST_ADDED))


@pytest.mark.parametrize(
    "options", [{"columns": "id,name"}, {"columns": "id", "filter": "name = 'n1'"}, {}]
)
def test_dropped_column_ends_the_stream_that_reads_it(
    table: Table, options: dict[str, str]
) -> None:
    stream, other = Stream(table, **options), Stream(table, columns="id")
    evolve(table, *DAYS.fields[:2])
    with pytest.raises(ValidationError, match="'name', which the stream reads, was dropped"):
        stream.batch()
    assert other.ids() == [[1, 2, 3]]


def test_column_of_another_type_ends_the_stream(table: Table) -> None:
    stream = Stream(table)
    row_id, day, name = DAYS.fields
    evolve(table, row_id, replace(day, field_type=LONG), name)
    with pytest.raises(ValidationError, match="of type int and is now of type long"):
        stream.batch()
    again = Stream(table)
    again.offset = stream.offset
    assert again.ids() == [[1, 2, 3]]


def test_renamed_and_added_columns_do_not_end_the_stream(table: Table) -> None:
    stream = Stream(table)
    row_id, day, name = DAYS.fields
    evolve(table, row_id, day, replace(name, name="title"), NestedField(4, "extra", LONG))
    assert stream.ids() == [[1, 2, 3]]


@pytest.mark.parametrize(
    "options",
    [
        {"snapshot-id": "1"},
        {"end-snapshot-id": "1"},
        {"net-changes": "true"},
        {"stream-from": "then"},
        {"stream-from": "now", "start-snapshot-id": "1"},
        {"streaming-max-files-per-micro-batch": "0"},
        {"stream-on-expired": "ignore"},
    ],
)
def test_options_that_no_stream_can_have(options: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError):
        parse_stream_options(options)


@given(st.data())
@examples(15)
def test_feed_of_any_history_adds_up_to_the_table(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever is committed between batches, and however many files a batch has."""
    version = data.draw(st.sampled_from([2, 3]))
    table = new_table(tmp_path_factory.mktemp("t"), version=version)
    numbers = st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True)
    limit = data.draw(st.sampled_from(["1", "2", "100"]))
    table.append(rows(*data.draw(numbers)))
    stream = Stream(table, read_change_feed="true", streaming_max_files_per_micro_batch=limit)
    held: Counter[int] = Counter()
    for _ in range(data.draw(st.integers(1, 4))):
        for _ in range(data.draw(st.integers(0, 3))):
            given_rows: pa.Table = rows(*data.draw(numbers))
            match data.draw(st.sampled_from(["append", "upsert", "delete", "overwrite"])):
                case "append":
                    table.append(given_rows)
                case "upsert":
                    table.upsert(given_rows, ["id"])
                case "delete":
                    table.delete_keys(given_rows, ["id"])
                case _:
                    table.overwrite(given_rows)
        for batch in stream.batches():
            for row in batch:
                held[row["id"]] += 1 if row["_change_type"] == "INSERT" else -1
        assert sorted(held.elements()) == ids_of(table.refresh())
        assert min(held.values(), default=0) >= 0
