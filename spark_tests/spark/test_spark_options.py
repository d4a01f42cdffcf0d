"""Options that name the table, shape tasks or show metadata columns; options that are wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from built.tables import TableBuilder
from pyspark.sql import SparkSession
from spark_reads import ids, ids_of_each, load, message_of, planned
from spark_tables import ALL_PEOPLE, DELETED_PEOPLE, LIVE_PEOPLE, people

from icebergds.errors import (
    IcebergError,
    InvalidFilterError,
    InvalidOptionError,
    NoSuchTableError,
)
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import BucketTransform, IdentityTransform
from icebergds.spec.types import LONG, STRING, NestedField

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds the table `db.people`."""
    directory = tmp_path_factory.mktemp("warehouse")
    people(directory / "db" / "people")
    return directory


@pytest.fixture(scope="module")
def table(warehouse: Path) -> Path:
    return warehouse / "db" / "people"


def test_a_table_is_named_by_catalog_and_identifier(spark: SparkSession, warehouse: Path) -> None:
    options = {"catalog": "lake", "catalog.warehouse": str(warehouse)}
    frames = {
        "default type": load(spark, "db.people", **options),
        "by type": load(spark, "db.people", **options, **{"catalog.type": "filesystem"}),
    }
    assert ids_of_each(frames) == dict.fromkeys(frames, LIVE_PEOPLE)


def test_a_moved_table_is_read_through_a_location_map(spark: SparkSession, tmp_path: Path) -> None:
    old = people(tmp_path / "old").location
    new = Path(shutil.move(old, tmp_path / "new"))
    mapping = {f"{old}/": f"file://{new}/"}
    df = load(spark, new, **{"location-map": json.dumps(mapping)})
    assert ids(df) == LIVE_PEOPLE
    assert "MissingFileError" in message_of(load(spark, new).collect)


def test_a_location_may_hold_any_characters(spark: SparkSession, tmp_path: Path) -> None:
    table = people(tmp_path / "db=x, 100% #1?" / "tä bl[e]&+'\"").location
    assert ids(load(spark, table)) == LIVE_PEOPLE


def test_option_names_have_no_case(spark: SparkSession, table: Path) -> None:
    df = load(spark, table, FILTER="id < 5", Columns="id", **{"Snapshot-Id": "1001"})
    assert df.columns == ["id"]
    assert ids(df) == [0, 1, 2, 3, 4]


def test_filters_in_the_given_time_zone(spark: SparkSession, table: Path) -> None:
    frames = {
        zone: load(spark, table, filter=f"at <= '1970-01-01 {hour}:00:02'", **{"time-zone": zone})
        for zone, hour in {
            "UTC": "00",
            "+02:00": "02",
            "GMT+2": "02",
            "Europe/Berlin": "01",
        }.items()
    }
    assert ids_of_each(frames) == {zone: [1, 2] for zone in frames}


@pytest.mark.parametrize("zone", ["Berlin", "+99:00", "Europe", "../UTC", ""])
def test_unknown_time_zones_are_refused(table: Path, zone: str) -> None:
    with pytest.raises(InvalidOptionError, match="expected a time zone such as"):
        planned({"path": str(table), "time-zone": zone})


def test_small_batches_hold_the_same_rows(spark: SparkSession, table: Path) -> None:
    options = {"batch-size": "1", "delete-cache-bytes": "0"}
    assert ids(load(spark, table, **options)) == LIVE_PEOPLE


def test_deleted_rows_are_shown_with_a_flag(spark: SparkSession, table: Path) -> None:
    rows = load(spark, table, columns="id, _deleted").collect()
    assert sorted(row.id for row in rows) == ALL_PEOPLE
    assert sorted(row.id for row in rows if row["_deleted"]) == DELETED_PEOPLE


def test_deleted_rows_are_shown_where_a_schema_asks_for_the_flag(
    spark: SparkSession, table: Path
) -> None:
    df = spark.read.schema("id bigint, _deleted boolean").format("icebergpy").load(str(table))
    assert ids(df.where("_deleted")) == DELETED_PEOPLE


def test_metadata_columns(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "part", STRING)))
    by_part = PartitionField((2,), 1000, IdentityTransform(), "part")
    by_bucket = PartitionField((1,), 1001, BucketTransform(4), "id_bucket")
    builder = TableBuilder(
        tmp_path / "t", schema, spec=PartitionSpec(0, (by_part,)), format_version=3
    )
    first = builder.data_file([(1, "x"), (2, "x")], partition=("x",))
    builder.commit(first)
    builder.evolve(spec=PartitionSpec(1, (by_part, by_bucket)))
    second = builder.data_file([(3, "y")], partition=("y", 2))
    builder.commit(second, *builder.deletion_vectors([(first, [0])]))
    names = "id, _file, _pos, _spec_id, _partition, _row_id, _last_updated_sequence_number"
    df = load(spark, builder.location, columns=names)
    assert df.schema["_partition"].dataType.simpleString() == "struct<part:string,id_bucket:int>"
    assert sorted(df.collect()) == [
        (2, first.file_path, 1, 0, ("x", None), 1, 1),
        (3, second.file_path, 0, 1, ("y", 2), 2, 2),
    ]


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """Two large files, then two small ones, in the order of the scan."""
    schema = Schema((NestedField(1, "id", LONG, True), NestedField(2, "text", STRING)))
    builder = TableBuilder(tmp_path_factory.mktemp("uneven") / "t", schema)
    large = [
        builder.data_file([(i, f"{i * 7919:x}" * 9) for i in range(2000)], row_group_size=200)
        for _ in range(2)
    ]
    small = [builder.data_file([(i, "a")]) for i in range(2)]
    builder.commit(*large, *small)
    return builder


