"""Prepares connections to MySQL and MariaDB, their URLs and the database tables of a catalog."""

from __future__ import annotations

from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sqlalchemy import URL, Dialect, Engine, column, event, func, select, table

from icebergds.catalog.sql.database import Database
from icebergds.catalog.sql.tables import TABLES
from icebergds.errors import InvalidOptionError, UnsupportedFeatureError

MYSQL = ("mysql", "mariadb")
"""The databases' names in URLs."""


def mysql_url(catalog: str, url: URL, given: dict[str, str]) -> URL:
    """Adds parameters of Java's drivers, and an installed driver, to a URL.

    Raises:
        InvalidOptionError: a parameter is not supported.
    """
    user, password = given.pop("user", None), given.pop("password", None)
    if url.drivername in MYSQL:
        old = find_spec("pymysql") is None and find_spec("MySQLdb") is not None
        url = url.set(drivername="mysql+mysqldb" if old else "mysql+pymysql")
    if user is not None:
        url = url.set(username=user)
    if password is not None:
        url = url.set(password=password)
    parameters: dict[str, str] = {}
    for name, value in given.items():
        parameters |= _parameter(catalog, name, value)
    _check_charset(catalog, url)
    return url.update_query_dict(parameters)


def be_strict(engine: Engine) -> None:
    """Makes the database reject texts that are too long; by its settings, it may truncate them."""

    @event.listens_for(engine, "connect")
    def _set_mode(connection: Any, _: object) -> None:
        with closing(connection.cursor()) as cursor:
            cursor.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')")


def table_options(dialect: Dialect) -> str:
    """The options after the columns of a CREATE TABLE: transactions, and exact keys."""
    if dialect.name not in MYSQL:
        return ""
    # MySQL's collation ignores trailing blanks: names that only differ in these cannot coexist.
    is_mariadb = bool(getattr(dialect, "is_mariadb", False))
    collation = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_bin"
    return f" ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE={collation}"


def require_transactions(database: Database) -> None:
    """Checks that the engine of `iceberg_tables` supports transactions; MyISAM, for one, does not.

    Raises:
        UnsupportedFeatureError: it does not, so a multi-table commit could not be rolled back.
        StorageError: the database fails.
    """
    if database.engine.dialect.name not in MYSQL:
        return
    is_ours = _STORED.c.table_schema == func.database(), _STORED.c.table_name == TABLES.name
    used = _STORED.c.engine == _ENGINES.c.engine
    rows = database.read(select(_ENGINES.c.engine, _ENGINES.c.transactions).where(*is_ours, used))
    for engine, transactions in rows:
        if transactions != "YES":
            raise UnsupportedFeatureError(
                f"catalog {database.catalog}: several tables cannot be changed together, because "
                f"its database stores {TABLES.name} by the engine {engine}, which has no "
                "transactions; use a transaction for each table, or convert it by ALTER TABLE "
                f"{TABLES.name} ENGINE=InnoDB"
            )


_STORED = table(
    "TABLES",
    column("table_schema"),
    column("table_name"),
    column("engine"),
    schema="information_schema",
)
_ENGINES = table("ENGINES", column("engine"), column("transactions"), schema="information_schema")
_EXPECTED = (
    "user, password, connectTimeout, socketTimeout, sslMode (DISABLED, REQUIRED), useSSL and "
    "nullDatabaseMeansCurrent=true"
)


def _check_charset(catalog: str, url: URL) -> None:
    # The driver would only fail on connecting, with an error that is not a database error.
    charset = url.query.get("charset")
    if charset is None or not url.drivername.endswith("+pymysql") or find_spec("pymysql") is None:
        return
    known = import_module("pymysql.charset")
    if known.charset_by_name(str(charset)) is None:
        raise InvalidOptionError(
            f"catalog {catalog}: PyMySQL does not know the charset of the uri; expected one such "
            "as utf8mb4, which is the default"
        )


def _parameter(catalog: str, name: str, value: str) -> dict[str, str]:
    """A parameter of Java's drivers as a parameter of PyMySQL."""
    match name, value.lower():
        case "connectTimeout", milliseconds if milliseconds.isdecimal():
            return {"connect_timeout": str(max(1, int(milliseconds) // 1000))}
        case "socketTimeout", milliseconds if milliseconds.isdecimal():
            seconds = str(max(1, int(milliseconds) // 1000))
            return {"read_timeout": seconds, "write_timeout": seconds}
        case ("sslMode", "disabled" | "disable") | ("useSSL", "false"):
            return {"ssl_disabled": "true"}
        # Encrypted, without verifying the server's certificate.
        case ("sslMode", "required" | "trust") | ("useSSL", "true"):
            return {"ssl_check_hostname": "false"}
        # Java's catalog needs it if several databases of a server are catalogs.
        case "nullCatalogMeansCurrent" | "nullDatabaseMeansCurrent", "true":
            return {}
    raise InvalidOptionError(
        f"catalog {catalog}: the connection parameter {name!r} is not supported, or not with its "
        f"value; expected {_EXPECTED}; for others, use SQLAlchemy's uri, "
        "mysql+pymysql://user:password@host/database?name=value"
    )
