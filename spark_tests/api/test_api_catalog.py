"""`Catalog`: tables and namespaces by name, in a warehouse directory and in a database."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

import icebergds
from icebergds import Catalog, NestedField, PartitionSpec, Schema, SortOrder, Table, load_catalog
from icebergds.errors import (
    AlreadyExistsError,
    IcebergError,
    InvalidOptionError,
    MissingFileError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    UnsupportedFeatureError,
    ValidationError,
)
from icebergds.spec.partition import PartitionField
from icebergds.spec.sort import NullOrder, SortDirection, SortField
from icebergds.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebergds.spec.transforms import BucketTransform, DayTransform, IdentityTransform
from icebergds.spec.types import LONG, STRING, TIMESTAMP
from icebergds.spec.updates.table_updates import (
    RemoveSnapshots,
    SetPartitionStatistics,
    SetStatistics,
    TableUpdate,
)
from icebergds.testing.faults import Fault, Faults, FaultyFileIO, When

_SCHEMA = Schema((NestedField(7, "id", LONG), NestedField(3, "ts", TIMESTAMP)))
_ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "ts": pa.array([0, 1], pa.timestamp("us"))})


@pytest.fixture(params=["filesystem", "sql"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    """A catalog of each kind, with the namespace `db`."""
    uri = {} if request.param == "filesystem" else {"uri": f"sqlite:///{tmp_path}/catalog.db"}
    found = load_catalog("lake", warehouse=str(tmp_path / "warehouse"), **uri)
    found.create_namespace("db")
    return found


@pytest.fixture
def sql(tmp_path: Path) -> Catalog:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    return load_catalog("lake", uri=uri, warehouse=str(tmp_path / "warehouse"))


def _change(catalog: Catalog, table: Table, *updates: TableUpdate) -> None:
    operations = catalog._catalog.operations(("db", "t"))
    operations.commit(operations.refresh(), [], updates)
    table.refresh()


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def test_a_created_table_has_what_was_asked_for(catalog: Catalog) -> None:
    spec = PartitionSpec(5, (PartitionField((7,), 1234, BucketTransform(4), "b"),))
    key = SortField((3,), IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST)
    table = catalog.create_table(
        "db.t",
        _SCHEMA,
        partition_spec=spec,
        sort_order=SortOrder(9, (key,)),
        properties={"a": "b", "format-version": "3"},
    )
    assert table.name == "lake.db.t"
    assert [(f.field_id, f.name) for f in table.schema().fields] == [(1, "id"), (2, "ts")]
    assert table.spec().fields == (PartitionField((1,), 1000, BucketTransform(4), "b"),)
    assert [(f.source_id, f.direction) for f in table.sort_order().fields] == [
        (2, SortDirection.DESC)
    ]
    assert table.metadata.format_version == 3
    assert table.properties["a"] == "b"
    assert catalog.load_table(("db", "t")).metadata == table.metadata


@pytest.mark.parametrize("name", ["lake.db.t", ("lake", "db", "t")])
def test_a_tables_name_may_begin_with_that_of_its_catalog(
    catalog: Catalog, name: str | tuple[str, ...]
) -> None:
    assert catalog.create_table(name, _SCHEMA).name == "lake.db.t"
    assert catalog.list_namespaces() == [("db",)]
    assert catalog.list_tables("db") == [("db", "t")]
    assert catalog.table_exists(name)
    assert catalog.load_table(name).metadata == catalog.load_table("db.t").metadata
    catalog.drop_table(name)
    assert catalog.list_tables("db") == []


def test_a_table_may_be_renamed_by_names_that_begin_with_that_of_its_catalog(sql: Catalog) -> None:
    sql.create_namespace("db")
    sql.create_table("db.t", _SCHEMA)
    assert sql.rename_table("lake.db.t", "lake.db.u").name == "lake.db.u"
    assert sql.list_tables("db") == [("db", "u")]


def test_a_namespace_that_is_called_as_its_catalog_comes_first(catalog: Catalog) -> None:
    catalog.create_namespace("lake")
    catalog.create_namespace("lake.db")
    assert catalog.create_table("lake.db.t", _SCHEMA).name == "lake.lake.db.t"
    assert catalog.list_tables("db") == []


def test_layouts_may_be_text(catalog: Catalog) -> None:
    table = catalog.create_table(
        "db.t", _SCHEMA, partition_spec="days(ts), bucket(4, id)", sort_order="id desc"
    )
    assert [f.transform for f in table.spec().fields] == [DayTransform(), BucketTransform(4)]
    assert [f.source_id for f in table.spec().fields] == [2, 1]
    assert [f.source_id for f in table.sort_order().fields] == [1]


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())]),
        spark.StructType(
            [
                spark.StructField("id", spark.LongType(), nullable=False),
                spark.StructField("name", spark.StringType()),
            ]
        ),
    ],
    ids=["pyarrow", "spark"],
)
def test_schemas_may_be_those_of_rows(catalog: Catalog, schema: Any) -> None:
    fields = catalog.create_table("db.t", schema, partition_spec="name").schema().fields
    assert fields == (NestedField(1, "id", LONG, True), NestedField(2, "name", STRING))


def test_other_schemas_are_refused(catalog: Catalog) -> None:
    with pytest.raises(InvalidOptionError, match=r"type dict; expected icebergds\.Schema"):
        catalog.create_table("db.t", {"id": "long"})  # type: ignore[arg-type]


def test_properties_may_be_numbers_and_truth_values(catalog: Catalog) -> None:
    given: Any = {"write.parquet.page-size-bytes": 1000, "write.spark.fanout.enabled": True}
    properties = catalog.create_table("db.t", _SCHEMA, properties=given).properties
    assert properties["write.parquet.page-size-bytes"] == "1000"
    assert properties["write.spark.fanout.enabled"] == "true"
    none: Any = {"a": None}
    with pytest.raises(InvalidOptionError, match=r"properties\['a'\] is of type NoneType"):
        catalog.create_table("db.s", _SCHEMA, properties=none)


def test_properties_that_cannot_be_read_create_nothing(catalog: Catalog, tmp_path: Path) -> None:
    before = _files(tmp_path)
    properties = {"write.delete.mode": "merge_on_read"}
    with pytest.raises(InvalidOptionError) as raised:
        catalog.create_table("db.t", _SCHEMA, properties=properties)
    assert str(raised.value) == (
        "property write.delete.mode is 'merge_on_read', expected one of copy-on-write, "
        "merge-on-read; did you mean merge-on-read?"
    )
    assert not catalog.table_exists("db.t")
    assert _files(tmp_path) == before


def test_a_table_is_created_once(catalog: Catalog) -> None:
    first = catalog.create_table_if_not_exists("db.t", _SCHEMA)
    with pytest.raises(AlreadyExistsError, match=r"lake\.db\.t"):
        catalog.create_table("db.t", _SCHEMA)
    again = catalog.create_table_if_not_exists("db.t", Schema((NestedField(1, "x", LONG),)))
    assert again.metadata == first.metadata


def test_a_table_goes_where_it_is_told(sql: Catalog, tmp_path: Path) -> None:
    sql.create_namespace("db")
    table = sql.create_table("db.t", _SCHEMA, location=str(tmp_path / "elsewhere"))
    table.append(_ROWS)
    assert table.location() == str(tmp_path / "elsewhere")
    assert len(list((tmp_path / "elsewhere" / "data").iterdir())) == 1


def test_a_table_of_a_catalog_is_written_read_and_refreshed(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", _SCHEMA)
    other = catalog.load_table("db.t")
    table.append(_ROWS)
    assert other.scan().to_arrow().num_rows == 0
    assert other.refresh().scan().to_arrow().num_rows == 2
    table.delete("id > 0")
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == 0


def test_the_address_of_a_table_leads_to_it_from_other_processes(
    catalog: Catalog, tmp_path: Path
) -> None:
    table = catalog.create_table("db.t", _SCHEMA)
    program = (
        "import pickle, sys; a = pickle.loads(bytes.fromhex(sys.argv[1]));"
        "print(a.load().metadata_location, a.catalog)"
    )
    text = pickle.dumps(table._address).hex()
    (tmp_path / "cwd").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program, text],
        cwd=tmp_path / "cwd",
        env={"PYTHONPATH": str(Path(icebergds.__file__).parents[1]), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [table.metadata_location, "lake"]


def test_what_the_environment_says_travels_with_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "pond")
    monkeypatch.setenv("PYICEBERG_CATALOG__POND__WAREHOUSE", "./water")
    catalog = load_catalog()
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", _SCHEMA)
    monkeypatch.delenv("PYICEBERG_CATALOG__POND__WAREHOUSE")
    monkeypatch.chdir("/")
    assert table.refresh().location() == str(tmp_path / "water" / "db" / "t")
    assert table._address.catalog == "pond"
    assert table._address.catalog_properties == {"warehouse": str(tmp_path / "water")}


def test_a_relative_database_is_the_same_one_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = load_catalog("lake", uri="sqlite:///c.db", warehouse="w")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", _SCHEMA)
    io = table.io
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    # As a data source gets it in another process.
    address = replace(table._address, location_map={"": io.working_directory})
    assert address.load().metadata == table.metadata
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_names_with_dots_stand_in_backticks(sql: Catalog) -> None:
    sql.create_namespace("db")
    table = sql.create_table(("db", "a.b"), _SCHEMA)
    table.append(_ROWS)
    assert sql.load_table("db.`a.b`").scan().to_arrow().num_rows == 2
    assert sql.list_tables("db") == [("db", "a.b")]


@pytest.mark.parametrize("name", ["db..t", ".t", "db.", "", "db.`t", "db.t`"])
def test_malformed_names_are_refused(catalog: Catalog, name: str) -> None:
    with pytest.raises(InvalidOptionError, match="not an identifier"):
        catalog.load_table(name)


@pytest.mark.parametrize("name", [None, 5, ("db", 5), Path("db.t")], ids=str)
def test_what_is_no_name_is_refused(catalog: Catalog, name: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"expected a name such as 'db\.events'"):
        catalog.load_table(name)


def test_tables_are_listed_and_found(catalog: Catalog) -> None:
    assert catalog.list_tables("db") == []
    for name in ("db.t", "db.s"):
        catalog.create_table(name, _SCHEMA)
    assert catalog.list_tables(("db",)) == [("db", "s"), ("db", "t")]
    assert catalog.table_exists("db.t")
    assert not catalog.table_exists("db.u")
    assert not catalog.table_exists("nowhere.t")
    with pytest.raises(NoSuchTableError, match=r"did you mean db\.t"):
        catalog.load_table("db.tt")
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_tables("nowhere")


def test_a_dropped_table_keeps_its_data(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", _SCHEMA)
    table.append(_ROWS)
    catalog.drop_table("db.t")
    assert not catalog.table_exists("db.t")
    assert len(_files(Path(table.location()) / "data")) == 1
    with pytest.raises(NoSuchTableError):
        catalog.drop_table("db.t")


def test_a_dropped_table_is_taken_back_by_its_metadata_file(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", _SCHEMA)
    table.append(_ROWS)
    copy = Path(table.metadata_location).with_name("kept.json")
    copy.write_bytes(Path(table.metadata_location).read_bytes())
    catalog.drop_table("db.t")
    table = catalog.register_table("db.t", str(copy))
    table.append(_ROWS)
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == 4
    with pytest.raises(AlreadyExistsError):
        catalog.register_table("db.t", str(copy))


def test_a_renamed_table_is_the_same_one(sql: Catalog) -> None:
    sql.create_namespace("db")
    uuid = sql.create_table("db.t", _SCHEMA).metadata.table_uuid
    table = sql.rename_table("db.t", ("db", "s"))
    table.append(_ROWS)
    assert (table.name, table.metadata.table_uuid) == ("lake.db.s", uuid)
    assert not sql.table_exists("db.t")


def test_tables_that_are_directories_keep_their_names(tmp_path: Path) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_table("db.t", _SCHEMA)
    with pytest.raises(UnsupportedFeatureError, match="cannot be renamed"):
        catalog.rename_table("db.t", "db.s")


def test_a_purged_table_leaves_nothing(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table(
        "db.t", _SCHEMA, partition_spec="id", properties={"write.metadata.previous-versions-max": 9}
    )
    for _ in range(3):
        table.append(_ROWS)
    table.overwrite(_ROWS)
    table.append(_ROWS, options={"wap.id": "staged"})
    (snapshot, *_) = table.snapshots()
    for name in ("s.puffin", "p.parquet"):
        (Path(table.location()) / "metadata" / name).write_bytes(b"x")
    place = f"{table.location()}/metadata"
    _change(
        catalog,
        table,
        SetStatistics(StatisticsFile(snapshot.snapshot_id, f"{place}/s.puffin", 1, 1)),
        SetPartitionStatistics(
            PartitionStatisticsFile(snapshot.snapshot_id, f"{place}/p.parquet", 1)
        ),
    )
    assert len(_files(tmp_path / "warehouse")) > 20
    catalog.purge_table("db.t")
    assert not catalog.table_exists("db.t")
    assert not Path(table.location()).exists()
    catalog.drop_namespace("db")


def test_files_that_only_expired_snapshots_had_are_purged_too(sql: Catalog) -> None:
    sql.create_namespace("db")
    table = sql.create_table("db.t", _SCHEMA)
    table.append(_ROWS)
    table.overwrite(_ROWS)
    first = table.snapshots()[0].snapshot_id
    assert len(_files(Path(table.location()) / "data")) == 2
    _change(sql, table, RemoveSnapshots((first,)))
    sql.purge_table("db.t")
    assert _files(Path(table.location()) / "data") == []


def test_a_purge_spares_files_that_are_not_the_tables(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", _SCHEMA)
    table.append(_ROWS)
    other = Path(table.location()) / "data" / "notes.txt"
    other.write_text("mine")
    catalog.purge_table("db.t")
    assert _files(Path(table.location())) == [other]


def test_tables_that_share_files_are_not_purged(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", _SCHEMA, properties={"gc.enabled": False})
    table.append(_ROWS)
    with pytest.raises(ValidationError, match=r"gc\.enabled = false"):
        catalog.purge_table("db.t")
    assert table.refresh().scan().to_arrow().num_rows == 2


def test_a_table_whose_files_cannot_be_told_is_not_purged(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", _SCHEMA)
    table.append(_ROWS)
    before = _files(Path(table.location()))
    (manifest,) = Path(table.location()).rglob("*-m0.avro")
    content = manifest.read_bytes()
    manifest.unlink()
    with pytest.raises(MissingFileError, match=manifest.name):
        catalog.purge_table("db.t")
    manifest.write_bytes(content)
    assert _files(Path(table.location())) == before
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == 2


def test_nothing_is_deleted_before_the_catalog_has_forgotten_the_table(sql: Catalog) -> None:
    sql.create_namespace("db")
    table = sql.create_table("db.t", _SCHEMA)
    table.append(_ROWS)
    lower: Any = sql._catalog
    faults = Faults([Fault(0, When.BEFORE, OSError("disk"))], ["delete_each"])
    object.__setattr__(lower, "io", FaultyFileIO(lower.io, faults))
    with pytest.raises(
        IcebergError, match="was dropped, but some of its files were left behind: disk"
    ):
        sql.purge_table("db.t")
    assert not sql.table_exists("db.t")


def test_no_table_is_created_within_another(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", _SCHEMA)
    with pytest.raises((InvalidOptionError, NoSuchNamespaceError)):
        catalog.create_table("db.t.branch_b", _SCHEMA)
    assert catalog.load_table("db.t").metadata == table.metadata


def test_namespaces_are_kept(catalog: Catalog) -> None:
    with pytest.raises(AlreadyExistsError):
        catalog.create_namespace("db")
    catalog.create_namespace_if_not_exists("db")
    catalog.create_namespace_if_not_exists("raw")
    assert catalog.list_namespaces() == [("db",), ("raw",)]
    catalog.create_namespace("db.deep")
    assert catalog.list_namespaces("db") == [("db", "deep")]
    assert catalog.namespace_exists(("db", "deep"))
    catalog.drop_namespace("db.deep")
    assert not catalog.namespace_exists("db.deep")
    catalog.create_table("db.t", _SCHEMA)
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("db")
    with pytest.raises(NoSuchNamespaceError):
        catalog.drop_namespace("nowhere")


def test_properties_of_namespaces_are_changed_and_told(sql: Catalog) -> None:
    sql.create_namespace("db", {"a": "1", "b": "2"})
    summary = sql.update_namespace_properties("db", {"a", "x"}, {"b": "3", "c": "4"})
    assert (summary.removed, summary.updated, summary.missing) == (["a"], ["b", "c"], ["x"])
    assert sql.load_namespace_properties("db") == {"b": "3", "c": "4"}
    with pytest.raises(NoSuchNamespaceError):
        sql.update_namespace_properties("nowhere", updates={"a": "b"})


@pytest.mark.parametrize("name", [3, Path("lake"), "\ud800"])
def test_a_name_that_is_no_text_is_refused(name: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=r"name = .*, expected a string|not valid Unicode"):
        load_catalog(name, warehouse=str(tmp_path))


def test_a_location_map_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="location_map is of type list"):
        load_catalog("lake", warehouse=str(tmp_path), location_map=["/a"])  # type: ignore[arg-type]


def test_locations_are_texts(sql: Catalog) -> None:
    sql.create_namespace("db")
    given: Any = 5
    with pytest.raises(InvalidOptionError, match="location = 5 is of type int"):
        sql.create_table("db.t", "id bigint", location=given)
    with pytest.raises(InvalidOptionError, match="location = 5 is of type int"):
        sql.create_view("db.v", "id bigint", "SELECT 1 AS id", location=given)
    for given in (None, 5, ""):
        with pytest.raises(InvalidOptionError, match=r"metadata_location = .*expected a location"):
            sql.register_table("db.t", given)


@pytest.mark.parametrize("name", ["db.\ud800", ("db", "\ud800"), ("\ud800", "t")])
def test_names_are_valid_unicode(catalog: Catalog, name: Any) -> None:
    for use in (catalog.load_table, catalog.drop_table, catalog.list_tables):
        with pytest.raises(InvalidOptionError, match="not valid Unicode"):
            use(name)


@pytest.mark.parametrize("removals", ["abc", {1}, 5])
def test_removals_are_a_set_of_names(sql: Catalog, removals: Any) -> None:
    sql.create_namespace("db", {"a": "1"})
    with pytest.raises(InvalidOptionError, match=r"removals = .* expected a set of names"):
        sql.update_namespace_properties("db", removals)
    assert sql.load_namespace_properties("db")["a"] == "1"


def test_a_pickled_catalog_is_loaded_again(catalog: Catalog) -> None:
    catalog.create_table("db.t", _SCHEMA)
    copy = pickle.loads(pickle.dumps(catalog))
    assert copy.list_tables("db") == [("db", "t")]
    assert (copy.name, copy.properties) == (catalog.name, catalog.properties)


def test_a_namespace_that_is_named_with_its_catalog_is_told_without(tmp_path: Path) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    for ask in (catalog.list_tables, catalog.list_namespaces, catalog.drop_namespace):
        with pytest.raises(NoSuchNamespaceError, match="named without their catalog: 'db'"):
            ask("lake.db")


def test_a_table_is_registered_by_a_file(tmp_path: Path) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    table = catalog.create_table("db.t", _SCHEMA)
    with pytest.raises(InvalidOptionError, match=r"is a directory; expected a metadata file"):
        catalog.register_table("db.u", table.location())


def test_a_name_that_begins_with_no_catalog_is_told_from_one_of_the_default_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "lake")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", str(tmp_path))
    with pytest.raises(NoSuchTableError, match=r"no catalog lak is configured \(there are: .*lake"):
        icebergds.load_table("lak.db.t")
