"""Reads the definition of a view in CREATE VIEW."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from icebergds.errors import InvalidStatementError, UnsupportedFeatureError
from icebergds.statements.queries.temporary_views import QUERY_COLUMNS
from icebergds.statements.text.cursor import Cursor
from icebergds.statements.text.properties import read_properties

LOCATION = "location"
"""The property that sets the directory of a new view's metadata, as in Java."""
# The view has these in other places.
_RESERVED = frozenset(
    {
        "provider",
        LOCATION,
        "owner",
        "external",
        "is_managed_location",
        "format-version",
        QUERY_COLUMNS,
    }
)
_LONGEST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Definition:
    """What CREATE VIEW says after the view's name.

    Attributes:
        columns: names and comments; empty for those of the query.
        has_clauses: whether there are clauses other than a comment on the view.
    """

    query: Cursor
    columns: Sequence[tuple[str, str | None]] = ()
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    has_clauses: bool = False


def read_definition(cursor: Cursor) -> Definition:
    """Reads `[(columns)] [COMMENT ...] [TBLPROPERTIES ...] AS query`, to the end.

    Raises:
        InvalidStatementError: it is malformed, or has a clause of Hive's.
        UnsupportedFeatureError: it is a metric view.
    """
    columns = _columns(cursor.group()) if cursor.is_at_sign("(") else []
    comment: str | None = None
    properties: dict[str, str] | None = None
    binds_schema = False
    while not cursor.take("AS"):
        if comment is None and cursor.take("COMMENT"):
            comment = cursor.text("a comment")
        elif properties is None and cursor.take("TBLPROPERTIES"):
            properties = read_properties(cursor.group())
        elif not binds_schema and cursor.take("WITH", "SCHEMA"):
            # The columns of an Iceberg view never change by themselves.
            binds_schema = cursor.take_any("BINDING", "COMPENSATION", "EVOLUTION") is not None
            binds_schema = binds_schema or cursor.take("TYPE", "EVOLUTION")
            if not binds_schema:
                raise cursor.error("BINDING, COMPENSATION or [TYPE] EVOLUTION")
        elif cursor.is_at("WITH", "METRICS"):
            raise UnsupportedFeatureError(
                f"{cursor.statement.strip()[:_LONGEST_SHOWN]}: views of Iceberg are queries, and "
                "metric views are not supported in their catalogs; create a view AS SELECT with "
                "the measures as columns"
            )
        else:
            raise cursor.error("AS and a query")
    if cursor.is_done:
        raise cursor.error("a query")
    has_clauses = properties is not None or binds_schema
    return Definition(cursor.rest(), columns, comment, properties or {}, has_clauses)


def read_view_properties(cursor: Cursor) -> dict[str, str]:
    """Reads `('a' = 'b', ...)`.

    Raises:
        InvalidStatementError: it is malformed, or sets something that is not a property of views.
    """
    found = read_properties(cursor.group())
    refuse_reserved(cursor, found)
    return found


def refuse_reserved(cursor: Cursor, properties: Iterable[str]) -> None:
    """Raises InvalidStatementError if a statement changes something that is not a view property."""
    if reserved := sorted(_RESERVED.intersection(properties)):
        raise InvalidStatementError(
            f"{cursor.statement.strip()}: {reserved[0]} is reserved, and no property to be changed"
        )


def _columns(listed: Cursor) -> list[tuple[str, str | None]]:
    found = []
    for item in listed.items():
        name = item.identifier("the name of a column")
        comment = item.text("a comment") if item.take("COMMENT") else None
        item.expect_end()
        found.append((name, comment))
    if not found:
        raise listed.error("the name of a column")
    return found
