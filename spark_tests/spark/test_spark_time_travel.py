"""Which snapshot is read, with which schema; and that a load stays with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from built.tables import TableBuilder
from pyspark.sql import SparkSession
from spark_reads import ids, ids_of_each, load, message_of, planned

from icebergds.errors import IcebergError, InvalidOptionError, NoSuchSnapshotError
from icebergds.operations.read.options import parse_read_options
from icebergds.spec.schema import Schema
from icebergds.spec.types import INT, LONG, STRING, NestedField

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_OLD = Schema((NestedField(1, "id", LONG, True), NestedField(2, "name", STRING)))
_NEW = Schema(
    (
        NestedField(1, "id", LONG, True),
        NestedField(2, "full_name", STRING),
        NestedField(3, "age", INT),
    ),
    1,
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot a second, from 2023-11-14T22:13:21Z (1,700,000,001) on.

    1001: ids 1, 2 in the old schema, tagged `first`; 1002: 3 in the new one; 1003: 2 deleted;
    1004: 9 on the branch `dev`, which starts at 1001; 1005: 4. The tag `1003` is at 1001.
    """
    builder = TableBuilder(tmp_path_factory.mktemp("travel") / "t", _OLD)
    first = builder.data_file([(1, "a"), (2, "b")])
    builder.commit(first)
    builder.evolve(_NEW)
    builder.commit(builder.data_file([(3, "c", 30)]))
    builder.commit(builder.position_deletes({first.file_path: [1]}))
    builder.tag("first", 1001)
    builder.tag("1003", 1001)
    builder.branch("dev", 1001)
    builder.commit(builder.data_file([(9, "i", 90)]), branch="dev")
    builder.commit(builder.data_file([(4, "d", 40)]))
    return builder.location


class Case(NamedTuple):
    """Options, and the ids and columns that are read with them."""

    options: dict[str, str]
    ids: list[int]
    columns: str


_OLD_COLUMNS, _NEW_COLUMNS = "id name", "id full_name age"
CASES = [
    Case({}, [1, 3, 4], _NEW_COLUMNS),
    Case({"snapshot-id": "1001"}, [1, 2], _OLD_COLUMNS),
    Case({"snapshot-id": "1002"}, [1, 2, 3], _NEW_COLUMNS),
    Case({"snapshot-id": "1004"}, [1, 2, 9], _NEW_COLUMNS),
    Case({"as-of-timestamp": "1700000001000"}, [1, 2], _OLD_COLUMNS),
    Case({"as-of-timestamp": "1700000001999"}, [1, 2], _OLD_COLUMNS),
    Case({"as-of-timestamp": "1700000002000"}, [1, 2, 3], _NEW_COLUMNS),
    # What is committed to a branch is never the table's current snapshot.
    Case({"as-of-timestamp": "1700000004000"}, [1, 3], _NEW_COLUMNS),
    Case({"as-of-timestamp": "4000000000000"}, [1, 3, 4], _NEW_COLUMNS),
    Case({"tag": "first"}, [1, 2], _OLD_COLUMNS),
    Case({"branch": "dev"}, [1, 2, 9], _NEW_COLUMNS),
    Case({"branch": "main"}, [1, 3, 4], _NEW_COLUMNS),
    Case({"versionAsOf": "1002"}, [1, 2, 3], _NEW_COLUMNS),
    Case({"versionAsOf": "first"}, [1, 2], _OLD_COLUMNS),
    Case({"versionAsOf": "dev"}, [1, 2, 9], _NEW_COLUMNS),
    Case({"versionAsOf": "main"}, [1, 3, 4], _NEW_COLUMNS),
    # A number is a snapshot's id, whatever tags are named.
    Case({"versionAsOf": "1003"}, [1, 3], _NEW_COLUMNS),
    Case({"tag": "1003"}, [1, 2], _OLD_COLUMNS),
    Case({"timestampAsOf": "1700000001"}, [1, 2], _OLD_COLUMNS),
    Case({"timestampAsOf": "2023-11-14T22:13:22Z"}, [1, 2, 3], _NEW_COLUMNS),
    Case({"timestampAsOf": "2023-11-14 23:13:21.999+01:00"}, [1, 2], _OLD_COLUMNS),
    Case(
        {"timestampAsOf": "2023-11-14 23:13:22", "time-zone": "Europe/Berlin"},
        [1, 2, 3],
        _NEW_COLUMNS,
    ),
    Case(
        {"timestampAsOf": "2023-11-14 17:13:21", "time-zone": "-05:00"}, [1, 2], _OLD_COLUMNS
    ),
    Case({"timestampAsOf": "2023-11-15", "time-zone": "UTC"}, [1, 3, 4], _NEW_COLUMNS),
]  # fmt: skip
_BY_NAME = {str(case.options): case for case in CASES}


