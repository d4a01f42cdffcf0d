"""The SQL catalog in MariaDB, whose texts by default ignore case, accents and blanks at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mariadb_server import MariaDbServer
from sql_tables import TABLE, create_table, execute, open_sql_catalog, set_property
from sqlalchemy import make_url

from icebergds.catalog.sql.catalog import SqlCatalog
from icebergds.catalog.sql.url import database_url
from icebergds.commit.operations import TableCommit
from icebergds.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    NoSuchNamespaceError,
    NoSuchTableError,
    StorageError,
    UnsupportedFeatureError,
)
from icebergds.spec.updates.table_updates import SetProperties
from icebergds.testing import catalog_steps

# As other clients make them: by the collation of the database.
_TABLES = (
    "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,"
    "table_namespace VARCHAR(255) NOT NULL,table_name VARCHAR(255) NOT NULL,"
    "metadata_location VARCHAR(1000),previous_metadata_location VARCHAR(1000),"
    "iceberg_type VARCHAR(5),PRIMARY KEY (catalog_name, table_namespace, table_name))",
    "CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL,"
    "namespace VARCHAR(255) NOT NULL,property_key VARCHAR(255),property_value VARCHAR(1000),"
    "PRIMARY KEY (catalog_name, namespace, property_key))",
)
_SIMILAR = ["T", "t ", "ť"]


@pytest.fixture
def uri(mariadb: MariaDbServer) -> str:
    return mariadb.uri(mariadb.new_database())


@pytest.fixture
def catalog(uri: str, tmp_path: Path) -> SqlCatalog:
    return open_sql_catalog(uri, tmp_path)


@pytest.fixture(params=["latin1_swedish_ci", "utf8mb4_general_ci", "utf8mb4_bin"])
def of_others(request: pytest.FixtureRequest, uri: str, tmp_path: Path) -> SqlCatalog:
    """A catalog in tables of another client, in a database of this collation."""
    charset = request.param.partition("_")[0]
    execute(
        uri,
        f"ALTER DATABASE {make_url(uri).database} CHARACTER SET {charset} COLLATE {request.param}",
        *_TABLES,
    )
    return open_sql_catalog(uri, tmp_path)


# Names.


@pytest.mark.parametrize("other", _SIMILAR)
def test_similar_names_are_of_different_tables(catalog: SqlCatalog, other: str) -> None:
    create_table(catalog)
    with pytest.raises(NoSuchTableError):
        catalog.load(("db", other))
    created = catalog_steps.create_table(catalog, ("db", other))
    assert set(catalog.list_tables(("db",))) == {("db", "t"), ("db", other)}
    assert catalog.load(("db", other)).metadata_location == created.metadata_location
    catalog.drop(("db", "t"))
    assert catalog.list_tables(("db",)) == [("db", other)]


@pytest.mark.parametrize("other", ["DB", "db ", "ďb"])
def test_similar_names_are_of_different_namespaces(catalog: SqlCatalog, other: str) -> None:
    catalog.create_namespace(("db",), {"k": "v"})
    catalog.create_namespace((other,), {"K": "w"})
    assert set(catalog.list_namespaces()) == {("db",), (other,)}
    catalog.update_namespace_properties(("db",), [], {"K": "x", "k ": "y"})
    assert catalog.namespace_properties(("db",)) == {"k": "v", "K": "x", "k ": "y"}
    assert catalog.namespace_properties((other,)) == {"K": "w"}
    catalog.drop_namespace(("db",))
    assert catalog.list_namespaces() == [(other,)]


@pytest.mark.parametrize("other", ["T", "t "])
def test_in_tables_of_others_a_similar_name_is_never_taken_for_another(
    of_others: SqlCatalog, other: str
) -> None:
    catalog, similar = of_others, ("db", other)
    created = create_table(catalog)
    for use in (catalog.load, catalog.drop):
        with pytest.raises(NoSuchTableError):
            use(similar)
    with pytest.raises(NoSuchTableError):
        catalog.rename(similar, ("db", "u"))
    for wrong in ("DB", "db "):
        with pytest.raises(NoSuchNamespaceError):
            catalog.list_tables((wrong,))
    # The key of the table there may not allow both.
    try:
        catalog_steps.create_table(catalog, similar)
    except AlreadyExistsError:
        assert catalog.list_tables(("db",)) == [("db", "t")]
    assert catalog.load(("db", "t")).metadata_location == created.metadata_location


def test_namespaces_that_differ_in_case_are_listed_in_tables_of_others(
    of_others: SqlCatalog, uri: str
) -> None:
    create_table(of_others)
    execute(
        uri,
        "INSERT INTO iceberg_namespace_properties VALUES ('lake', 'DB', 'owner', 'me')",
    )
    assert of_others.list_namespaces() == [("DB",), ("db",)]


def test_a_metadata_file_of_a_similar_name_is_not_the_current_one(
    of_others: SqlCatalog,
) -> None:
    current = create_table(of_others).metadata_location
    for similar in (current.upper(), f"{current} "):
        assert of_others.tables.swap((("db", "t"), similar, "file:///other")).rows == 0
        assert of_others.tables.delete(("db", "t"), similar).rows == 0
    assert of_others.tables.swap((("db", "t"), current, "file:///other")).rows == 1


def test_any_letters_are_names(catalog: SqlCatalog) -> None:
    identifier = ("db", "über 東京 🎈 'quoted' \"\\%_")
    created = catalog_steps.create_table(catalog, identifier, {"k": "v"})
    assert catalog.list_tables(("db",)) == [identifier]
    assert catalog.load(identifier).metadata_location == created.metadata_location


# The server's settings.


@pytest.fixture
def lax(mariadb: MariaDbServer) -> Iterator[None]:
    """The server cuts off texts that are too long."""
    mariadb.execute("SET GLOBAL sql_mode = ''")
    yield
    mariadb.execute("SET GLOBAL sql_mode = DEFAULT")


def test_a_text_that_is_too_long_is_refused(
    lax: None, catalog: SqlCatalog, uri: str, tmp_path: Path
) -> None:
    create_table(catalog)
    far = open_sql_catalog(uri, tmp_path, warehouse=str(tmp_path / "/".join(["x" * 200] * 5)))
    with pytest.raises(StorageError, match="Data too long"):
        catalog_steps.create_table(far, ("db", "u"))
    assert catalog.list_tables(("db",)) == [("db", "t")]


def test_tables_without_transactions_are_not_changed_together(
    catalog: SqlCatalog, uri: str, tmp_path: Path
) -> None:
    execute(uri, "ALTER TABLE iceberg_tables ENGINE=MyISAM, CONVERT TO CHARACTER SET latin1")
    state = create_table(catalog)
    commit = TableCommit(TABLE, state, [], [SetProperties({"k": "v"})])
    for attempt in (catalog.check_transactions, lambda: catalog.commit_tables([commit])):
        with pytest.raises(UnsupportedFeatureError, match="engine MyISAM, which has no transac"):
            attempt()
    assert set_property(catalog).metadata.properties["k"] == "v"
    execute(uri, "ALTER TABLE iceberg_tables ENGINE=InnoDB")
    catalog.check_transactions()


def test_the_password_is_not_shown(mariadb: MariaDbServer, uri: str, tmp_path: Path) -> None:
    wrong = make_url(uri).set(password="hunter2").render_as_string(hide_password=False)
    with pytest.raises(StorageError, match="Access denied") as raised:
        open_sql_catalog(wrong, tmp_path)
    assert "hunter2" not in str(raised.value)
    assert "hunter2" not in repr(open_sql_catalog(uri, tmp_path))


# Addresses.


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_javas_uris_lead_to_the_database(
    kind: str, mariadb: MariaDbServer, uri: str, tmp_path: Path
) -> None:
    url = make_url(uri)
    catalog = open_sql_catalog(
        f"jdbc:{kind}://127.0.0.1:{mariadb.port}/{url.database}?connectTimeout=5000&useSSL=false"
        "&nullDatabaseMeansCurrent=true",
        tmp_path,
        **{"jdbc.user": "tester", "jdbc.password": str(url.password)},
    )
    create_table(catalog)
    assert set_property(catalog).metadata.properties["k"] == "v"


@pytest.mark.parametrize("scheme", ["mysql", "mariadb"])
def test_a_uri_without_a_driver_gets_one(scheme: str) -> None:
    url = database_url("lake", {"uri": f"{scheme}://u@host/db"}, "/")
    assert url.drivername == "mysql+pymysql"


@pytest.mark.parametrize(
    "parameter", ["useUnicode=true", "sslMode=VERIFY_CA", "connectTimeout=soon"]
)
def test_a_parameter_that_is_not_supported_is_named(parameter: str) -> None:
    name = parameter.partition("=")[0]
    with pytest.raises(InvalidOptionError, match=f"'{name}' is not supported"):
        database_url("lake", {"uri": f"jdbc:mysql://host/db?{parameter}"}, "/")
