"""Builds the updates that create a view or give it a new version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from icebergds.errors import InvalidOptionError
from icebergds.spec.evolution.fresh_ids import with_fresh_ids
from icebergds.spec.schema import Schema
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddSchema,
    AssignUuid,
    SetLocation,
    SetProperties,
)
from icebergds.spec.views.metadata import SQLViewRepresentation, ViewVersion
from icebergds.spec.views.updates import AddViewVersion, SetCurrentViewVersion, ViewUpdate


def new_view_updates(
    version: Sequence[ViewUpdate], *, view_uuid: str, location: str, properties: Mapping[str, str]
) -> list[ViewUpdate]:
    """The updates that create a view.

    Args:
        version: what `new_version_updates` returned.
        location: the view's directory; a trailing slash is removed.
    """
    return [
        AssignUuid(view_uuid),
        SetLocation(location.rstrip("/") or location),
        *([SetProperties(properties)] if properties else []),
        *version,
    ]


def new_version_updates(
    schema: Schema,
    sql: Mapping[str, str],
    *,
    default_catalog: str | None,
    default_namespace: Sequence[str],
    summary: Mapping[str, str],
    now_ms: int,
) -> list[ViewUpdate]:
    """The updates that add a version and make it the current one.

    Args:
        schema: the columns of the view, which get fresh ids, counted from 1.
        sql: the same query in one or more dialects, such as `{"spark": "SELECT ..."}`.
        now_ms: milliseconds since the epoch.

    Raises:
        InvalidOptionError: there is no query, or an empty one.
    """
    empty = [dialect for dialect, text in sql.items() if not dialect.strip() or not text.strip()]
    if empty or not sql:
        what = f"the query of dialect {empty[0]!r} is empty" if empty else "there is no query"
        raise InvalidOptionError(
            f"{what}; a view needs the text of a query by dialect, such as "
            "{'spark': 'SELECT * FROM db.events'}"
        )
    fields = with_fresh_ids(schema.fields, count(1))
    version = ViewVersion(
        version_id=1,
        schema_id=LAST_ADDED,
        timestamp_ms=now_ms,
        summary=summary,
        representations=tuple(
            SQLViewRepresentation(text, dialect) for dialect, text in sql.items()
        ),
        default_namespace=tuple(default_namespace),
        default_catalog=default_catalog,
    )
    plain = replace(schema, fields=fields, schema_id=0, identifier_field_ids=())
    return [AddSchema(plain), AddViewVersion(version), SetCurrentViewVersion(LAST_ADDED)]
