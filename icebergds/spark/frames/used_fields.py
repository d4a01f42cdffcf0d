"""Finds which fields of a load a query uses; the others are not read.

Spark does not tell a Python data source or function which columns it needs, but our DataFrames know
their query. If Spark evaluates a field that the query does not name after all, it raises.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType as SparkStruct

from icebergds.expr.names import in_backticks
from icebergds.spec.schema import Schema
from icebergds.spec.types import INT, LONG, NestedField, StructType

# Nodes that output what their expressions name, and nodes that output their input.
_NAMING = ("Project", "Aggregate")
_PASSING = ("Deduplicate", "Filter", "Sort", "GlobalLimit", "LocalLimit")
_UNREAD = "icebergds: a column that the query did not name was not read"
_RAISES = f"raise_error('{_UNREAD}')"


def used_fields(plan: Any, columns: Mapping[int, NestedField]) -> frozenset[int] | None:
    """The ids of the leaf's fields that an analyzed plan names; None if it needs all.

    Args:
        plan: a Catalyst plan, a JVM object.
        columns: those of the leaf, by the expression ids of their attributes.
    """
    if not _has_distinct_names(columns.values()) or _has_variables(columns.values()):
        return None
    used: set[int] = set()
    names_columns = False
    while not plan.children().isEmpty():
        kind = plan.getClass().getSimpleName()
        if kind not in _NAMING and kind not in _PASSING:
            return None
        names_columns |= kind in _NAMING
        expressions = plan.expressions()
        for index in range(expressions.size()):
            tree = json.loads(expressions.apply(index).toJSON())
            used.update(_named(tree, columns))
        plan = plan.children().head()
    return frozenset(used) if names_columns else None


def narrowed(schema: Schema, used: frozenset[int]) -> Schema:
    """The used fields; if there are none, one cheap column, so that rows can be counted."""
    if not used:
        cheap = (field.field_id for field in schema.fields if field.field_type in (INT, LONG))
        used = frozenset([next(cheap, schema.fields[0].field_id)])
    return schema.select(used)


def padded(frame: DataFrame, whole: Schema, read: Schema, schema: SparkStruct) -> DataFrame:
    """Completes partly read structs; the added fields raise if Spark evaluates them.

    Args:
        read: the columns of the frame, in its order.
        schema: of the frame with all fields of `whole`.
    """
    whole_fields = {field.field_id: field for field in whole.fields}
    if all(field == whole_fields[field.field_id] for field in read.fields):
        return frame
    types = {
        field.field_id: shown.dataType
        for field, shown in zip(whole.fields, schema.fields, strict=True)
    }
    columns = (
        f"{_text(whole_fields[field.field_id], field, (), types[field.field_id])}"
        f" AS {in_backticks((field.name,))}"
        for field in read.fields
    )
    # As text, because each Column takes many JVM calls.
    return frame.selectExpr(*columns)


def evaluates_unread(plan: Any) -> bool:
    """Whether an optimized plan still evaluates a field that was not read."""
    return _UNREAD in plan.toJSON()


def _named(tree: Sequence[Any], columns: Mapping[int, NestedField]) -> Iterator[int]:
    """The ids of the fields in a Catalyst expression; its JSON lists nodes before children."""
    ordinals: list[int] = []
    for node in tree:
        if isinstance(node, list):
            yield from _named(node, columns)
            continue
        if not isinstance(node, dict):
            continue
        match str(node.get("class", "")).rpartition(".")[2]:
            case "GetStructField":
                ordinals.append(node["ordinal"])
                continue
            case "AttributeReference" if node["exprId"]["id"] in columns:
                yield _inner(columns[node["exprId"]["id"]], ordinals)
        ordinals = []
        # Sub-queries in expressions.
        for value in node.values():
            if isinstance(value, list):
                yield from _named(value, columns)


def _inner(field: NestedField, ordinals: list[int]) -> int:
    """The field at a path of struct positions, given innermost first."""
    for ordinal in reversed(ordinals):
        inner = field.field_type
        if not isinstance(inner, StructType) or not _has_distinct_names(inner.fields):
            break
        # Spark would take the field for never null, because the struct built from it is not.
        if inner.fields[ordinal].required and not field.required:
            break
        field = inner.fields[ordinal]
    return field.field_id


def _has_distinct_names(fields: Collection[NestedField]) -> bool:
    """Whether Spark finds each field by its name, whatever its case."""
    return len({field.name.casefold() for field in fields}) == len(fields)


def _has_variables(fields: Iterable[NestedField]) -> bool:
    """Whether Spark would substitute a variable in a name in SQL, even in backticks."""
    paths = Schema(tuple(fields)).paths_by_id.values()
    return any("${" in name for path in paths for name in path)


def _text(
    field: NestedField, have: NestedField | None, parents: tuple[str, ...], shown: DataType
) -> str:
    """The SQL of a field, of which possibly only a part was read."""
    path = (*parents, field.name)
    if have is None:
        return f"CAST({_RAISES} AS {_type_text(shown)})"
    if have == field:
        return in_backticks(path)
    assert isinstance(field.field_type, StructType)
    assert isinstance(have.field_type, StructType)
    assert isinstance(shown, SparkStruct)
    inner = {one.field_id: one for one in have.field_type.fields}
    parts = (
        f"{_text(one, inner.get(one.field_id), path, part.dataType)} AS {in_backticks((one.name,))}"
        for one, part in zip(field.field_type.fields, shown.fields, strict=True)
    )
    return f"struct({', '.join(parts)})"


def _type_text(shown: DataType) -> str:
    match shown:
        case SparkStruct(fields=fields):
            parts = (f"{in_backticks((one.name,))}: {_type_text(one.dataType)}" for one in fields)
            return f"struct<{', '.join(parts)}>"
        case ArrayType(elementType=element):
            return f"array<{_type_text(element)}>"
        case MapType(keyType=key, valueType=value):
            return f"map<{_type_text(key)}, {_type_text(value)}>"
    return shown.simpleString()
