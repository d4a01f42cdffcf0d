"""Metadata of SQL functions, as servers of REST catalogs have it."""

from __future__ import annotations

from typing import Any


def definition(
    parameters: dict[str, Any],
    returned: Any,
    sql: str | dict[str, str],
    *,
    kind: str = "udf",
    on_null: str | None = None,
) -> dict[str, Any]:
    """A definition whose second version is the current one.

    Args:
        parameters: their types, by name.
        sql: the body for Spark, or bodies by dialect.
        on_null: the value of `on-null-input`.
    """
    sqls = {"spark": sql} if isinstance(sql, str) else sql
    body = [{"type": "sql", "dialect": key, "sql": each} for key, each in sqls.items()]
    old = [{"type": "sql", "dialect": "spark", "sql": "'an old version'"}]
    on_null_input = {} if on_null is None else {"on-null-input": on_null}
    return {
        "definition-id": ",".join(map(str, parameters.values())),
        "parameters": [{"name": name, "type": each} for name, each in parameters.items()],
        "return-type": returned,
        "function-type": kind,
        "versions": [
            {"version-id": 1, "timestamp-ms": 1, "representations": old},
            {"version-id": 2, "timestamp-ms": 2, "representations": body, **on_null_input},
        ],
        "current-version-id": 2,
    }


def function(*definitions: dict[str, Any], **members: Any) -> dict[str, Any]:
    """The metadata of a function."""
    return {
        "function-uuid": "42fd3f91-bc10-41c1-8a52-92b57dd0a9b2",
        "format-version": 1,
        "definitions": list(definitions),
        "definition-log": [],
        **members,
    }
