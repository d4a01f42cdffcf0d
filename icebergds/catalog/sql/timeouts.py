"""Chooses how long a database is waited for, which drivers would do forever."""

from __future__ import annotations

from sqlalchemy import URL

__all__ = ["timeouts"]


def timeouts(url: URL) -> dict[str, int]:
    """Arguments of a driver, without those that the URL has."""
    return {name: value for name, value in _of_driver(url).items() if name not in url.query}


# Longer than servers let statements wait for a lock by default (50 s in MySQL).
_ANSWER_S = 120
_CONNECT_S = 30


def _of_driver(url: URL) -> dict[str, int]:
    match url.get_backend_name(), url.get_driver_name():
        case "sqlite", _:
            # Only one writer at a time can lock a file; the others wait.
            return {"timeout": 60}
        case _, "pymysql" | "mysqldb":
            return {
                "connect_timeout": _CONNECT_S,
                "read_timeout": _ANSWER_S,
                "write_timeout": _ANSWER_S,
            }
        case "postgresql", "psycopg" | "psycopg2":
            # libpq has no time for an answer; it finds out if the other machine is gone.
            return {
                "connect_timeout": _CONNECT_S,
                "tcp_user_timeout": _ANSWER_S * 1000,
                "keepalives_idle": 30,
                "keepalives_interval": 10,
                "keepalives_count": 3,
            }
    return {}
