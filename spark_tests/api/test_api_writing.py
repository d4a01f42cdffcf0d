"""Writes without Spark: what is committed, what is refused, and what failures leave."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.api_tables import (
    DAYS,
    ids_of,
    new_table,
    prepare,
    rows,
    write,
    written,
)
from built.contents import data_files, head, live_entries
from built.rows import arrow_table

from icebergds import RowCounts, load_table
from icebergds.errors import (
    InvalidFilterError,
    InvalidOptionError,
    NoSuchTableError,
    ValidationError,
)
from icebergds.operations.write.append_overwrite import (
    WRITE_ID,
    commit_write,
)
from icebergds.spec.types import INT, TIMESTAMPTZ, NestedField

# Appends and overwrites.


def test_an_append_adds_rows(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1, 2))
    table.append(rows(3))
    assert ids_of(table) == [1, 2, 3]
    assert [s.operation for s in table.snapshots()] == ["append", "append"]
    assert head(table).summary["total-records"] == "3"


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


@pytest.mark.parametrize("partition_by", ["", "day"])
def test_a_dynamic_overwrite_without_rows_commits_nothing(
    tmp_path: Path, partition_by: str
) -> None:
    table = new_table(tmp_path, partition_by=partition_by)
    table.append(rows(1))
    assert table.dynamic_partition_overwrite(rows()) == RowCounts()
    assert ids_of(table) == [1]
    assert len(table.snapshots()) == 1


def test_an_overwrite_by_a_filter_without_rows_commits_what_it_deletes(tmp_path: Path) -> None:
    """Also nothing, as Java Iceberg does."""
    table = new_table(tmp_path, partition_by="day")
    table.append(rows(1, day=1))
    table.overwrite(rows(), "day = 2")
    assert (len(table.snapshots()), head(table).operation) == (2, "delete")
    assert ids_of(table) == [1]


# Where a commit goes.


def test_a_branch_is_written_alone(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.append(rows(2), branch="audit", options={"create-branch": "true"})
    table.append(rows(3), options={"wap.branch": "audit"})
    assert ids_of(table) == [1]
    assert ids_of(table, branch="audit") == [1, 2, 3]
    table.overwrite(rows(4), branch="audit")
    table.delete("true", branch="other", options={"create-branch": "true"})
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


@pytest.mark.parametrize(
    "write",
    [
        lambda table, branch: table.append(rows(2), branch=branch),
        lambda table, branch: table.overwrite(rows(2), branch=branch),
        lambda table, branch: table.delete("true", branch=branch),
        lambda table, branch: table.upsert(rows(2), ["id"], branch=branch),
    ],
    ids=["append", "overwrite", "delete", "upsert"],
)
def test_a_branch_is_not_made_by_accident(tmp_path: Path, write: Any) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.append(rows(2), options={"wap.branch": "audit"})
    before = data_files(table.location())
    with pytest.raises(InvalidOptionError, match=r"no branch 'audti', .*did you mean audit\?"):
        write(table, "audti")
    assert data_files(table.location()) == before
    assert set(table.refresh().refs()) == {"main", "audit"}


def test_a_tag_is_not_written(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    document = Path(table.metadata_location)
    metadata = json.loads(document.read_text())
    metadata["refs"]["v1"] = {"type": "tag", "snapshot-id": metadata["current-snapshot-id"]}
    document.write_text(json.dumps(metadata))
    for overwrite in (False, True):
        with pytest.raises(InvalidOptionError, match="'v1' is a tag"):
            prepare(table.location(), rows(2), overwrite=overwrite, branch="v1")


def test_each_verb_returns_its_counts_and_its_snapshot(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="day")

    def snapshot_id() -> int:
        head_now = table.refresh().current_snapshot()
        assert head_now is not None
        return head_now.snapshot_id

    for change, counts in (
        (lambda: table.append(rows(1, 2, day=1)), RowCounts(inserted=2)),
        (lambda: table.append(rows(3, day=2)), RowCounts(inserted=1)),
        (lambda: table.overwrite(rows(4, day=1), "day = 1"), RowCounts(inserted=1, deleted=2)),
        (
            lambda: table.dynamic_partition_overwrite(rows(5, 6, day=2)),
            RowCounts(inserted=2, deleted=1),
        ),
        (lambda: table.upsert(rows(4, day=1), ["id", "day"]), RowCounts(updated=1)),
        (lambda: table.delete("day = 2"), RowCounts(deleted=2)),
    ):
        found = change()
        assert (found, found.snapshot_id) == (counts, snapshot_id())
    nothing = table.delete("day = 9")
    assert (nothing, nothing.snapshot_id) == (RowCounts(), None)
    with table.transaction() as tx:
        staged = tx.append(rows(9, day=1)).snapshot_id
    assert staged == snapshot_id()


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


# Isolation.


@pytest.mark.parametrize("options", [{}, {"overwrite-mode": "dynamic"}], ids=str)
def test_overwrites_without_a_filter_check_nothing_by_default(
    tmp_path: Path, options: dict[str, str]
) -> None:
    table = new_table(tmp_path, partition_by="day")
    table.append(rows(1, day=1))
    prepared = prepare(table.location(), rows(2, day=1), overwrite=True, **options)
    files = written(prepared, rows(2, day=1))
    table.append(rows(3, day=1))
    commit_write(prepared, files)
    assert ids_of(table.refresh()) == [2]


def test_overwrites_with_a_filter_are_isolated_as_deletes_are(tmp_path: Path) -> None:
    level = "write.delete.isolation-level"
    table = new_table(tmp_path, partition_by="day", properties={level: "snapshot"})
    serializable = new_table(tmp_path / "serializable", partition_by="day")
    for each in (table, serializable):
        each.append(rows(1, day=1))
        load_table(each.location()).append(rows(3, day=1))
    table.overwrite(rows(2, day=1), "day = 1")
    assert ids_of(table) == [2]
    with pytest.raises(ValidationError, match="added rows that may match"):
        serializable.overwrite(rows(2, day=1), "day = 1")
    serializable.overwrite(rows(2, day=1), "day = 1", options={"isolation-level": "none"})
    assert ids_of(serializable) == [2]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_overwrites_are_checked_from_what_the_table_object_has_seen(
    tmp_path: Path, dynamic: bool
) -> None:
    table = new_table(tmp_path, partition_by="day")
    table.append(rows(1, day=1))
    load_table(table.location()).append(rows(2, day=1))
    overwrite = table.dynamic_partition_overwrite if dynamic else table.overwrite
    options = {"isolation-level": "serializable"}
    with pytest.raises(ValidationError, match="added rows that may match"):
        overwrite(rows(3, day=1), options=options)
    assert ids_of(table.refresh()) == [1, 2]
    overwrite(rows(3, day=1), options=options)
    assert ids_of(table) == [3]


def test_commits_to_other_rows_do_not_disturb_an_overwrite(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="day")
    table.append(rows(1, day=1))
    load_table(table.location()).append(rows(2, day=2))
    table.overwrite(rows(3, day=1), "day = 1")
    assert ids_of(table) == [2, 3]


@pytest.mark.parametrize(
    "write",
    [
        lambda table: table.append(rows(2)),
        lambda table: table.overwrite(rows(2)),
        lambda table: table.overwrite(rows(2), "day = 0"),
        lambda table: table.dynamic_partition_overwrite(rows(2)),
        lambda table: table.delete("true"),
        lambda table: table.upsert(rows(2), ["id"]),
        lambda table: table.delete_keys(rows(2).select(["id"]), ["id"]),
        lambda table: table.upgrade(3),
    ],
    ids=["append", "overwrite", "filter", "dynamic", "delete", "upsert", "keys", "upgrade"],
)
def test_no_write_reaches_another_table_of_the_same_name(tmp_path: Path, write: Any) -> None:
    table = new_table(tmp_path)
    shutil.rmtree(table.location())
    other = new_table(tmp_path)
    other.append(rows(1))
    with pytest.raises(ValidationError, match="dropped and re-created"):
        write(table)
    assert len(other.refresh().snapshots()) == 1


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
    prepared = prepare(table.location(), rows(2, day=1), overwrite=True, **options)
    files = written(prepared, rows(2, day=1))
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


@pytest.mark.parametrize("mode", ["equality-deletes", "positions"])
def test_an_upsert_of_rows_that_were_computed_from_a_snapshot_is_checked_from_it(
    tmp_path: Path, mode: str
) -> None:
    """Else two transfers between the same accounts would lose one of them."""
    table = new_table(tmp_path)
    table.append(rows(1, 2))
    start = str(head(table).snapshot_id)
    options = {"isolation-level": "serializable", "write.upsert.mode": mode}
    table.upsert(rows(1), "id", options={**options, "validate-from-snapshot-id": start})
    with pytest.raises(ValidationError, match="added rows"):
        table.upsert(rows(2), "id", options={**options, "validate-from-snapshot-id": start})
    table.upsert(rows(2), "id", options=options)
    assert ids_of(table) == [1, 2]


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
