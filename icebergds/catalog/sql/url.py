"""Builds the database URL of an SQL catalog from its properties."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from icebergds.catalog.sql.mysql import MYSQL, mysql_url
from icebergds.errors import InvalidOptionError

JDBC_PREFIX = "jdbc."


def database_url(catalog: str, properties: Mapping[str, str], directory: str) -> URL:
    """The URL of a catalog's database.

    Args:
        properties: `uri`, in SQLAlchemy's form or Java's (`jdbc:...`), and `jdbc.user`,
            `jdbc.password` and other parameters of the connection.
        directory: the base for relative paths of SQLite files.

    Raises:
        InvalidOptionError: the URL is missing or malformed, the database is in memory, or it would
            commit each statement separately.
    """
    url = _url(catalog, properties, directory)
    if name := next(
        (name for name, value in url.query.items() if _commits_each(name, value)), None
    ):
        raise InvalidOptionError(
            f"catalog {catalog}: the parameter {name!r} in the uri of its database commits each "
            "statement on its own, so that a commit to several tables could not be undone; leave "
            "it out"
        )
    return url


def _url(catalog: str, properties: Mapping[str, str], directory: str) -> URL:
    uri = properties.get("uri")
    if not uri:
        raise InvalidOptionError(
            f"catalog {catalog} is an SQL catalog and needs a database: set "
            "option('catalog.uri', 'postgresql://user:password@host/database') or "
            "'sqlite:////path/to/catalog.db'"
        )
    if uri.startswith("jdbc:sqlite:"):
        path = uri.removeprefix("jdbc:sqlite:").removeprefix("file:")
        if "?" in path:
            raise InvalidOptionError(
                f"catalog {catalog}: parameters after '?' in a jdbc:sqlite: uri are not supported"
            )
        url = URL.create("sqlite", database=path)
    else:
        url = _parsed(catalog, uri.removeprefix("jdbc:"))
    if url.get_backend_name() in ("postgresql", "postgres", *MYSQL):
        given = _connection_properties(properties)
        if uri.startswith("jdbc:"):
            given = {**{key: _last(value) for key, value in url.query.items()}, **given}
            url = url.set(query={})
        add = mysql_url if url.get_backend_name() in MYSQL else _postgresql
        return add(catalog, url, given)
    if url.get_backend_name() == "sqlite":
        return _sqlite(catalog, url, directory)
    if uri.startswith("jdbc:"):
        raise InvalidOptionError(
            f"catalog {catalog}: only jdbc: uris of PostgreSQL, MySQL, MariaDB and SQLite are "
            "supported; use SQLAlchemy's uri of the database"
        )
    return url


def missing_driver(catalog: str, url: URL, error: Exception) -> InvalidOptionError:
    """The error for a database whose driver is not installed."""
    if url.get_backend_name() in MYSQL:
        instead = "write mysql+pymysql://... and pip install 'icebergds[sql-mysql]'"
    elif url.get_backend_name() == "postgresql":
        instead = "write postgresql+psycopg://... and pip install 'icebergds[sql-postgres]'"
    else:
        instead = "it is a package that SQLAlchemy's list of dialects names"
    return InvalidOptionError(
        f"catalog {catalog}: the driver of {url.drivername} is not installed ({error}); {instead}"
    )


def timeouts(url: URL) -> dict[str, int]:
    """The driver's timeouts that the URL does not set; by default it waits forever."""
    return {name: value for name, value in _waits_of_driver(url).items() if name not in url.query}


# Longer than the servers' default lock time-outs (50 s in MySQL).
_ANSWER_S = 120
_CONNECT_S = 30
_OWN_JDBC_PROPERTIES = ("schema-version", "strict-mode", "init-catalog-tables")
# Maps parameters of the JDBC driver to those of libpq.
_PARAMETERS = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "options": "options",
}


def _parsed(catalog: str, uri: str) -> URL:
    try:
        url = make_url(uri)
    except (ArgumentError, ValueError):
        # SQLAlchemy's message is not shown: it repeats the uri with the password.
        raise InvalidOptionError(
            f"catalog {catalog}: the uri of its database cannot be parsed; expected "
            "postgresql://user:password@host:port/database, sqlite:////path/to/catalog.db or "
            "another of SQLAlchemy's forms, with special characters percent-encoded"
        ) from None
    if url.username is not None and "@" in f"{url.host}{url.database}":
        # An unescaped @ in the user or password: the rest would be taken for the host.
        raise InvalidOptionError(
            f"catalog {catalog}: the uri of its database has more than one @; percent-encode "
            "special characters in the user and the password (@ is %40, / is %2F)"
        )
    return url


def _connection_properties(properties: Mapping[str, str]) -> dict[str, str]:
    given = {
        key.removeprefix(JDBC_PREFIX): value
        for key, value in properties.items()
        if key.startswith(JDBC_PREFIX)
    }
    return {key: value for key, value in given.items() if key not in _OWN_JDBC_PROPERTIES}


def _postgresql(catalog: str, url: URL, given: dict[str, str]) -> URL:
    """Adds the JDBC driver's parameters, and an installed driver, to the URL."""
    user, password = given.pop("user", None), given.pop("password", None)
    if unknown := [key for key in given if key not in _PARAMETERS]:
        raise InvalidOptionError(
            f"catalog {catalog}: the connection parameter {unknown[0]!r} is not supported; "
            f"expected one of user, password, {', '.join(_PARAMETERS)}; for others, use "
            "SQLAlchemy's uri, postgresql://user:password@host/database?name=value"
        )
    if url.drivername in ("postgresql", "postgres"):
        old = find_spec("psycopg") is None and find_spec("psycopg2") is not None
        url = url.set(drivername="postgresql+psycopg2" if old else "postgresql+psycopg")
    elif url.drivername == "postgresql+psycopg2" and find_spec("psycopg2") is None:
        # Its successor accepts the same parameters.
        url = url.set(drivername="postgresql+psycopg")
    if user is not None:
        url = url.set(username=user)
    if password is not None:
        url = url.set(password=password)
    return url.update_query_dict({_PARAMETERS[key]: value for key, value in given.items()})


def _sqlite(catalog: str, url: URL, directory: str) -> URL:
    database = url.database or ""
    if database in ("", ":memory:") or database.startswith("file::memory:"):
        raise InvalidOptionError(
            f"catalog {catalog}: a database in memory is visible to only one connection, but Spark "
            "plans and commits in other processes; use a file, sqlite:////path/to/catalog.db"
        )
    if database.startswith("file:"):
        return url
    return url.set(database=os.path.join(directory, database))


def _commits_each(name: str, value: str | tuple[str, ...]) -> bool:
    told = f"{name} {value}" if name == "init_command" else name
    return "autocommit" in told.lower()


def _last(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else value[-1]


def _waits_of_driver(url: URL) -> dict[str, int]:
    match url.get_backend_name(), url.get_driver_name():
        case "sqlite", _:
            # Only one writer at a time can lock a file; others wait.
            return {"timeout": 60}
        case _, "pymysql" | "mysqldb":
            return {
                "connect_timeout": _CONNECT_S,
                "read_timeout": _ANSWER_S,
                "write_timeout": _ANSWER_S,
            }
        case "postgresql", "psycopg" | "psycopg2":
            # libpq has no answer time-out; it detects if the other machine is gone.
            return {
                "connect_timeout": _CONNECT_S,
                "tcp_user_timeout": _ANSWER_S * 1000,
                "keepalives_idle": 30,
                "keepalives_interval": 10,
                "keepalives_count": 3,
            }
    return {}
