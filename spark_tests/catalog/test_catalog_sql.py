"""What the SQL catalog keeps in its database and in metadata files."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from sql_tables import (
    TABLE,
    create_table,
    execute,
    metadata_files,
    open_sql_catalog,
    set_property,
)

from icebergds.catalog.loading import load_catalog
from icebergds.catalog.sql.catalog import SqlCatalog
from icebergds.errors import (
    AlreadyExistsError,
    InvalidMetadataError,
    InvalidOptionError,
    MissingFileError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    StorageError,
)
from icebergds.spec.updates.table_updates import SetProperties
from icebergds.testing import catalog_steps
from icebergds.testing.catalog_steps import new_table

# As Java's JDBC catalog makes them.
_JAVA_LAYOUT = (
    "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,"
    "table_namespace VARCHAR(255) NOT NULL,table_name VARCHAR(255) NOT NULL,"
    "metadata_location VARCHAR(1000),previous_metadata_location VARCHAR(1000),"
    "PRIMARY KEY (catalog_name, table_namespace, table_name))",
    "CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL,"
    "namespace VARCHAR(255) NOT NULL,property_key VARCHAR(255),property_value VARCHAR(1000),"
    "PRIMARY KEY (catalog_name, namespace, property_key))",
)
_NAME = re.compile(r"(\d{5})-[0-9a-f-]{36}(\.gz)?\.metadata\.json")


@pytest.fixture
def catalog(database_uri: str, tmp_path: Path) -> SqlCatalog:
    return open_sql_catalog(database_uri, tmp_path)


# As above, with rules of somebody else.
_STRICT_LAYOUT = (
    _JAVA_LAYOUT[0].replace("PRIMARY", "CHECK (table_name <> 'u'),PRIMARY"),
    _JAVA_LAYOUT[1].replace("PRIMARY", "CHECK (namespace <> 'x'),PRIMARY"),
)


def test_a_rule_of_the_database_is_not_taken_for_a_name_that_is_taken(
    database_uri: str, tmp_path: Path
) -> None:
    execute(database_uri, *_STRICT_LAYOUT)
    catalog = open_sql_catalog(database_uri, tmp_path)
    create_table(catalog)
    files = set((tmp_path / "warehouse").rglob("*.json"))
    for refused in (
        lambda: catalog_steps.create_table(catalog, ("db", "u")),
        lambda: catalog.rename(TABLE, ("db", "u")),
        lambda: catalog.create_namespace(("x",), {}),
    ):
        with pytest.raises(StorageError, match=r"(?i)check constraint|`CONSTRAINT_1` failed"):
            refused()
    assert catalog.list_tables(("db",)) == [TABLE]
    assert set((tmp_path / "warehouse").rglob("*.json")) == files


# Rows.


def test_a_table_is_a_row(catalog: SqlCatalog, database_uri: str) -> None:
    created = create_table(catalog)
    committed = set_property(catalog)
    rows = execute(database_uri, "SELECT * FROM iceberg_tables")
    assert rows == [
        ("lake", "db", "t", committed.metadata_location, created.metadata_location, "TABLE")
    ]


def test_a_namespace_is_rows(catalog: SqlCatalog, database_uri: str) -> None:
    catalog.create_namespace(("a", "b"), {"owner": "me"})
    rows = execute(database_uri, "SELECT * FROM iceberg_namespace_properties ORDER BY property_key")
    assert rows == [("lake", "a.b", "exists", "true"), ("lake", "a.b", "owner", "me")]
    assert catalog.namespace_properties(("a", "b")) == {"owner": "me"}


def test_catalogs_of_other_names_do_not_show(
    catalog: SqlCatalog, database_uri: str, tmp_path: Path
) -> None:
    create_table(catalog)
    execute(
        database_uri,
        "UPDATE iceberg_tables SET catalog_name = 'other'",
        "UPDATE iceberg_namespace_properties SET catalog_name = 'other'",
    )
    assert catalog.list_namespaces() == []
    with pytest.raises(NoSuchTableError):
        catalog.load(TABLE)


@pytest.mark.parametrize("upgraded", [False, True])
def test_tables_of_the_layout_without_types_are_used(
    database_uri: str, tmp_path: Path, upgraded: bool
) -> None:
    execute(database_uri, *_JAVA_LAYOUT)
    old = open_sql_catalog(database_uri, tmp_path)
    create_table(old)
    options = {"jdbc.schema-version": "V1"} if upgraded else {}
    catalog = open_sql_catalog(database_uri, tmp_path, **options)
    set_property(catalog)
    assert catalog.list_tables(("db",)) == [TABLE]
    catalog.rename(TABLE, ("db", "u"))
    assert catalog.load(("db", "u")).metadata.properties["k"] == "v"
    assert catalog.drop(("db", "u")) is not None
    columns = len(execute(database_uri, *_ONE_ROW)[0])
    assert columns == (6 if upgraded else 5)


_ONE_ROW = (
    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name) VALUES ('x','x','x')",
    "SELECT * FROM iceberg_tables",
)


def test_a_view_is_no_table(catalog: SqlCatalog, database_uri: str) -> None:
    created = create_table(catalog)
    execute(database_uri, "UPDATE iceberg_tables SET iceberg_type = 'VIEW'")
    assert catalog.list_tables(("db",)) == []
    for use in (catalog.load, catalog.drop):
        with pytest.raises(NoSuchTableError):
            use(TABLE)
    with pytest.raises(NoSuchTableError):
        catalog.rename(TABLE, ("db", "u"))
    with pytest.raises(AlreadyExistsError, match=r"lake\.db\.t already exists, as a table or view"):
        catalog.create(TABLE, new_table(catalog, TABLE))
    assert metadata_files(created) == {created.metadata_location.rpartition("/")[2]}
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(("db",))


def test_a_table_without_a_namespace_is_found(catalog: SqlCatalog) -> None:
    catalog.create(("t",), new_table(catalog, ("t",)))
    assert catalog.list_tables(()) == [("t",)]
    assert catalog.list_namespaces() == []
    assert catalog.load(("t",)).name == "lake.t"


# Metadata files.


def test_metadata_files_are_numbered(catalog: SqlCatalog) -> None:
    create_table(catalog)
    states = [set_property(catalog, f"k{i}") for i in range(3)]
    names = sorted(metadata_files(states[-1]))
    matches = [_NAME.fullmatch(name) for name in names]
    assert [match and match[1] for match in matches] == ["00000", "00001", "00002", "00003"]
    assert states[-1].metadata_location.endswith(f"/{names[-1]}")


@pytest.mark.parametrize(
    ("name", "next_number"),
    [("v7.metadata.json", "00008"), ("00012-x.metadata.json", "00013"), ("m.json", "00000")],
)
def test_a_registered_table_goes_on_counting(
    catalog: SqlCatalog, name: str, next_number: str
) -> None:
    created = create_table(catalog)
    catalog.drop(TABLE)
    location = f"{created.metadata.location}/elsewhere/{name}"
    created.io.write(location, created.io.read_bytes(created.metadata_location))
    assert catalog.register(TABLE, location).metadata_location == location
    committed = set_property(catalog)
    assert committed.metadata_location.rpartition("/")[2].startswith(f"{next_number}-")
    assert [e.metadata_file for e in committed.metadata.metadata_log] == [location]


def test_only_a_metadata_file_can_be_registered(catalog: SqlCatalog, tmp_path: Path) -> None:
    catalog.create_namespace(("db",), {})
    with pytest.raises(MissingFileError):
        catalog.register(TABLE, str(tmp_path / "missing.metadata.json"))
    (tmp_path / "broken.metadata.json").write_text("{}")
    with pytest.raises(InvalidMetadataError):
        catalog.register(TABLE, str(tmp_path / "broken.metadata.json"))
    assert catalog.list_tables(("db",)) == []


def test_metadata_is_compressed_where_the_table_says_so(catalog: SqlCatalog) -> None:
    created = create_table(catalog, {"write.metadata.compression-codec": "gzip"})
    assert created.metadata_location.endswith(".gz.metadata.json")
    stored = json.loads(gzip.decompress(created.io.read_bytes(created.metadata_location)))
    assert stored["table-uuid"] == created.metadata.table_uuid
    assert catalog.load(TABLE).metadata == created.metadata


def test_an_unknown_compression_is_refused(catalog: SqlCatalog) -> None:
    with pytest.raises(InvalidOptionError, match="'zstd', expected one of none, gzip"):
        create_table(catalog, {"write.metadata.compression-codec": "zstd"})


def test_metadata_goes_where_the_table_says(catalog: SqlCatalog, tmp_path: Path) -> None:
    created = create_table(catalog, {"write.metadata.path": f"{tmp_path}/there/"})
    assert created.metadata_location.startswith(f"{tmp_path}/there/00000-")


def test_a_commit_that_changes_nothing_writes_nothing(catalog: SqlCatalog) -> None:
    create_table(catalog)
    state = set_property(catalog, "k")
    before = metadata_files(state)
    operations = catalog.operations(TABLE)
    assert operations.commit(state, [], [SetProperties({"k": "v"})]) is state
    assert metadata_files(state) == before


def test_what_others_may_read_is_left(catalog: SqlCatalog) -> None:
    created = create_table(catalog, {"write.metadata.previous-versions-max": "1"})
    for i in range(3):
        set_property(catalog, f"k{i}")
    assert len(metadata_files(created)) == 4


def test_a_lost_metadata_file_is_named(catalog: SqlCatalog) -> None:
    created = create_table(catalog)
    created.io.delete(created.metadata_location)
    with pytest.raises(MissingFileError, match=r"table lake\.db\.t: .*00000-"):
        catalog.load(TABLE)
    assert catalog.drop(TABLE) is None
    assert catalog.list_tables(("db",)) == []


def test_a_row_without_a_metadata_file_is_named(catalog: SqlCatalog, database_uri: str) -> None:
    create_table(catalog)
    execute(database_uri, "UPDATE iceberg_tables SET metadata_location = NULL")
    with pytest.raises(InvalidMetadataError, match=r"lake\.db\.t"):
        catalog.load(TABLE)
    assert catalog.drop(TABLE) is None
    assert catalog.list_tables(("db",)) == []


# Namespaces.


def test_namespaces_are_told_apart_letter_by_letter(catalog: SqlCatalog) -> None:
    for name in ("a_b", "A_B", "aXb", "a%", "a", "a'b", "été"):
        catalog.create_namespace((name, "x"), {"name": name})
    for name in ("a_b", "A_B", "aXb", "a%", "a", "a'b", "été"):
        assert catalog.list_namespaces((name,)) == [(name, "x")]
        assert catalog.namespace_properties((name, "x")) == {"name": name}
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_tables(("a_B",))


def test_a_missing_namespace_is_named_with_the_nearest(catalog: SqlCatalog) -> None:
    catalog.create_namespace(("events", "raw"), {})
    with pytest.raises(NoSuchNamespaceError, match=r"evnts\.raw; did you mean events\.raw\?"):
        catalog.list_tables(("evnts", "raw"))


def test_a_namespace_exists_for_what_is_below_it(catalog: SqlCatalog) -> None:
    catalog.create_namespace(("a", "b"), {})
    assert catalog.list_namespaces() == [("a",)]
    assert catalog.list_tables(("a",)) == []
    assert catalog.namespace_properties(("a",)) == {}
    with pytest.raises(AlreadyExistsError):
        catalog.create_namespace(("a",), {})
    catalog.drop_namespace(("a", "b"))
    assert catalog.list_namespaces() == []


def test_a_namespace_outlives_its_properties(catalog: SqlCatalog, database_uri: str) -> None:
    # PyIceberg makes namespaces with properties so.
    execute(
        database_uri,
        "INSERT INTO iceberg_namespace_properties VALUES ('lake', 'a', 'k', 'v')",
    )
    catalog.update_namespace_properties(("a",), ["k"], {})
    assert catalog.namespace_properties(("a",)) == {}
    assert catalog.list_namespaces() == [("a",)]


def test_the_property_that_marks_namespaces_is_reserved(catalog: SqlCatalog) -> None:
    with pytest.raises(InvalidOptionError, match="'exists' is reserved"):
        catalog.create_namespace(("a",), {"exists": "false"})
    catalog.create_namespace(("a",), {})
    for removals, updates in ((["exists"], {}), ([], {"exists": "no"})):
        with pytest.raises(InvalidOptionError, match="'exists' is reserved"):
            catalog.update_namespace_properties(("a",), removals, updates)


def test_a_property_is_not_both_removed_and_set(catalog: SqlCatalog) -> None:
    catalog.create_namespace(("a",), {"k": "v"})
    with pytest.raises(InvalidOptionError, match="k cannot be both"):
        catalog.update_namespace_properties(("a",), ["k"], {"k": "w"})


@pytest.mark.parametrize("namespace", [("a.b",), ("",), ("a", "")])
def test_names_that_would_be_ambiguous_are_refused(
    catalog: SqlCatalog, namespace: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidOptionError, match="without dots"):
        catalog.create_namespace(namespace, {})
    with pytest.raises(InvalidOptionError, match="without dots"):
        catalog.load((*namespace, "t"))


# Where tables go.


def test_new_tables_go_below_the_warehouse(catalog: SqlCatalog, tmp_path: Path) -> None:
    location = catalog.new_table_location(("a", "b", "t"))
    assert location == f"{tmp_path}/warehouse/a/b/t"


def test_new_tables_go_to_the_location_of_their_namespace(catalog: SqlCatalog) -> None:
    catalog.create_namespace(("a",), {"location": "s3://bucket/a/"})
    assert catalog.new_table_location(("a", "t")) == "s3://bucket/a/t"


def test_without_a_warehouse_tables_need_a_location(database_uri: str, tmp_path: Path) -> None:
    catalog = open_sql_catalog(database_uri, tmp_path, warehouse="")
    with pytest.raises(InvalidOptionError, match=r"catalog\.warehouse"):
        catalog.new_table_location(TABLE)


@pytest.mark.parametrize("name", ["..", "a/b", "."])
def test_a_name_that_is_no_directory_needs_a_location(catalog: SqlCatalog, name: str) -> None:
    with pytest.raises(InvalidOptionError, match="give the table a location"):
        catalog.new_table_location(("db", name))


def test_a_missing_table_is_named_with_the_nearest(catalog: SqlCatalog) -> None:
    create_table(catalog)
    catalog.rename(TABLE, ("db", "events"))
    with pytest.raises(NoSuchTableError, match=r"did you mean db\.events\?"):
        catalog.load(("db", "evnts"))


def test_another_catalog_of_the_database_is_named(database_uri: str, tmp_path: Path) -> None:
    create_table(open_sql_catalog(database_uri, tmp_path))
    other = load_catalog("port", {"uri": database_uri, "warehouse": str(tmp_path)})
    hint = "its database also has the catalog lake"
    with pytest.raises(NoSuchNamespaceError, match=hint):
        other.list_tables(("db",))
    with pytest.raises(NoSuchTableError, match=hint):
        other.load(TABLE)