@pytest.mark.parametrize("name", _BY_NAME)
def test_rows_and_schema_of_a_snapshot(table: Path, name: str) -> None:
    case = _BY_NAME[name]
    reader = planned({"path": str(table), **case.options})
    batches = [batch for task_group in reader.partitions() for batch in reader.read(task_group)]
    assert sorted(i for batch in batches for i in batch.column("id").to_pylist()) == case.ids
    assert {" ".join(batch.schema.names) for batch in batches} == {case.columns}


def test_spark_hands_every_option_over(spark: SparkSession, table: Path) -> None:
    options: dict[str, dict[str, Any]] = {
        "id": {"snapshot-id": 1001},
        "time": {"as-of-timestamp": 1700000001999},
        "tag": {"tag": "first"},
        "branch": {"branch": "dev"},
        "version": {"versionAsOf": 1002},
        "timestamp": {"timestampAsOf": "2023-11-14 23:13:21", "time-zone": "Europe/Berlin"},
    }
    frames = {name: load(spark, table, **given) for name, given in options.items()}
    assert frames["id"].columns == ["id", "name"]
    assert ids_of_each(frames) == {
        "id": [1, 2],
        "time": [1, 2],
        "tag": [1, 2],
        "branch": [1, 2, 9],
        "version": [1, 2, 3],
        "timestamp": [1, 2],
    }


def test_filter_and_columns_name_those_of_the_snapshot(spark: SparkSession, table: Path) -> None:
    old = load(spark, table, tag="first", filter="name = 'b'", columns="name")
    assert old.collect() == [("b",)]


def test_an_old_snapshot_in_a_view(spark: SparkSession, table: Path) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW old USING icebergpy "
        f"OPTIONS (path '{table}', `snapshot-id` 1002)"
    )
    assert ids(spark.sql("SELECT id FROM old WHERE full_name > 'a'")) == [2, 3]


@pytest.mark.parametrize(
    "text", ["2023-11-14T22:13:21.001Z", "2023-11-14T22:13:21.009Z", "1969-12-31T23:59:59.999999Z"]
)
def test_times_are_exact_to_the_millisecond(text: str) -> None:
    moment = datetime.fromisoformat(text)
    options = parse_read_options({"timestampAsOf": text})
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    assert options.time_travel.as_of_ms == since // timedelta(milliseconds=1)


