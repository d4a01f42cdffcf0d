"""Reads from a server's answer what it restricts of a table (REST catalog: `ReadRestrictions`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from icebergds.spec.json.fields import optional, required, typed
from icebergds.spec.metadata import TableMetadata

_MEMBER = "read-restrictions"
_FILTER = "required-row-filter"
_PROJECTIONS = "required-column-projections"


def has_read_restrictions(body: Mapping[str, Any]) -> bool:
    """Whether an answer says what may be read of a table, be it everything."""
    return body.get(_MEMBER) is not None


def read_refusal(body: Mapping[str, Any], metadata: TableMetadata, name: str, where: str) -> str:
    """Why the rows of a table must not be read; empty if an answer restricts nothing.

    A reader that cannot apply each of the restrictions must fail (REST catalog specification:
    `ReadRestrictions`), and this package applies none.

    Args:
        body: of the answer.
        metadata: of the table, which names the columns.
        name: the table's name in messages.
        where: names the answer in messages.

    Raises:
        InvalidMetadataError: the restrictions are malformed.
    """
    given = optional(body, _MEMBER, dict, where) or {}
    where = f"{_MEMBER!r} of {where}"
    found = [*_of_rows(given, metadata), *_of_columns(given, metadata, where)]
    known = (_FILTER, _PROJECTIONS)
    found += [repr(key) for key, value in given.items() if key not in known and value]
    if not found:
        return ""
    return (
        f"table {name}: its catalog restricts what this user may read of it: {'; '.join(found)}. "
        "icebergds does not enforce such restrictions, so it neither reads rows of the table nor "
        "metadata that tells of them; read it with an engine that enforces them, or as a user "
        "without restrictions"
    )


def _of_rows(given: Mapping[str, Any], metadata: TableMetadata) -> Iterator[str]:
    condition = given.get(_FILTER)
    if condition is None or _is_always_true(condition):
        return
    names = ", ".join(dict.fromkeys(_columns_of(condition, metadata)))
    yield f"a filter of rows by {names}" if names else "a filter of rows"


def _is_always_true(condition: Any) -> bool:
    match condition:
        case bool():
            return condition
        case {"type": "true"} | {"type": "literal", "value": True}:
            return True
    return False


def _columns_of(condition: Any, metadata: TableMetadata) -> Iterator[str]:
    """The columns to which a predicate refers, by their ids or, in the older form, their names."""
    waiting = [condition]
    while waiting:
        match waiting.pop():
            case {"type": "reference", "id": int(field_id)}:
                yield _column(field_id, metadata)
            case {"type": "reference", "term": str(name)} | {"term": str(name)}:
                yield name
            case dict(members):
                waiting += reversed(members.values())
            case list(members):
                waiting += reversed(members)


def _of_columns(given: Mapping[str, Any], metadata: TableMetadata, where: str) -> Iterator[str]:
    for member in optional(given, _PROJECTIONS, list, where) or ():
        each = typed(member, dict, f"a member of {_PROJECTIONS!r} in {where}")
        column = _column(required(each, "field-id", int, where), metadata)
        yield f"column {column} by the action {required(each, 'action', str, where)}"


def _column(field_id: int, metadata: TableMetadata) -> str:
    schemas = (metadata.schema(), *reversed(metadata.schemas))
    names = (schema.find_name(field_id) for schema in schemas)
    return next((name for name in names if name is not None), f"with the field id {field_id}")
