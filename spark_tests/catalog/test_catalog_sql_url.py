"""From properties to the database of an SQL catalog."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from postgres_server import PostgresServer
from sql_tables import TABLE, create_table, execute, open_sql_catalog
from sqlalchemy import Engine, event, make_url
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from icebergds.catalog.address import TableAddress
from icebergds.catalog.loading import load_catalog
from icebergds.catalog.sql.database import without_secrets
from icebergds.catalog.sql.tables import METADATA
from icebergds.catalog.sql.url import database_url, timeouts
from icebergds.errors import IcebergError, InvalidOptionError, StorageError
from icebergds.operations.write.options import WriteOptions


def _url(directory: str = "/work", **properties: str) -> str:
    return database_url("lake", properties, directory).render_as_string(hide_password=False)


def test_sqlalchemys_uris_are_taken_as_they_are() -> None:
    for uri in (
        "postgresql+psycopg://u:p%40@host:5433/db?sslmode=require",
        "sqlite:////abs/path.db?timeout=3",
        "mysql+pymysql://u:p@host/db?charset=utf8mb4",
    ):
        assert _url(uri=uri) == uri


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_postgresql_gets_a_driver_that_is_there(scheme: str) -> None:
    assert _url(uri=f"{scheme}://u@host/db") == "postgresql+psycopg://u@host/db"


def test_a_driver_that_is_not_there_is_replaced_by_its_successor() -> None:
    assert find_spec("psycopg2") is None
    uri = "postgresql+psycopg2://u:p%40@host:5433/db?sslmode=require"
    assert _url(uri=uri) == uri.replace("psycopg2", "psycopg")


def test_no_database_is_waited_for_without_end() -> None:
    assert timeouts(make_url("postgresql+psycopg://host/db"))["connect_timeout"] == 30
    mysql = timeouts(make_url("mysql+pymysql://host/db?read_timeout=7"))
    assert mysql == {"connect_timeout": 30, "write_timeout": 120}
    url = _url(uri="jdbc:mysql://host/db", **{"jdbc.socketTimeout": "9000"})
    assert timeouts(make_url(url)) == {"connect_timeout": 30}


def test_a_database_that_does_not_answer_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"mysql+pymysql://u@127.0.0.1:{silent.getsockname()[1]}/db?read_timeout=1"
        with pytest.raises(StorageError, match=r"its database .* cannot be"):
            load_catalog("lake", {"uri": uri})


def test_relative_files_are_made_absolute() -> None:
    assert _url("/work", uri="sqlite:///data/c.db") == "sqlite:////work/data/c.db"
    assert _url("/work", uri="jdbc:sqlite:c.db") == "sqlite:////work/c.db"


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("jdbc:sqlite:/abs/c.db", "sqlite:////abs/c.db"),
        ("jdbc:sqlite:file:/abs/c.db", "sqlite:////abs/c.db"),
        ("jdbc:postgresql://host/db", "postgresql+psycopg://me:p%40ss%3A1@host/db"),
        (
            "jdbc:postgresql://host:5433/db?user=other&sslmode=require&ApplicationName=app",
            "postgresql+psycopg://me:p%40ss%3A1@host:5433/db?application_name=app&sslmode=require",
        ),
    ],
)
def test_javas_uris_are_understood(uri: str, expected: str) -> None:
    properties = {"uri": uri, "jdbc.user": "me", "jdbc.password": "p@ss:1"}
    if "sqlite" in uri:
        properties = {"uri": uri}
    assert sorted(_parts(_url(**properties))) == sorted(_parts(expected))


def _parts(url: str) -> list[str]:
    address, _, query = url.partition("?")
    return [address, *query.split("&")]


def test_user_and_password_may_be_in_javas_uri() -> None:
    uri = "jdbc:postgresql://host/db?user=me&password=secret"
    assert _url(uri=uri) == "postgresql+psycopg://me:secret@host/db"


def test_other_javas_uris_are_refused() -> None:
    with pytest.raises(InvalidOptionError, match="MariaDB and SQLite"):
        _url(uri="jdbc:sqlserver://host/db")
    with pytest.raises(InvalidOptionError, match="'loginTimeout' is not supported"):
        _url(uri="jdbc:postgresql://host/db?loginTimeout=1")
    with pytest.raises(InvalidOptionError, match="'useSSL' is not supported"):
        _url(**{"uri": "jdbc:postgresql://host/db", "jdbc.useSSL": "true"})


@pytest.mark.parametrize(
    "uri", ["sqlite://", "sqlite:///:memory:", "jdbc:sqlite::memory:", "sqlite:///file::memory:"]
)
def test_a_database_in_memory_is_refused(uri: str) -> None:
    with pytest.raises(InvalidOptionError, match="in memory"):
        _url(uri=uri)


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql://me@host/db?autocommit=true",
        "mysql://me@host/db?charset=utf8mb4&autocommit=1",
        "mysql://me@host/db?init_command=SET%20autocommit%3D1",
    ],
)
def test_a_connection_that_commits_each_statement_is_refused(uri: str) -> None:
    with pytest.raises(InvalidOptionError, match="commits each statement"):
        _url(uri=uri)


def test_a_malformed_uri_is_not_repeated() -> None:
    with pytest.raises(InvalidOptionError) as raised:
        _url(uri="postgresql//me:secret@host/db")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql://me:hunter2@127.0.0.1:1/db?password=hunter2",
        "postgresql://127.0.0.1:1/db?sslpassword=hunter2&sslmode=hunter2",
        "postgresql://me:hun@hunter2@127.0.0.1:1/db",
        "postgresql://me:hun@hunter2/x@127.0.0.1:1/db",
        "postgresql://me:x@127.0.0.1:hunter2/db",
        "postgresql+hunter://me:hunter2@host/db?api_key=hunter2",
        "sqlite:////nowhere/c.db?password=hunter2",
        "sqlite:////nowhere/c.db?isolation_level=hunter2",
        "jdbc:postgresql://127.0.0.1:1/db?user=me&password=hunter2",
        "jdbc:sqlite:/c.db?password=hunter2",
        "hunter2",
        "hunter2:x",
        "mongodb://me:hunter2@host/db",
        "https://me:hunter2@host/db",
    ],
)
@pytest.mark.filterwarnings("ignore:Query string argument")
def test_errors_do_not_show_the_secrets_of_a_uri(uri: str, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(IcebergError) as raised:
        load_catalog("lake", {"uri": uri, "warehouse": str(tmp_path)})
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_errors_name_the_database(tmp_path: Path) -> None:
    uri = "sqlite:////nowhere/c.db?check_same_thread=true"
    with pytest.raises(IcebergError, match=r"database sqlite:////nowhere/c\.db cannot be used"):
        load_catalog("lake", {"uri": uri, "warehouse": str(tmp_path)})


def test_a_parameter_that_the_driver_refuses_is_an_error_of_the_catalog() -> None:
    with pytest.raises(InvalidOptionError, match=r"catalog lake: the driver of sqlite .*'soon'"):
        load_catalog("lake", {"uri": "sqlite:////nowhere/c.db?timeout=soon", "warehouse": "/w"})


def test_a_message_of_the_driver_does_not_show_secrets() -> None:
    url = make_url("postgresql://me:hunter2@host/db?sslmode=require&sslpassword=key")
    text = 'bad "key" for me, hunter2; sslmode "require", keys'
    assert without_secrets(text, url) == 'bad "***" for me, ***; sslmode "require", keys'


def test_statements_in_errors_have_no_values(tmp_path: Path) -> None:
    """The properties of a namespace may be secret, too."""
    uri = f"sqlite:///{tmp_path}/c.db"
    catalog = open_sql_catalog(uri, tmp_path)
    execute(uri, "DROP TABLE iceberg_namespace_properties")
    # A statement of its own: a traceback shows all lines of a call.
    insert = catalog.namespaces.insert(("db",), {"key": "hunter2"})
    with pytest.raises(IcebergError) as raised:
        catalog.namespaces.database.require(insert, "create namespace db")
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_a_catalog_that_is_printed_does_not_show_its_secrets(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/c.db?timeout=3&detect_types=0"
    properties = {"jdbc.password": "hunter2", "s3.secret-access-key": "hunter2"}
    catalog = open_sql_catalog(uri, tmp_path, **properties)
    state = create_table(catalog)
    given = {"uri": uri, **properties}
    address = TableAddress("db.t", "lake", given, properties)
    shown = repr((catalog, catalog.operations(TABLE), state.io, address, WriteOptions(address)))
    assert "hunter2" not in shown
    assert "detect_types" not in shown


def test_an_sql_catalog_needs_a_uri() -> None:
    with pytest.raises(InvalidOptionError, match=r"catalog lake.*catalog\.uri"):
        load_catalog("lake", {"type": "sql", "warehouse": "/w"})


def test_a_missing_driver_is_named() -> None:
    with pytest.raises(InvalidOptionError, match=r"icebergds\[sql-postgres\]"):
        load_catalog("lake", {"uri": "postgresql+pg8000://host/db"})


def test_a_missing_driver_is_told_by_the_one_that_is_installed() -> None:
    with pytest.raises(InvalidOptionError, match=r"write mysql\+pymysql://.*\[sql-mysql\]"):
        load_catalog("lake", {"uri": "mysql+mysqlconnector://host/db"})


def test_other_catalogs_do_not_import_sqlalchemy() -> None:
    program = "import sys, icebergds.catalog.loading; assert 'sqlalchemy' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_javas_uris_reach_the_same_catalog(postgres: PostgresServer, tmp_path: Path) -> None:
    database = postgres.new_database()
    create_table(open_sql_catalog(postgres.uri(database), tmp_path))
    jdbc = f"jdbc:postgresql://127.0.0.1:{postgres.port}/{database}"
    properties = {"jdbc.user": "tester", "jdbc.password": "any"}
    catalog = open_sql_catalog(jdbc, tmp_path, **properties)
    assert catalog.list_tables(("db",)) == [("db", "t")]


# Options.


def test_missing_tables_are_made_unless_told_otherwise(database_uri: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="init_catalog_tables is false"):
        open_sql_catalog(database_uri, tmp_path, init_catalog_tables="false")
    open_sql_catalog(database_uri, tmp_path)
    catalog = open_sql_catalog(database_uri, tmp_path, **{"jdbc.init-catalog-tables": "false"})
    assert catalog.list_namespaces() == []


def test_opening_a_catalog_of_the_newest_layout_takes_one_statement(
    database_uri: str, tmp_path: Path
) -> None:
    """A write opens it on each of its steps; a new engine would ask the server more."""
    first = open_sql_catalog(database_uri, tmp_path)
    with _statements() as statements:
        again = open_sql_catalog(database_uri, tmp_path)
    assert len(statements) == 1
    assert again.tables.database.engine is first.tables.database.engine


def test_tables_that_were_dropped_are_made_again(database_uri: str, tmp_path: Path) -> None:
    create_table(open_sql_catalog(database_uri, tmp_path))
    execute(database_uri, "DROP TABLE iceberg_namespace_properties")
    catalog = open_sql_catalog(database_uri, tmp_path)
    assert catalog.load(TABLE).name == "lake.db.t"
    execute(database_uri, "DROP TABLE iceberg_tables")
    assert open_sql_catalog(database_uri, tmp_path).list_namespaces() == []


def test_tables_that_are_there_are_not_touched(postgres: PostgresServer, tmp_path: Path) -> None:
    database = postgres.new_database()
    create_table(open_sql_catalog(postgres.uri(database), tmp_path))
    execute(
        postgres.uri(database),
        "CREATE ROLE reader LOGIN",
        "GRANT SELECT ON iceberg_tables, iceberg_namespace_properties TO reader",
    )
    uri = f"postgresql+psycopg://reader@127.0.0.1:{postgres.port}/{database}"
    assert open_sql_catalog(uri, tmp_path).load(("db", "t")).metadata.location


def test_tables_may_be_made_by_others_meanwhile(postgres: PostgresServer, tmp_path: Path) -> None:
    database = postgres.new_database()
    with postgres.connect(database) as other, ThreadPoolExecutor(1) as pool:
        for table in METADATA.sorted_tables:
            other.execute(str(CreateTable(table).compile(dialect=postgresql.dialect())).encode())
        opening = pool.submit(open_sql_catalog, postgres.uri(database), tmp_path)
        waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
        with postgres.connect("postgres") as observer:
            observer.autocommit = True
            while not observer.execute(waiting, (database,)).fetchall():
                assert not opening.done()
        other.commit()
        assert opening.result(timeout=60).list_namespaces() == []


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"echo": "loud"}, "echo is 'loud'"),
        ({"pool_pre_ping": "maybe"}, "pool_pre_ping is 'maybe'"),
        ({"init_catalog_tables": "x"}, "init_catalog_tables is 'x'"),
        ({"schema_version": "v2"}, "schema_version is 'v2'"),
        ({"warehous": "/w"}, "did you mean 'warehouse'"),
    ],
)
def test_malformed_options_are_refused(
    tmp_path: Path, option: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        load_catalog("lake", {"uri": f"sqlite:///{tmp_path}/c.db", **option})


def test_the_storage_does_not_learn_the_password(tmp_path: Path) -> None:
    properties = {
        "jdbc.password": "secret",
        "header.authorization": "secret",
        "s3.endpoint": "http://localhost:1",
    }
    catalog = open_sql_catalog(f"sqlite:///{tmp_path}/c.db", tmp_path, **properties)
    assert catalog.io.properties == {"s3.endpoint": "http://localhost:1"}


def test_no_connection_is_left_open(postgres: PostgresServer, tmp_path: Path) -> None:
    database = postgres.new_database()
    catalog = open_sql_catalog(postgres.uri(database), tmp_path)
    create_table(catalog)
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
    with postgres.connect("postgres") as connection:
        connection.autocommit = True
        deadline = time.monotonic() + 10
        # A server process takes a moment to end.
        while connection.execute(query, (database,)).fetchall() != [(0,)]:
            assert time.monotonic() < deadline


@contextmanager
def _statements() -> Iterator[list[str]]:
    """The statements executed in the meantime."""
    found: list[str] = []

    def note(connection: object, cursor: object, statement: str, *more: object) -> None:
        found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def test_an_unknown_charset_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="does not know the charset"):
        _url(uri="mysql+pymysql://u:p@host/db?charset=klingon")