REFUSED: list[tuple[dict[str, str], type[IcebergError], str]] = [
    ({"snapshot-id": "7"}, NoSuchSnapshotError, "snapshot 7 does not exist"),
    ({"snapshot-id": "first"}, InvalidOptionError, "expected a whole number"),
    ({"as-of-timestamp": "1"}, NoSuchSnapshotError, "no snapshot was current at 1970-01-01T00"),
    ({"as-of-timestamp": "2023-11-14"}, InvalidOptionError, "give an offset"),
    ({"tag": "fist"}, NoSuchSnapshotError, "no tag 'fist'; did you mean first?"),
    ({"tag": "dev"}, NoSuchSnapshotError, "dev is a branch"),
    ({"branch": "first"}, NoSuchSnapshotError, "first is a tag"),
    ({"branch": "test"}, NoSuchSnapshotError, "no branch 'test'; it has dev, main"),
    ({"versionAsOf": "77"}, NoSuchSnapshotError, "snapshot 77 does not exist"),
    ({"versionAsOf": "fist"}, NoSuchSnapshotError, "no branch or tag 'fist'; did you mean first?"),
    ({"timestampAsOf": "yesterday"}, InvalidOptionError, "expected a timestamp such as"),
    ({"timestampAsOf": "2023-11-14 22:13:21"}, InvalidOptionError, "give an offset"),
    ({"timestampAsOf": "2023-11-14T22:13:20Z"}, NoSuchSnapshotError, "no snapshot was current"),
    (
        {"timestampAsOf": "2023-11-14 22:13:21", "time-zone": "Berlin"},
        InvalidOptionError,
        "option 'time-zone' = 'Berlin'",
    ),
    ({"tag": "first", "branch": "dev"}, InvalidOptionError, "'branch' and 'tag' contradict"),
    (
        {"snapshot-id": "1001", "versionAsOf": "1001"},
        InvalidOptionError,
        "'snapshot-id' and 'versionAsOf' contradict",
    ),
]


@pytest.mark.parametrize(("options", "error", "detail"), REFUSED, ids=lambda value: str(value))
def test_a_snapshot_that_cannot_be_read_is_refused(
    table: Path, options: dict[str, str], error: type[IcebergError], detail: str
) -> None:
    with pytest.raises(error) as caught:
        planned({"path": str(table), **options})
    assert detail in str(caught.value)


def test_spark_shows_why_a_snapshot_is_refused(spark: SparkSession, table: Path) -> None:
    message = message_of(lambda: load(spark, table, versionAsOf="7").schema)
    assert "icebergds.errors.NoSuchSnapshotError" in message
    assert "snapshot 7 does not exist; the table has 5, newest 1005" in message


@pytest.fixture
def growing(tmp_path: Path) -> TableBuilder:
    builder = TableBuilder(tmp_path / "growing", _OLD)
    builder.commit(builder.data_file([(1, "a")]))
    return builder


def _grow(builder: TableBuilder) -> None:
    builder.evolve(_NEW)
    builder.commit(builder.data_file([(2, "b", 20)]))


def test_a_dataframe_stays_with_the_snapshot_of_its_load(
    spark: SparkSession, growing: TableBuilder
) -> None:
    planned_before, planned_after = (load(spark, growing.location) for _ in range(2))
    assert ids(planned_before) == [1]
    _grow(growing)
    assert planned_before.collect() == [(1, "a")]
    assert planned_after.collect() == [(1, "a")]
    assert ids(load(spark, growing.location)) == [1, 2]


@pytest.mark.parametrize("schema", [None, "id bigint, name string"])
def test_every_plan_of_a_load_reads_the_same_snapshot(
    spark: SparkSession, growing: TableBuilder, pushdown_enabled: None, schema: str | None
) -> None:
    """With pushdown enabled Spark plans a load anew for every filtered scan."""
    reader = spark.read.format("icebergpy")
    df = (reader.schema(schema) if schema else reader).load(str(growing.location))
    # Given a schema, Spark asks the source for nothing before the first action.
    assert ids(df) == [1]
    _grow(growing)
    assert ids(df.where("id > 0")) == [1]
    assert ids(df) == [1]


def test_a_view_stays_with_its_snapshot_until_it_is_replaced(
    spark: SparkSession, growing: TableBuilder
) -> None:
    create = (
        "CREATE OR REPLACE TEMPORARY VIEW growing USING icebergpy "
        f"OPTIONS (path '{growing.location}')"
    )
    spark.sql(create)
    _grow(growing)
    assert ids(spark.table("growing")) == [1]
    spark.sql(create)
    assert ids(spark.table("growing")) == [1, 2]
