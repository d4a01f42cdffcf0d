"""Updates of a table's columns, layout and properties, in each kind of catalog, without Spark."""

from __future__ import annotations

import datetime
import decimal
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from icebergds import Catalog, Table, load_catalog
from icebergds.errors import (
    InvalidMetadataError,
    InvalidOptionError,
    UnsupportedFeatureError,
)
from icebergds.spec.sort import NullOrder, SortDirection, SortField
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    VoidTransform,
)
from icebergds.spec.types import LONG, STRING, UUID, DecimalType, FixedType

_COLUMNS = "id bigint NOT NULL, a int, s struct<x: int, y: string>, d date, ts timestamp_ntz"


@pytest.fixture(params=["filesystem", "sql"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    """A catalog of each kind, with the namespace `db`."""
    uri = {} if request.param == "filesystem" else {"uri": f"sqlite:///{tmp_path}/catalog.db"}
    found = load_catalog("lake", warehouse=str(tmp_path / "warehouse"), **uri)
    found.create_namespace("db")
    return found


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return made(tmp_path)


def made(tmp_path: Path, version: int = 3, **more: Any) -> Table:
    catalog = load_catalog("lake", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("db")
    properties = {"format-version": str(version), **more.pop("properties", {})}
    return catalog.create_table("db.t", _COLUMNS, properties=properties, **more)


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def test_an_update_is_one_commit_that_others_see(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", _COLUMNS)
    with table.update_schema() as update:
        update.add_column("b", "string").rename_column("a", "z").move_first("b")
        assert [field.name for field in update.schema.fields][:3] == ["b", "id", "z"]
    found = catalog.load_table("db.t")
    assert found.schema() == table.schema()
    assert [field.name for field in found.schema().fields] == ["b", "id", "z", "s", "d", "ts"]
    assert len(found.metadata.metadata_log) == 1


def test_nothing_is_committed_if_the_block_raises(table: Table) -> None:
    def change() -> None:
        with table.update_schema() as update:
            update.add_column("b", "string").add_column("id", "int")

    with pytest.raises(InvalidOptionError, match=r"table lake\.db\.t: column 'id' already exists"):
        change()
    assert table.refresh().schema().find_id("b") is None


def test_an_update_that_changes_nothing_is_no_commit(table: Table) -> None:
    before = table.metadata_location
    with table.update_schema() as update:
        update.add_column("b", "int").delete_column("b")
    with table.update_spec() as spec:
        spec.add_identity("id").remove_field("id")
    table.update_sort_order().commit()
    table.set_properties({}).remove_properties("nothing").update_location(table.location())
    with table.manage_snapshots():
        pass
    with table.transaction():
        pass
    assert table.refresh().metadata_location == before


def test_updates_are_made_anew_on_what_others_commit_first(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", _COLUMNS)
    other = catalog.load_table("db.t")
    with table.update_schema() as update:
        update.add_column("mine", "int")
        other.update_schema().add_column("theirs", "int").commit()
    assert [field.name for field in table.schema().fields][-2:] == ["theirs", "mine"]
    assert table.schema().find_id("mine") == table.metadata.last_column_id


def test_an_update_that_no_longer_fits_says_so(table: Table, tmp_path: Path) -> None:
    other = load_catalog("lake", warehouse=str(tmp_path / "warehouse")).load_table("db.t")
    update = table.update_schema().rename_column("a", "z")
    other.update_schema().delete_column("a").commit()
    with pytest.raises(InvalidOptionError, match=r"table lake\.db\.t: there is no column 'a'"):
        update.commit()


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("bigint", LONG),
        ("long", LONG),
        ("uuid", UUID),
        ("fixed[4]", FixedType(4)),
        ("decimal(4, 2)", DecimalType(4, 2)),
        (pa.string(), STRING),
        (spark.DecimalType(4, 2), DecimalType(4, 2)),
        (LONG, LONG),
    ],
    ids=str,
)
def test_types_are_given_as_text_or_as_those_of_arrow_and_spark(
    table: Table, given: Any, found: Any
) -> None:
    table.update_schema().add_column("new", given).commit()
    assert table.schema().fields[-1].field_type == found


def test_types_of_pyiceberg_are_taken(table: Table) -> None:
    types = pytest.importorskip("pyiceberg.types")
    table.update_schema().add_column("new", types.DecimalType(4, 2)).commit()
    assert table.schema().fields[-1].field_type == DecimalType(4, 2)


@pytest.mark.parametrize("given", ["nonsense", "int, b int", "int NOT NULL", 5, None, int])
def test_what_is_no_type_is_refused(table: Table, given: Any) -> None:
    with pytest.raises(InvalidOptionError, match="column 'new'"):
        table.update_schema().add_column("new", given)


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ("int", 7, 7),
        ("bigint", "7", 7),
        ("double", 1.5, 1.5),
        ("string", "x", "x"),
        ("boolean", False, False),
        ("date", "2026-01-02", datetime.date(2026, 1, 2)),
        ("date", datetime.date(2026, 1, 2), datetime.date(2026, 1, 2)),
        ("timestamp_ntz", "2026-01-02 03:04:05", datetime.datetime(2026, 1, 2, 3, 4, 5)),
        ("decimal(5, 2)", "1.25", decimal.Decimal("1.25")),
        ("binary", b"ab", b"ab"),
        ("fixed[2]", b"ab", b"ab"),
    ],
    ids=str,
)
def test_rows_from_before_a_column_have_its_default(
    table: Table, kind: str, value: Any, read: Any
) -> None:
    table.append(ids(1))
    table.update_schema().add_column("new", kind, default_value=value).commit()
    table.append(ids(2))
    assert [row["new"] for row in table.refresh().scan().to_arrow().to_pylist()] == [read, read]


def test_a_write_default_is_that_of_later_rows_alone(table: Table) -> None:
    table.update_schema().add_column("new", "int", default_value=1).commit()
    table.append(ids(1))
    table.update_schema().set_default("new", 2).commit()
    table.append(ids(2))
    rows = {row["id"]: row["new"] for row in table.scan().to_arrow().to_pylist()}
    assert rows == {1: 1, 2: 2}
    table.update_schema().set_default("new", None).commit()
    assert table.schema().fields[-1].initial_default == 1


@pytest.mark.parametrize("value", [1.5, 2**40, "x", datetime.date(2026, 1, 1), True])
def test_a_default_of_another_type_is_refused(table: Table, value: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"default .* of column 'new' of type int"):
        table.update_schema().add_column("new", "int", default_value=value)


def test_errors_of_defaults_name_the_table(table: Table) -> None:
    changes: list[Callable[[], Any]] = [
        lambda: table.update_schema().add_column("new", "int", default_value="x"),
        lambda: table.update_schema().add_column("new", "unknown", default_value="x"),
        lambda: table.update_schema().set_default("nope", 1),
        lambda: table.update_schema().set_default("a", "x"),
    ]
    for change in changes:
        with pytest.raises(InvalidOptionError, match=r"^table lake\.db\.t: "):
            change()


def test_the_default_of_a_new_column_is_for_rows_of_before_and_after(table: Table) -> None:
    with table.update_schema() as update:
        update.add_column("both", "string", default_value="x")
        update.add_column("later", "string").set_default("later", "y")
    both, later = table.schema().fields[-2:]
    assert (both.initial_default, both.write_default) == ("x", "x")
    assert (later.initial_default, later.write_default) == (None, "y")


def test_a_column_that_is_added_with_a_default_may_be_required_at_once(table: Table) -> None:
    table.append(ids(1))
    with table.update_schema() as update:
        update.add_column("new", "int", default_value=7).update_column("new", required=True)
    assert table.schema().fields[-1].required
    assert table.scan().to_arrow()["new"].to_pylist() == [7]


def test_defaults_need_version_3(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="upgrade the table to version 3"):
        made(tmp_path, 2).update_schema().add_column("new", "int", default_value=1)


def test_a_deleted_and_added_column_has_no_old_values(table: Table) -> None:
    table.append(pa.table({"id": pa.array([1], pa.int64()), "a": pa.array([5], pa.int32())}))
    with table.update_schema() as update:
        update.delete_column("a").add_column("a", "int")
    assert table.scan().to_arrow()["a"].to_pylist() == [None]


def test_the_last_column_and_identifier_fields_are_replaced_in_one_update(
    catalog: Catalog,
) -> None:
    table = catalog.create_table("db.t", "id int NOT NULL")
    table.update_schema().set_identifier_fields("id").commit()
    with pytest.raises(InvalidOptionError, match=r"table lake\.db\.t: column 'id' cannot be del"):
        table.update_schema().delete_column("id").add_column("new", "int").commit()
    with pytest.raises(InvalidOptionError, match=r"table lake\.db\.t: the last column"):
        table.update_schema().delete_column("id").set_identifier_fields().commit()
    with table.update_schema() as update:
        update.delete_column("id").add_column("id", "string").set_identifier_fields()
    assert table.schema().ids_by_name == {"id": 2}


def test_fields_inside_of_lists_and_maps_are_edited_by_their_short_names(tmp_path: Path) -> None:
    table = made(tmp_path)
    with table.update_schema() as update:
        update.add_column("points", "array<struct<x: int, y: int, z: int>>")
        update.add_column("places", "map<string, struct<n: float, e: float>>")
        update.rename_column("points.x", "left").move_first("points.z").delete_column("points.y")
        update.update_column("places.n", "double", doc="north").set_default("places.e", 0.5)
        update.add_column(("points", "a.b"), "int").rename_column("points.a.b", ("c.d",))
    points, places = (str(field.field_type) for field in table.schema().fields[-2:])
    assert points == "list<struct<12: z: int, 10: left: int, 18: c.d: int>>"
    assert places == "map<string, struct<16: n: double, 17: e: float>>"
    north, east = table.schema().fields_by_id[16], table.schema().fields_by_id[17]
    assert (north.doc, east.write_default) == ("north", 0.5)


def test_a_column_is_renamed_where_it_is(table: Table) -> None:
    update = table.update_schema()
    with pytest.raises(InvalidOptionError, match=r"'s\.z': a column stays where it is; .* 'z'"):
        update.rename_column("s.x", "s.z")


def test_an_update_of_nothing_still_needs_its_column(table: Table) -> None:
    before = table.metadata_location
    table.update_schema().update_column("a").commit()
    assert table.metadata_location == before
    with pytest.raises(InvalidOptionError, match=r"table lake\.db\.t: there is no column 'nope'"):
        table.update_schema().update_column("nope")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_schema_that_comes_back_keeps_its_id_and_no_column_id_is_used_again(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version)
    table.update_schema().add_column("new", "int").commit()
    table.update_schema().delete_column("new").commit()
    assert (table.metadata.current_schema_id, len(table.metadata.schemas)) == (0, 2)
    table.update_schema().add_column("newer", "int").commit()
    assert table.schema().fields[-1].field_id == 9


def test_columns_that_partitions_or_the_order_need_stay(tmp_path: Path) -> None:
    table = made(tmp_path, partition_spec="days(ts)", sort_order="a")
    with pytest.raises(InvalidOptionError, match="'ts' cannot be deleted: partition field"):
        table.update_schema().delete_column("ts").commit()
    with pytest.raises(InvalidOptionError, match="'a' cannot be deleted: the table's sort order"):
        table.update_schema().delete_column("a").commit()
    table.update_spec().remove_field("ts_day").commit()
    table.update_sort_order().commit()
    table.update_schema().delete_column("ts").delete_column("a").commit()
    table.append(ids(1))
    assert table.scan().to_arrow().num_rows == 1


def test_a_date_that_partitions_by_its_value_stays_a_date(tmp_path: Path) -> None:
    table = made(tmp_path, partition_spec="d")
    with pytest.raises(InvalidOptionError, match="the values of partition field 'd'"):
        table.update_schema().update_column("d", "timestamp_ntz").commit()


@pytest.mark.parametrize("after", ["timestamp_ntz", "timestamp_ns"])
def test_a_promoted_date_is_pruned_and_read_as_its_midnight(tmp_path: Path, after: str) -> None:
    table = made(tmp_path, partition_spec="months(d)")
    days = pa.array([datetime.date(2026, 1, day) for day in (1, 20)])
    table.append(pa.table({"id": pa.array([1, 2], pa.int64()), "d": days}))
    table.update_schema().update_column("d", after).commit()
    found = table.scan("d >= timestamp_ntz'2026-01-20 00:00:00'").to_arrow()
    assert found["id"].to_pylist() == [2]
    assert str(found["d"][0]).startswith("2026-01-20 00:00:00")


def test_properties_of_columns_follow_them(tmp_path: Path) -> None:
    prefix = "write.metadata.metrics.column"
    table = made(tmp_path, properties={f"{prefix}.a": "full", f"{prefix}.s.x": "none"})
    table.update_schema().rename_column("a", "b").rename_column("s", "t").commit()
    kept = {name: value for name, value in table.properties.items() if prefix in name}
    assert kept == {f"{prefix}.b": "full", f"{prefix}.t.x": "none"}
    table.update_schema().delete_column("t").commit()
    assert f"{prefix}.t.x" not in table.properties


def test_the_name_mapping_follows_the_columns(tmp_path: Path) -> None:
    mapping = json.dumps([{"field-id": 2, "names": ["a"]}])
    table = made(tmp_path, properties={"schema.name-mapping.default": mapping})
    table.update_schema().rename_column("a", "b").commit()
    stored = json.loads(table.properties["schema.name-mapping.default"])
    assert {"field-id": 2, "names": ["a", "b"]} in stored


def test_identifier_fields_are_set_and_must_be_required(table: Table) -> None:
    table.update_schema().set_identifier_fields("id").commit()
    assert table.schema().identifier_field_ids == (1,)
    with pytest.raises(InvalidMetadataError, match=r"table lake\.db\.t: column 'a' cannot be"):
        table.update_schema().set_identifier_fields("a").commit()


def test_files_of_old_and_new_specs_are_pruned_together(tmp_path: Path) -> None:
    table = made(tmp_path, partition_spec="id")
    table.append(ids(1, 2))
    with table.update_spec() as update:
        update.remove_field("id").add_field("bucket(4, id)").add_field("ts", "day")
    table.append(ids(1, 2))
    assert [str(part.transform) for part in table.spec().fields] == ["bucket[4]", "day"]
    assert table.scan("id = 1").to_arrow().num_rows == 2
    assert len(table.scan("id = 1").plan_files()) == 2
    assert table.scan().to_arrow().num_rows == 4


def test_a_field_that_comes_back_has_its_id(table: Table) -> None:
    table.update_spec().add_field("bucket(4, id)").commit()
    first = table.spec()
    table.update_spec().remove_field("bucket(4, id)").commit()
    assert table.spec().fields == ()
    table.update_spec().add_field("bucket(4, id)").commit()
    assert table.spec() == first


def test_version_1_keeps_removed_fields_as_void(tmp_path: Path) -> None:
    table = made(tmp_path, 1, partition_spec="id")
    table.append(ids(1))
    table.update_spec().remove_field("id").add_field("bucket(4, id)").commit()
    table.append(ids(1))
    assert [part.transform for part in table.spec().fields] == [VoidTransform(), BucketTransform(4)]
    assert table.scan("id = 1").to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda spec: spec.add_field("nope"), "nope"),
        (lambda spec: spec.add_field("days(a)"), "does not apply to column 'a'"),
        (lambda spec: spec.add_field("a, id"), "expected one column"),
        (lambda spec: spec.add_field("days(ts)", "hour"), "has a transform already"),
        (lambda spec: spec.add_field("ts", "fortnight"), "fortnight"),
        (lambda spec: spec.add_field(""), "source_column_name"),
        (lambda spec: spec.remove_field("nope"), "the table is not partitioned"),
    ],
)
def test_a_wrong_partition_field_is_refused(
    table: Table, change: Callable[[Any], Any], said: str
) -> None:
    with pytest.raises(InvalidOptionError, match=said):
        change(table.update_spec())