def _tasks(path: Path, options: Mapping[str, str]) -> int:
    return len(planned({"path": str(path), **options}).partitions())


def _sizes(builder: TableBuilder) -> tuple[int, int]:
    sizes = sorted(path.stat().st_size for path in (builder.location / "data").iterdir())
    return sizes[-1], sizes[0]


def test_split_size_cuts_and_packs_files(spark: SparkSession, uneven: TableBuilder) -> None:
    large, _ = _sizes(uneven)
    options = {"split-size": str(large // 3), "file-open-cost": "1"}
    df = load(spark, uneven.location, **options)
    assert df.rdd.getNumPartitions() == _tasks(uneven.location, options) >= 6
    assert df.count() == 4002
    assert load(spark, uneven.location).rdd.getNumPartitions() == 1


def test_lookback_is_how_many_open_tasks_a_file_may_join(uneven: TableBuilder) -> None:
    large, small = _sizes(uneven)
    size = {"split-size": str(large + small), "file-open-cost": "1"}
    assert _tasks(uneven.location, size) == 2
    assert _tasks(uneven.location, {**size, "lookback": "1"}) == 3


def test_file_open_cost_is_the_least_weight_of_a_file(uneven: TableBuilder) -> None:
    large, _ = _sizes(uneven)
    size = {"split-size": str(4 * large)}
    assert _tasks(uneven.location, {**size, "file-open-cost": "0"}) == 1
    assert _tasks(uneven.location, {**size, "file-open-cost": str(2 * large)}) == 2
    assert _tasks(uneven.location, {**size, "file-open-cost": str(4 * large)}) == 4


def test_properties_of_the_table_shape_tasks_and_options_win(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG),))
    properties = {"read.split.target-size": "1000", "read.split.open-file-cost": "1000"}
    builder = TableBuilder(tmp_path / "t", schema, properties=properties)
    builder.commit(*(builder.data_file([(i,)]) for i in range(3)))
    assert _tasks(builder.location, {}) == 3
    assert _tasks(builder.location, {"split-size": "1000000"}) == 1
    assert _tasks(builder.location, {"split-size": "2000", "file-open-cost": "1000"}) == 2


REFUSED: list[tuple[dict[str, str], type[IcebergError], str]] = [
    ({"snapshotid": "1"}, InvalidOptionError, "unknown option 'snapshotid'; did you mean 'snapsh"),
    ({"colums": "id"}, InvalidOptionError, "did you mean 'columns'?"),
    ({"versionOf": "1"}, InvalidOptionError, "did you mean 'versionAsOf'?"),
    ({"mergeSchema": "true"}, InvalidOptionError, "unknown option 'mergeschema'"),
    ({"split-size": "0"}, InvalidOptionError, "'split-size' = '0': expected a number above 0"),
    ({"split-size": "128m"}, InvalidOptionError, "expected a whole number"),
    ({"lookback": "-1"}, InvalidOptionError, "expected a number above 0"),
    ({"file-open-cost": "-1"}, InvalidOptionError, "expected 0 or more"),
    ({"batch-size": "0"}, InvalidOptionError, "expected a number above 0"),
    ({"batch-size": str(2**63)}, InvalidOptionError, "at most 64 bits"),
    ({"pushdown": "yes"}, InvalidOptionError, "expected true or false"),
    ({"location-map": "a=b"}, InvalidOptionError, "expected a JSON object"),
    ({"location-map": '["a"]'}, InvalidOptionError, "expected a JSON object"),
    ({"catalog.warehouse": "/w"}, InvalidOptionError, "set option('catalog', '<name>')"),
    ({"catalog": "lake"}, InvalidOptionError, "catalog lake is not configured"),
    (
        {"catalog": "lake", "catalog.type": "hiive", "catalog.warehouse": "/w"},
        InvalidOptionError,
        "unknown type 'hiive'",
    ),
    (
        {"path": "db.x", "catalog": "lake", "catalog.warehouse": "/w"},
        NoSuchTableError,
        "table lake.db.x: ",
    ),
    ({"filter": "id >"}, InvalidFilterError, "is not a condition of Spark SQL"),
    ({"filter": ""}, InvalidFilterError, "filter ''"),
    ({"filter": "nmae = 'x'"}, InvalidFilterError, "name"),
    ({"filter": "id = rand()"}, InvalidFilterError, "rand"),
    ({"filter": "at > '2020-01-01 00:00:00'"}, InvalidFilterError, "time zone"),
    ({"path": ""}, InvalidOptionError, "no table is named"),
    ({"path": "no/such"}, NoSuchTableError, "looked for at /"),
    ({"path": "lake.db.x"}, NoSuchTableError, "set option('catalog', 'lake') with 'db.x'"),
]


@pytest.mark.parametrize(("options", "error", "detail"), REFUSED, ids=lambda value: str(value))
def test_wrong_options_are_refused(
    table: Path, options: dict[str, str], error: type[IcebergError], detail: str
) -> None:
    with pytest.raises(error) as caught:
        planned({"path": str(table), **options})
    assert detail in str(caught.value)
