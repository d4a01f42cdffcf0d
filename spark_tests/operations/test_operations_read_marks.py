"""Marks in a DataFrame's schema of what its rows were read from."""

from __future__ import annotations

import pytest
from built.metadata import branch, changed, table_with
from pyspark.sql.types import LongType, StringType, StructField, StructType

from icebergds.operations.write.read_marks import ReadMark, oldest_read
from icebergds.spark.read_mark import marked_schema, read_marks
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.updates.table_updates import SetSnapshotRef

TABLE = table_with(1, 2, 3)
COLUMNS = StructType(
    [StructField("id", LongType(), True, {"comment": "who"}), StructField("name", StringType())]
)


def mark(snapshot_id: int | None, table_uuid: str = TABLE.table_uuid or "") -> ReadMark:
    return ReadMark(table_uuid, snapshot_id, "main")


@pytest.mark.parametrize("name", ["main", "a/b", "ä ö"])
def test_marks_are_read_as_they_were_made(name: str) -> None:
    head = TABLE.head_of("main")
    schema = marked_schema(COLUMNS, TABLE, name, head)
    assert read_marks(schema) == (ReadMark(TABLE.table_uuid or "", 3, name),)
    before_its_first = marked_schema(COLUMNS, TABLE, name, None)
    assert read_marks(before_its_first) == (ReadMark(TABLE.table_uuid or "", None, name),)


def test_mark_leaves_columns_and_comments_as_they_are() -> None:
    marked = marked_schema(COLUMNS, TABLE, "main", TABLE.head_of("main"))
    assert marked.simpleString() == COLUMNS.simpleString()
    assert marked["id"].metadata["comment"] == "who"
    assert marked["name"] == COLUMNS["name"]
    assert COLUMNS["id"].metadata == {"comment": "who"}


@pytest.mark.parametrize("text", ["", "x", "a/b", "a/b/c", 7, None])
def test_other_metadata_is_no_mark(text: object) -> None:
    schema = StructType([StructField("id", LongType(), True, {"icebergpy.read": text})])
    assert read_marks(schema) == ()


def test_of_several_reads_the_oldest_counts() -> None:
    assert oldest_read([mark(3), mark(2)], TABLE, "main") == mark(2)
    assert oldest_read([mark(3), mark(None)], TABLE, "main") == mark(None)
    assert oldest_read([mark(3), mark(99)], TABLE, "main") == mark(99)


def test_reads_of_other_tables_and_branches_do_not_count() -> None:
    assert oldest_read([mark(2, "another")], TABLE, "main") is None
    assert oldest_read([mark(2)], with_branch("b"), "b") is None


def test_branch_that_does_not_exist_begins_as_main() -> None:
    assert oldest_read([mark(2)], TABLE, "b") == mark(2)


def with_branch(name: str) -> TableMetadata:
    return changed(TABLE, SetSnapshotRef(name, branch(3)))