def test_a_partition_field_with_the_name_of_a_column_is_refused(table: Table) -> None:
    with pytest.raises(InvalidMetadataError, match=r"table lake\.db\.t: .*name of a column"):
        table.update_spec().add_field("ts", "day", "a").commit()


def test_a_sort_order_replaces_the_one_before(table: Table) -> None:
    table.update_sort_order().asc("id").commit()
    with table.update_sort_order() as update:
        update.desc("ts", DayTransform()).asc("a", null_order="nulls_last").by("s.x desc")
    fields = table.sort_order().fields
    assert fields == (
        SortField((5,), DayTransform(), SortDirection.DESC, NullOrder.NULLS_LAST),
        SortField((2,), IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_LAST),
        SortField((6,), IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST),
    )
    table.replace_sort_order().commit()
    assert not table.sort_order().is_sorted


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_sort_order_that_comes_back_has_its_id(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version)
    found = []
    for order in ("id", "id desc, a", "id", None):
        update = table.update_sort_order()
        (update if order is None else update.by(order)).commit()
        found.append(table.sort_order().order_id)
    assert found == [1, 2, 1, 0]
    assert len(table.metadata.sort_orders) == 3


def test_a_column_that_only_an_earlier_order_needs_may_be_deleted(tmp_path: Path) -> None:
    table = made(tmp_path, sort_order="a, s.x")
    table.update_schema().rename_column("s.x", "z").commit()
    assert [part.source_id for part in table.sort_order().fields] == [2, 6]
    table.update_sort_order().asc("id").commit()
    table.update_schema().delete_column("a").delete_column("s.z").commit()
    assert table.refresh().sort_order().order_id == 2


