"""Writes without Spark: what is committed, what is refused, and what failures leave."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icebergds import Table, load_table
from icebergds.catalog.address import TableAddress
from icebergds.errors import (
    CommitStateUnknownError,
    IcebergError,
    InvalidDataError,
    InvalidFilterError,
    InvalidOptionError,
    NoSuchTableError,
    UnsupportedFeatureError,
    ValidationError,
)
from icebergds.formats.data_file.file_schema import schema_from_arrow
from icebergds.io.fileio import FileIO
from icebergds.operations.write.append_overwrite import (
    WRITE_ID,
    PreparedWrite,
    commit_write,
    prepare_write,
)
from icebergds.operations.write.cleanup import is_committed
from icebergds.operations.write.options import parse_write_options
from icebergds.spec.manifest import FileFormat
from icebergds.spec.types import DOUBLE, INT, LONG, STRING, TIMESTAMPTZ, NestedField
from icebergds.spec.updates.table_updates import RemoveSnapshots
from icebergds.testing.api_tables import DAYS, faulty, ids_of, new_table, rows, write
from icebergds.testing.contents import data_files, head, live_entries
from icebergds.testing.faults import Fault, Faults, When
from icebergds.testing.rows import arrow_table
from icebergds.write.task import write_batches


def _prepare(location: str, given: pa.Table, *, overwrite: bool = False, **options: str) -> Any:
    parsed = parse_write_options({"path": location, **options})
    columns = schema_from_arrow(given.schema)
    write, _ = prepare_write(parsed, given.schema, columns, overwrite=overwrite)
    return write


def _written(write: PreparedWrite, given: pa.Table) -> Any:
    return write_batches(write.plan, given.to_batches(), partition_id=0, attempt_id=0)


# Appends and overwrites.


def test_an_append_adds_rows(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1, 2))
    table.append(rows(3))
    assert ids_of(table) == [1, 2, 3]
    assert [s.operation for s in table.snapshots()] == ["append", "append"]
    assert head(table).summary["total-records"] == "3"


def _interrupted(given: pa.Table, between: Callable[[], object]) -> pa.RecordBatchReader:
    """Rows of which others commit something before the last are there."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from given.slice(0, 1).to_batches()
        between()
        yield from given.slice(1).to_batches()

    return pa.RecordBatchReader.from_batches(given.schema, batches())


def test_a_commit_while_rows_are_written_is_no_retry(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"commit.retry.num-retries": "0"})
    other = load_table(table.location())
    table.append(_interrupted(rows(1, 2), lambda: other.append(rows(3))))
    assert ids_of(table) == [1, 2, 3]


def test_metadata_that_goes_while_rows_are_written_is_not_missed(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(0))
    first = head(table)

    def expire() -> None:
        """As maintenance does, once a snapshot is neither the newest nor named."""
        load_table(table.location()).overwrite(rows(3))
        operations = TableAddress(table.location()).operations()
        operations.commit(operations.refresh(), [], [RemoveSnapshots((first.snapshot_id,))])
        assert first.manifest_list is not None
        Path(first.manifest_list).unlink()

    table.append(_interrupted(rows(1, 2), expire))
    assert ids_of(table) == [1, 2, 3]


