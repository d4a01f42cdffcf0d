"""Reads the metadata of SQL functions from JSON (UDF spec: UDF Metadata)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from icebergds.errors import InvalidMetadataError, UnsupportedFeatureError
from icebergds.spec.functions import (
    FUNCTION_FORMAT_VERSION,
    FunctionDefinition,
    FunctionMetadata,
    FunctionParameter,
    FunctionVersion,
    SQLFunctionRepresentation,
)
from icebergds.spec.json.fields import optional, required, string_map, typed
from icebergds.spec.json.types import MAX_DEPTH, parse_scalar
from icebergds.spec.types import IcebergType, ListType, MapType, NestedField, StructType


def function_metadata_from_json(obj: Mapping[str, Any], where: str) -> FunctionMetadata:
    """Parses the metadata of a function.

    Args:
        where: names it in messages.

    Raises:
        InvalidMetadataError: it is malformed.
        UnsupportedFeatureError: its format version, or a type, is not supported.
    """
    version = required(obj, "format-version", int, where)
    if version != FUNCTION_FORMAT_VERSION:
        raise UnsupportedFeatureError(
            f"{where} has the format version {version}; functions of version "
            f"{FUNCTION_FORMAT_VERSION} are supported"
        )
    return FunctionMetadata(
        required(obj, "function-uuid", str, where),
        tuple(_definition(each, where) for each in _objects(obj, "definitions", where)),
        optional(obj, "location", str, where),
        string_map(obj, "properties", where),
        optional(obj, "secure", bool, where) or False,
        optional(obj, "doc", str, where),
    )


def _definition(obj: Mapping[str, Any], where: str) -> FunctionDefinition:
    definition_id = required(obj, "definition-id", str, where)
    where = f"the definition {definition_id!r} of {where}"
    found = FunctionDefinition(
        definition_id,
        tuple(
            FunctionParameter(
                required(each, "name", str, where),
                _type(each.get("type"), where),
                optional(each, "doc", str, where),
            )
            for each in _objects(obj, "parameters", where)
        ),
        _type(obj.get("return-type"), where),
        tuple(_version(each, where) for each in _objects(obj, "versions", where)),
        required(obj, "current-version-id", int, where),
        required(obj, "function-type", str, where),
        optional(obj, "specific-name", str, where),
        optional(obj, "doc", str, where),
    )
    if all(each.version_id != found.current_version_id for each in found.versions):
        raise InvalidMetadataError(f"{where} lacks its current version {found.current_version_id}")
    return found


def _version(obj: Mapping[str, Any], where: str) -> FunctionVersion:
    on_null = optional(obj, "on-null-input", str, where) or "call"
    if on_null not in ("call", "return-null"):
        raise InvalidMetadataError(
            f"'on-null-input' of {where} is {on_null!r}, expected 'call' or 'return-null'"
        )
    return FunctionVersion(
        required(obj, "version-id", int, where),
        required(obj, "timestamp-ms", int, where),
        tuple(
            SQLFunctionRepresentation(
                required(each, "sql", str, where), required(each, "dialect", str, where)
            )
            for each in _objects(obj, "representations", where)
            if required(each, "type", str, where) == "sql"
        ),
        optional(obj, "deterministic", bool, where) or False,
        on_null == "return-null",
    )


def _objects(obj: Mapping[str, Any], name: str, where: str) -> Iterator[dict[str, Any]]:
    for each in required(obj, name, list, where):
        yield typed(each, dict, f"a member of {name!r} in {where}")


def _type(obj: Any, where: str) -> IcebergType:
    return _numbered_type(obj, where, count(1), MAX_DEPTH)


def _numbered_type(obj: Any, where: str, ids: Iterator[int], levels: int) -> IcebergType:
    """A type of a parameter or value: other than a table's, it has no field ids."""
    if isinstance(obj, str):
        return parse_scalar(obj)
    if not levels:
        raise InvalidMetadataError(f"types of {where} are nested more than {MAX_DEPTH} deep")
    where = f"a type of {where}"
    kind = required(typed(obj, dict, where), "type", str, where)

    def inner(member: Any) -> IcebergType:
        return _numbered_type(member, where, ids, levels - 1)

    match kind:
        case "struct":
            fields = _objects(obj, "fields", where)
            return StructType(
                tuple(
                    NestedField(
                        next(ids), required(each, "name", str, where), inner(each.get("type"))
                    )
                    for each in fields
                )
            )
        case "list":
            return ListType(next(ids), inner(obj.get("element")))
        case "map":
            return MapType(next(ids), inner(obj.get("key")), next(ids), inner(obj.get("value")))
    raise UnsupportedFeatureError(
        f"nested type {kind!r} of {where} is not supported, expected struct, list or map"
    )
