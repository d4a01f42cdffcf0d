"""Parses, quotes and resolves column names in filters.

A name is the path from the table to a field, its parts joined with dots: `address.city`. A part in
backticks is taken literally, with a backtick in it doubled, as in Spark: `` `a.b`.c `` is the field
`c` of the struct column `a.b`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from icebergds.errors import InvalidFilterError
from icebergds.spec.reserved import RESERVED_BY_NAME
from icebergds.spec.schema import Schema
from icebergds.spec.types import IcebergType, NestedField, StructType, is_scalar
from icebergds.suggestions import did_you_mean


def quote_name(parts: Iterable[str]) -> str:
    """Joins parts to a name; empty parts and parts with a dot or a backtick are quoted."""
    return ".".join(_quote(part) for part in parts)


def in_backticks(parts: Iterable[str]) -> str:
    """Joins parts to a name and quotes all of them, for texts in which dots are not enough."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def split_name(name: str) -> tuple[str, ...]:
    """Splits a name into its parts, without their backticks.

    Raises InvalidFilterError for an empty part outside backticks and for backticks that do not
    enclose a whole part.
    """
    if _NAME.fullmatch(name) is None:
        raise InvalidFilterError(
            f"column name {name!r} is malformed: join parts with single dots, and put a part that"
            " contains a dot or a backtick in backticks (double a backtick in it)"
        )
    return tuple(
        quoted.replace("``", "`") if plain is None else plain
        for plain, quoted in (match.group(1, 2) for match in _PART.finditer(name))
    )


def resolve(name: str, schema: Schema, case_sensitive: bool = True) -> NestedField:
    """The field of a schema that a name refers to.

    Without case sensitivity, an exact match wins at each level. Raises InvalidFilterError for an
    unknown or ambiguous name and for fields inside lists and maps, which have many values per row.
    """
    parts = split_name(name)
    field: NestedField | None = None
    for depth, part in enumerate(parts):
        if field is None:
            siblings = schema.fields
        elif isinstance(field.field_type, StructType):
            siblings = field.field_type.fields
        else:
            raise _not_a_struct(name, parts[:depth], field.field_type)
        field = _find(part, siblings, case_sensitive, name)
        if field is None:
            raise _unknown(name, schema)
    assert field is not None
    return field


_PART = re.compile(r"(?:^|\.)(?:([^.`]+)|`((?:[^`]|``)*)`)", re.DOTALL)
_NAME = re.compile(r"(?:[^.`]+|`(?:[^`]|``)*`)(?:\.(?:[^.`]+|`(?:[^`]|``)*`))*", re.DOTALL)


def _quote(part: str) -> str:
    if part and "." not in part and "`" not in part:
        return part
    return "`" + part.replace("`", "``") + "`"


def _find(
    part: str, siblings: Sequence[NestedField], case_sensitive: bool, name: str
) -> NestedField | None:
    exact = [field for field in siblings if field.name == part]
    if exact or case_sensitive:
        return exact[0] if exact else None
    lowered = part.lower()
    hits = [field for field in siblings if field.name.lower() == lowered]
    if len(hits) > 1:
        raise InvalidFilterError(
            f"column {name} is ambiguous: ignoring case, {part} matches "
            f"{', '.join(field.name for field in hits)}; write it in the exact case"
        )
    return hits[0] if hits else None


def _not_a_struct(name: str, outer: tuple[str, ...], outer_type: IcebergType) -> InvalidFilterError:
    column = quote_name(outer)
    if is_scalar(outer_type):
        return InvalidFilterError(
            f"column {name} does not exist: {column} is {outer_type} and has no fields"
        )
    return InvalidFilterError(
        f"column {name} is inside {column}, a list or map with many values per row;"
        f" filters support only '{column} is null' and '{column} is not null'"
    )


def _unknown(name: str, schema: Schema) -> InvalidFilterError:
    if name.lower() in RESERVED_BY_NAME:
        return InvalidFilterError(
            f"column {name} is a metadata column, which the filter of a load does not support; "
            "filter the DataFrame"
        )
    known = [quote_name(path) for path in _reachable(schema.fields)]
    hint = did_you_mean(name, known, most=3)
    if not hint and known:
        hint = f"there are {', '.join(known[:10])}{', ...' if len(known) > 10 else ''}"
    return InvalidFilterError(f"column {name} does not exist: {hint or 'the table has no columns'}")


def _reachable(fields: Sequence[NestedField]) -> list[tuple[str, ...]]:
    paths: list[tuple[str, ...]] = []
    for field in fields:
        paths.append((field.name,))
        if isinstance(field.field_type, StructType):
            paths += ((field.name, *path) for path in _reachable(field.field_type.fields))
    return paths