def test_arrow_rows_are_not_appended_if_options_ask_for_a_change(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(InvalidOptionError, match=r"'write-operation' = 'upsert'.*table\.upsert"):
        table.append(rows(1), options={"write-operation": "upsert", "upsert-keys": "id"})
    assert not table.snapshots()


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"create": "true"}, "create"),
        ({"overwrite-mode": "dynamic"}, "overwrite-mode"),
        ({"overwrite-filter": "id = 1"}, "overwrite-filter"),
        ({"write-operation": "upsert", "upsert-keys": "id"}, "write-operation"),
    ],
)
@pytest.mark.parametrize("verb", ["delete", "update"])
def test_statements_refuse_options_of_writes(
    tmp_path: Path, verb: str, options: dict[str, str], refused: str
) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    statement = {
        "delete": lambda: table.delete("id = 1", options=options),
        "update": lambda: table.update({"name": "'x'"}, "id = 1", options=options),
    }[verb]
    with pytest.raises(InvalidOptionError, match=f"table.{verb} does not take option '{refused}'"):
        statement()
    assert ids_of(table) == [1]


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t,
        lambda t: t.to_batches()[0],
        lambda t: t.to_reader(),
        lambda t: pa.RecordBatchReader.from_batches(t.schema, iter(t.to_batches(max_chunksize=1))),
    ],
    ids=["table", "batch", "reader", "reader of small batches"],
)
def test_rows_come_as_arrow_has_them(tmp_path: Path, make: Any) -> None:
    table = new_table(tmp_path)
    table.append(make(rows(1, 2, 3)))
    assert table.scan().to_arrow().sort_by("id") == rows(1, 2, 3)
    table.overwrite(make(rows(4)))
    assert ids_of(table) == [4]


def test_columns_are_matched_by_name(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(pa.table({"NAME": ["a"], "id": pa.array([1], pa.int32())}))
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "day": None, "name": "a"}]


def test_an_overwrite_replaces_all_rows(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="day")
    table.append(rows(1, day=1))
    table.append(rows(2, day=2))
    table.overwrite(rows(3, day=2))
    assert ids_of(table) == [3]
    assert head(table).operation == "overwrite"


def test_an_overwrite_replaces_the_rows_of_a_filter(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="day")
    for day in (1, 2):
        table.append(rows(day, day=day))
    table.overwrite(rows(3, day=1), "DAY = 1")
    assert ids_of(table) == [2, 3]
    table.overwrite(rows(4, day=2), "day = 9")
    assert ids_of(table) == [2, 3, 4]


def test_an_overwrite_of_some_rows_of_a_file_changes_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1, 2))
    with pytest.raises(ValidationError):
        table.overwrite(rows(3), "id = 1")
    assert ids_of(table.refresh()) == [1, 2]
    assert len(data_files(table.location())) == 1


def test_a_dynamic_overwrite_replaces_the_partitions_of_its_rows(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="day")
    for day in (1, 2):
        table.append(rows(day, day=day))
    table.dynamic_partition_overwrite(pa.concat_tables([rows(3, day=2), rows(4, day=5)]))
    assert ids_of(table) == [1, 3, 4]


def test_a_delete_removes_whole_files(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="day")
    for day in (1, 2):
        table.append(rows(day, day=day))
    table.delete("day = 1", snapshot_properties={"why": "asked"})
    assert ids_of(table) == [2]
    assert (head(table).operation, head(table).summary["why"]) == ("delete", "asked")


