"""Models partition specs, and computes partition types and paths (spec: Partitioning)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from icebergds.display import WIDTH, html_table, joined
from icebergds.spec.read_only import ReadOnlyDict
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    IdentityTransform,
    Transform,
    VoidTransform,
    result_type,
    to_human,
)
from icebergds.spec.types import UNKNOWN, IcebergType, NestedField, StructType

FIRST_PARTITION_FIELD_ID = 1000
"""Version 1 tables may leave out field ids: they are then counted from here in each spec."""
NO_FIELD_ID = 0
"""Placeholder id of a partition field; adding its spec to a table assigns the real one."""


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A partition field: a transform of one source column, or of several since version 3.

    `unknown` keeps JSON members that the spec does not define, here and in the spec's own object.
    """

    source_ids: tuple[int, ...]
    field_id: int
    transform: Transform
    name: str
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    @property
    def source_id(self) -> int:
        """The first source column; supported transforms have only one."""
        return self.source_ids[0]


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The partition fields of a file's partition, in order."""

    spec_id: int = 0
    fields: tuple[PartitionField, ...] = ()
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def __repr__(self) -> str:
        shown = [
            f"{part.field_id}: {part.name}: {part.transform}({_sources(part)})"
            for part in self.fields
        ]
        fields = joined(shown, "field", WIDTH - 30) if shown else "unpartitioned"
        return f"PartitionSpec(spec_id={self.spec_id}, {fields})"

    def _repr_html_(self) -> str:
        rows = [
            (str(part.field_id), part.name, str(part.transform), _sources(part))
            for part in self.fields
        ]
        header = ("field id", "name", "transform", "source column id")
        kind = "" if rows else ": unpartitioned"
        return html_table(f"Partition spec {self.spec_id}{kind}", header, rows, "field")

    @property
    def is_unpartitioned(self) -> bool:
        """Whether all files belong to one partition: there are no fields, or only void ones."""
        return all(isinstance(part.transform, VoidTransform) for part in self.fields)

    def has_same_fields(self, other: PartitionSpec) -> bool:
        """Whether both have the same fields in the same order, whatever ids these have."""

        def told(spec: PartitionSpec) -> list[tuple[object, ...]]:
            return [(part.source_ids, str(part.transform), part.name) for part in spec.fields]

        return told(self) == told(other)

    @property
    def source_ids(self) -> frozenset[int]:
        """The source columns of all fields that are not void."""
        return frozenset(
            source_id
            for part in self.fields
            if not isinstance(part.transform, VoidTransform)
            for source_id in part.source_ids
        )

    @property
    def last_field_id(self) -> int:
        """The greatest field id; if there are no fields, one less than the first possible id."""
        return max((part.field_id for part in self.fields), default=FIRST_PARTITION_FIELD_ID - 1)


def _sources(part: PartitionField) -> str:
    return ", ".join(map(str, part.source_ids))


def partition_type(
    spec: PartitionSpec, schema: Schema, history: Iterable[Schema] = ()
) -> StructType:
    """The struct of a spec's partition values: optional fields with the spec's field ids.

    A source column that the schema no longer has is looked up in `history`, in order. If it is not
    found, or if the transform is unknown, the field is of type unknown; manifests may still hold
    values of such fields.
    """
    schemas = (schema, *history)
    return StructType(
        tuple(
            NestedField(
                part.field_id,
                part.name,
                result_type(part.transform, source_type(part.source_id, schemas)),
            )
            for part in spec.fields
        )
    )


def identity_columns(specs: Mapping[int, PartitionSpec]) -> frozenset[int]:
    """Source columns of identity partition fields.

    Args:
        specs: by id.
    """
    return frozenset(
        part.source_id
        for spec in specs.values()
        for part in spec.fields
        if isinstance(part.transform, IdentityTransform)
    )


def partition_path(
    spec: PartitionSpec, schema: Schema, partition: tuple[Any, ...], history: Iterable[Schema] = ()
) -> str:
    """The directory of a partition's files under the table's data location, named as in Java.

    `partition` holds one in-memory value per field. Empty for an unpartitioned table.
    """
    schemas = (schema, *history)
    return "/".join(
        f"{_escaped(part.name)}="
        f"{_escaped(to_human(part.transform, source_type(part.source_id, schemas), value))}"
        for part, value in zip(spec.fields, partition, strict=True)
    )


def source_type(source_id: int, schemas: Iterable[Schema]) -> IcebergType:
    """The type of a source column in the first schema that has it; unknown if none has."""
    found = (schema.find_field(source_id) for schema in schemas)
    return next((column.field_type for column in found if column is not None), UNKNOWN)


# application/x-www-form-urlencoded of HTML 4: what Java's URLEncoder leaves unescaped.
_UNESCAPED = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-*_")


def _escaped(text: str) -> str:
    return "".join(
        chr(byte) if byte in _UNESCAPED else "+" if byte == 0x20 else f"%{byte:02X}"
        for byte in text.encode()
    )