def test_rows_may_be_sorted_by_a_column_of_type_unknown(table: Table) -> None:
    table.update_schema().add_column("new", "unknown").commit()
    table.update_sort_order().asc("new").desc("id").commit()
    table.append(ids(1, 2))
    assert table.scan().to_arrow()["id"].to_pylist() == [2, 1]


@pytest.mark.parametrize("kind", ["variant", "geometry", "geography"])
def test_rows_are_not_sorted_by_types_without_an_order(table: Table, kind: str) -> None:
    table.update_schema().add_column("new", kind).commit()
    with pytest.raises(InvalidOptionError, match="identity does not apply to column 'new'"):
        table.update_sort_order().asc("new")


def test_properties_are_set_and_removed(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", _COLUMNS)
    table.set_properties({"write.format.default": "orc", "mine": 5}, owner="me")
    found = catalog.load_table("db.t").properties
    assert (found["write.format.default"], found["mine"], found["owner"]) == ("orc", "5", "me")
    table.remove_properties("mine", "owner", "not there")
    assert not {"mine", "owner"} & catalog.load_table("db.t").properties.keys()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"uuid": "x"}, "reserved"),
        ({"write.format.default": "csv"}, "expected one of parquet, orc, avro"),
        ({"commit.retry.num-retries": "-1"}, "at least 0"),
        ({"write.metadata.metrics.column.nope": "full"}, "nope"),
        ({"format-version": "1"}, "downgrade"),
    ],
)
def test_wrong_properties_are_refused_and_nothing_is_set(
    table: Table, given: dict[str, str], said: str
) -> None:
    with pytest.raises((InvalidOptionError, InvalidMetadataError), match=said):
        table.set_properties({"mine": "1", **given})
    assert "mine" not in table.refresh().properties


def test_a_property_that_is_nearly_known_is_warned_of(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        table.set_properties({"write.target-file-size": "1000", "my.own": "x"})
    assert "did you mean write.target-file-size-bytes?" in caplog.text
    assert "my.own" not in caplog.text


def test_new_files_go_to_a_new_location(tmp_path: Path) -> None:
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "warehouse")
    catalog = load_catalog("lake", uri=uri, warehouse=warehouse)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", _COLUMNS)
    table.append(ids(1))
    table.update_location(str(tmp_path / "elsewhere"))
    table.append(ids(2))
    paths = [task.file.file_path for task in table.scan().plan_files()]
    assert sum("elsewhere" in path for path in paths) == 1
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_table_that_is_found_by_its_location_stays_there(table: Table, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"write\.data\.path"):
        table.update_location(str(tmp_path / "elsewhere"))