def test_a_delete_spares_another_table_of_the_same_name(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    for file in Path(table.location(), "metadata").iterdir():
        file.unlink()
    other = new_table(tmp_path)
    other.append(rows(2))
    with pytest.raises(ValidationError, match="dropped and re-created"):
        table.delete("true")
    assert ids_of(other.refresh()) == [2]


def test_an_append_without_rows_commits_a_snapshot_without_files(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows())
    assert live_entries(table) == []
    assert head(table).operation == "append"
    assert table.scan().to_arrow().num_rows == 0
    table.append(pa.RecordBatchReader.from_batches(rows().schema, []))
    assert len(table.snapshots()) == 2
    assert data_files(table.location()) == []


def test_an_overwrite_without_rows_empties_the_table(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.overwrite(rows())
    assert ids_of(table) == []


# Where a commit goes.


def test_a_branch_is_written_alone(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.append(rows(2), branch="audit")
    table.append(rows(3), options={"wap.branch": "audit"})
    assert ids_of(table) == [1]
    assert ids_of(table, branch="audit") == [1, 2, 3]
    table.overwrite(rows(4), branch="audit")
    table.delete("true", branch="other")
    assert (ids_of(table), ids_of(table, branch="audit")) == ([1], [4])
    assert ids_of(table, branch="other") == []


def test_a_staged_write_moves_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.append(rows(2), options={"wap.id": "night"})
    staged = table.snapshots()[-1]
    assert staged.summary["wap.id"] == "night"
    assert set(table.refs()) == {"main"}
    assert ids_of(table) == [1]
    assert ids_of(table, snapshot_id=staged.snapshot_id) == [1, 2]


def test_a_tag_is_not_written(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    document = Path(table.metadata_location)
    metadata = json.loads(document.read_text())
    metadata["refs"]["v1"] = {"type": "tag", "snapshot-id": metadata["current-snapshot-id"]}
    document.write_text(json.dumps(metadata))
    for overwrite in (False, True):
        with pytest.raises(InvalidOptionError, match="'v1' is a tag"):
            _prepare(table.location(), rows(2), overwrite=overwrite, branch="v1")


def test_an_encrypted_table_is_not_written(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"encryption.key-id": "k"})
    with pytest.raises(UnsupportedFeatureError, match="is encrypted"):
        _prepare(table.location(), rows(1))


def test_summaries_have_what_the_write_says(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(
        rows(1),
        snapshot_properties={"JobId": "7", "added-records": "lie"},
        options={"snapshot-property.by": "me"},
    )
    summary = head(table).summary
    assert (summary["JobId"], summary["by"], summary["added-records"]) == ("7", "me", "1")
    assert summary[WRITE_ID] in data_files(table.location())[0].name


# How files are written.


@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
@pytest.mark.parametrize("by", ["option", "property"])
def test_the_format_of_files_is_chosen(tmp_path: Path, file_format: str, by: str) -> None:
    chosen = {"write.format.default": file_format.upper()} if by == "property" else {}
    options = {"write-format": file_format} if by == "option" else {}
    table = new_table(tmp_path, properties=chosen)
    table.append(rows(1, 2), options=options)
    (entry,) = live_entries(table)
    assert entry.data_file.file_format is FileFormat(file_format)
    assert entry.data_file.file_path.endswith(f".{file_format}")
    assert table.scan().to_arrow().sort_by("id") == rows(1, 2)


def test_an_option_wins_over_the_tables_format(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"write.format.default": "avro"})
    table.append(rows(1), options={"write-format": "parquet"})
    assert data_files(table.location())[0].suffix == ".parquet"


def test_a_format_that_files_do_not_have_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path, properties={"write.format.default": "csv"})
    with pytest.raises(InvalidOptionError, match=r"write\.format\.default = 'csv'"):
        table.append(rows(1))


@pytest.mark.parametrize(("codec", "stored"), [("gzip", "GZIP"), ("uncompressed", "UNCOMPRESSED")])
def test_compression_is_chosen(tmp_path: Path, codec: str, stored: str) -> None:
    table = new_table(tmp_path)
    table.append(rows(1), options={"compression-codec": codec})
    (file,) = data_files(table.location())
    assert pq.read_metadata(file).row_group(0).column(0).compression == stored
    with pytest.raises(InvalidOptionError, match="compression-codec"):
        table.append(rows(1), options={"compression-codec": "zip"})
    with pytest.raises(InvalidOptionError, match="levels 1 to 9"):
        table.append(rows(1), options={"compression-codec": "gzip", "compression-level": "10"})


def test_new_tables_are_compressed_with_zstd(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    (file,) = data_files(table.location())
    assert pq.read_metadata(file).row_group(0).column(0).compression == "ZSTD"


@pytest.mark.parametrize("by", ["option", "property"])
def test_files_end_when_they_are_large_enough(tmp_path: Path, by: str) -> None:
    chosen = {"write.target-file-size-bytes": "20000"} if by == "property" else {}
    options = {"target-file-size-bytes": "20000"} if by == "option" else {}
    table = new_table(tmp_path, properties=chosen)
    texts = [random.Random(i).randbytes(500).hex() for i in range(200)]
    batches = [arrow_table(DAYS, [(i, 0, text)]).to_batches()[0] for i, text in enumerate(texts)]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    table.append(reader, options=options)
    sizes = [file.stat().st_size for file in data_files(table.location())]
    assert len(sizes) > 3
    assert max(sizes) < 40_000
    assert ids_of(table) == list(range(200))


def test_files_without_fan_out_are_written_one_after_the_other(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="day")
    mixed = arrow_table(DAYS, [(i, i % 3, None) for i in range(9)])
    table.append(mixed)
    assert len(data_files(table.location())) == 3
    assert ids_of(table, filter="day = 1") == [1, 4, 7]
    table.append(mixed.sort_by("day"), options={"fanout-enabled": "false"})
    assert ids_of(table, filter="day = 1") == [1, 1, 4, 4, 7, 7]


def test_rows_are_sorted_in_the_tables_order(tmp_path: Path) -> None:
    table = new_table(tmp_path, sort_by="id desc")
    table.append(rows(2, 3, 1))
    (entry,) = live_entries(table)
    assert pq.read_table(entry.data_file.file_path)["id"].to_pylist() == [3, 2, 1]
    assert entry.data_file.sort_order_id == table.sort_order().order_id == 1


def test_rows_that_are_left_unsorted_claim_no_order(tmp_path: Path) -> None:
    table = new_table(tmp_path, sort_by="id desc")
    table.append(rows(2, 3, 1), options={"use-table-distribution-and-ordering": "false"})
    (entry,) = live_entries(table)
    assert pq.read_table(entry.data_file.file_path)["id"].to_pylist() == [2, 3, 1]
    assert not entry.data_file.sort_order_id


# Schemas.


def test_merging_adds_columns_and_widens_types(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    wider = pa.table({"id": pa.array([2], pa.int64()), "Extra": [1.5], "DAY": pa.array([7])})
    with pytest.raises(InvalidDataError, match=r"'Extra'.*merge-schema"):
        table.append(wider)
    table.append(wider, options={"merge-schema": "true"})
    assert [(f.field_id, f.name, f.field_type) for f in table.schema().fields] == [
        (1, "id", LONG),
        (2, "day", LONG),
        (3, "name", STRING),
        (4, "Extra", DOUBLE),
    ]
    assert head(table).schema_id == table.metadata.current_schema_id == 1
    assert table.scan("id = 1").to_arrow()["Extra"].to_pylist() == [None]
    assert table.scan("extra = 1.5").to_arrow()["day"].to_pylist() == [7]


def test_merging_what_is_there_changes_no_schema(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1), options={"mergeSchema": "true"})
    assert len(table.metadata.schemas) == 1
    assert len(table.metadata.metadata_log) == 1


def test_rows_that_do_not_fit_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    schema = replace(DAYS, fields=(replace(DAYS.fields[0], required=True), *DAYS.fields[1:]))
    table = new_table(tmp_path, schema)
    before = table.metadata_location
    for bad in (
        pa.table({"id": ["x"]}),
        pa.table({"id": [1], "nmae": ["x"]}),
        pa.table({"day": [1]}),
        pa.table({"id": [None], "day": [1]}, schema=pa.schema([("id", "int64"), ("day", "int32")])),
    ):
        with pytest.raises(InvalidDataError):
            table.append(bad)
    assert table.refresh().metadata_location == before
    assert data_files(table.location()) == []


# Isolation.


def test_overwrites_check_nothing_by_default(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="day")
    table.append(rows(1, day=1))
    prepared = _prepare(table.location(), rows(2, day=1), overwrite=True)
    files = _written(prepared, rows(2, day=1))
    table.append(rows(3, day=1))
    commit_write(prepared, files)
    assert ids_of(table.refresh()) == [2]


@pytest.mark.parametrize(
    ("options", "added_day", "fails"),
    [
        ({"isolation-level": "serializable"}, 1, True),
        ({"isolation-level": "serializable", "overwrite-filter": "day = 1"}, 1, True),
        ({"isolation-level": "serializable", "overwrite-filter": "day = 1"}, 2, False),
        ({"isolation-level": "serializable", "overwrite-mode": "dynamic"}, 1, True),
        ({"isolation-level": "serializable", "overwrite-mode": "dynamic"}, 2, False),
        ({"isolation-level": "snapshot"}, 1, False),
    ],
    ids=str,
)
def test_what_isolation_refuses(
    tmp_path: Path, options: dict[str, str], added_day: int, fails: bool
) -> None:
    table = new_table(tmp_path, partition_by="day")
    table.append(rows(1, day=1))
    prepared = _prepare(table.location(), rows(2, day=1), overwrite=True, **options)
    files = _written(prepared, rows(2, day=1))
    table.append(rows(3, day=added_day))
    if fails:
        with pytest.raises(ValidationError):
            commit_write(prepared, files)
        assert ids_of(table.refresh()) == [1, 3]
        assert not any(Path(file.file_path).exists() for file in files)
    else:
        commit_write(prepared, files)
        assert 2 in ids_of(table.refresh())


def test_the_snapshot_that_is_checked_from_can_be_given(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    start = str(head(table).snapshot_id)
    table.append(rows(2))
    options = {"isolation-level": "serializable", "validate-from-snapshot-id": start}
    with pytest.raises(ValidationError):
        table.overwrite(rows(3), options=options)
    table.overwrite(rows(3), options={"isolation-level": "serializable"})
    assert ids_of(table) == [3]


def test_writers_that_meet_both_succeed(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    prepared = _prepare(table.location(), rows(1))
    files = _written(prepared, rows(1))
    table.append(rows(2))
    commit_write(prepared, files)
    assert ids_of(table.refresh()) == [1, 2]


# What is refused.


@pytest.mark.parametrize(
    ("overwrite", "options", "error", "message"),
    [
        (False, {"overwrite-filter": "id = 1"}, InvalidOptionError, "need mode\\('overwrite'\\)"),
        (False, {"overwrite-mode": "dynamic"}, InvalidOptionError, "need mode\\('overwrite'\\)"),
        (True, {"overwrite-filter": "idd = 1"}, InvalidFilterError, "did you mean id"),
        (True, {"overwrite-filter": "id ="}, InvalidFilterError, "id ="),
        (False, {"snapshot-id": "1"}, InvalidOptionError, "unknown option"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_the_write(
    tmp_path: Path, overwrite: bool, options: Any, error: type[Exception], message: str
) -> None:
    table = new_table(tmp_path)
    with pytest.raises(error, match=message):
        write(table.location(), rows(1), overwrite=overwrite, **options)
    assert data_files(table.location()) == []


def test_an_argument_is_not_given_as_an_option_too(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(
        InvalidOptionError, match="branch: given both as an argument and in options"
    ):
        table.append(rows(1), branch="a", options={"Branch": "b"})


def test_a_filter_without_an_offset_needs_a_zone(tmp_path: Path) -> None:
    schema = replace(DAYS, fields=(NestedField(1, "at", TIMESTAMPTZ), NestedField(2, "n", INT)))
    table = new_table(tmp_path, schema, partition_by="hours(at)")
    hour = 3_600_000_000
    table.append(arrow_table(schema, [(0, 0), (hour, 1)]))
    text = "at >= '1970-01-01 02:00:00'"
    with pytest.raises(InvalidFilterError, match="zone"):
        table.overwrite(arrow_table(schema, []), text)
    table.overwrite(arrow_table(schema, []), text, options={"time-zone": "+01:00"})
    assert table.scan().to_arrow()["n"].to_pylist() == [0]


def test_a_missing_table_is_not_made_by_accident(tmp_path: Path) -> None:
    with pytest.raises(NoSuchTableError, match=r"option\('create', 'true'\)"):
        write(tmp_path / "t", rows(1))
    assert not (tmp_path / "t").exists()


def test_a_metadata_file_is_not_written(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(InvalidOptionError, match="is a metadata file"):
        load_table(table.metadata_location).append(rows(1))


# Failures.


def _commit_that_fails(table: Table, when: When, error: Exception) -> None:
    write(faulty(table.location(), Faults([Fault(0, when, error)], ("create",))), rows(1))


def test_a_commit_that_is_refused_leaves_no_files(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(IcebergError, match="was not changed"):
        _commit_that_fails(table, When.BEFORE, PermissionError("read-only"))
    assert data_files(table.location()) == []
    assert table.refresh().current_snapshot() is None


def test_a_commit_whose_outcome_is_unknown_keeps_its_files(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with pytest.raises(CommitStateUnknownError):
        _commit_that_fails(table, When.BEFORE, OSError("connection lost"))
    assert len(data_files(table.location())) == 1


def test_a_commit_whose_answer_is_lost_has_succeeded(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    _commit_that_fails(table, When.AFTER, OSError("connection lost"))
    assert ids_of(table.refresh()) == [1]


def test_files_that_cannot_be_deleted_do_not_hide_the_error(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    faults = Faults(
        [
            Fault(0, When.BEFORE, PermissionError("read-only")),
            *(Fault(n, When.BEFORE, OSError("disk")) for n in range(1, 9)),
        ],
        ("create", "delete", "delete_all"),
    )
    with pytest.raises(IcebergError, match="read-only"):
        write(faulty(table.location(), faults), rows(1))


@pytest.mark.parametrize("call", range(3))
def test_a_task_that_cannot_write_leaves_nothing(tmp_path: Path, call: int) -> None:
    table = new_table(tmp_path, partition_by="day")
    faults = Faults([Fault(call, When.BEFORE, OSError("full"))], ("open_output",))
    mixed = arrow_table(DAYS, [(i, i, None) for i in range(3)])
    with pytest.raises(OSError, match="full"):
        write(faulty(table.location(), faults), mixed)
    assert data_files(table.location()) == []
    assert table.refresh().current_snapshot() is None


def test_rows_that_fail_halfway_leave_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path)

    def batches() -> Iterator[pa.RecordBatch]:
        text = random.Random(0).randbytes(500_000).hex()
        for i in range(20):
            yield arrow_table(DAYS, [(i, 0, text)]).to_batches()[0]
        assert len(data_files(table.location())) > 1
        raise OSError("the source is gone")

    reader = pa.RecordBatchReader.from_batches(rows(1).schema, batches())
    with pytest.raises(OSError, match="the source is gone"):
        table.append(reader, options={"target-file-size-bytes": "20000"})
    assert data_files(table.location()) == []


def test_whether_a_write_is_committed_is_told(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    one, other = (_prepare(table.location(), rows(i)) for i in (1, 2))
    commit_write(one, _written(one, rows(1)))
    assert is_committed(one.address, one.write_id)
    assert not is_committed(other.address, other.write_id)
    gone = replace(other, address=TableAddress(str(tmp_path / "gone")))
    assert not is_committed(gone.address, gone.write_id)


def test_a_staged_write_and_one_of_a_branch_count_as_committed(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for options in ({"wap.id": "x"}, {"branch": "b"}):
        prepared = _prepare(table.location(), rows(1), **options)
        commit_write(prepared, _written(prepared, rows(1)))
        assert is_committed(prepared.address, prepared.write_id)


def test_a_prepared_write_can_be_pickled(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="bucket(2, id)", sort_by="name")
    prepared = pickle.loads(pickle.dumps(_prepare(table.location(), rows(1))))
    commit_write(prepared, pickle.loads(pickle.dumps(_written(prepared, rows(1)))))
    assert ids_of(table.refresh()) == [1]


def test_the_storage_of_a_write_is_that_of_its_address(tmp_path: Path) -> None:
    table = new_table(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    address = TableAddress(table.location(), location_map={f"{tmp_path}/old/": f"{tmp_path}/new/"})
    write(address, rows(1))
    moved = Table(address, address.load())
    assert ids_of(moved) == [1]
    assert len(data_files(tmp_path / "new" / "db" / "t")) == 1
    assert not (tmp_path / "old").exists()
    assert isinstance(moved.io, FileIO)
