"""Models the types of format versions 1 to 3 (spec: Schemas and Data Types).

In-memory representation of values, everywhere in `spec` and `expr`:

=============================  ==========================================================
boolean, string                bool, str
int, long                      int
float, double                  float
decimal(P, S)                  decimal.Decimal
date                           int, days since 1970-01-01
time                           int, microseconds since midnight
timestamp, timestamptz         int, microseconds since 1970-01-01T00:00 (UTC if tz)
timestamp_ns, timestamptz_ns   int, nanoseconds since 1970-01-01T00:00 (UTC if tz)
uuid                           bytes, 16, big-endian
fixed(L), binary               bytes
geometry, geography            bytes (WKB); bounds are points (see `values`)
unknown                        None
struct, list, map              tuple of values, list of values, list of (key, value)
=============================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeGuard

from icebergds.display import printable
from icebergds.errors import InvalidOptionError
from icebergds.spec.read_only import ReadOnlyDict


class TypeId(StrEnum):
    """The primitive types without parameters, and the names of those with parameters."""

    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    TIMESTAMP_NS = "timestamp_ns"
    TIMESTAMPTZ_NS = "timestamptz_ns"
    STRING = "string"
    UUID = "uuid"
    FIXED = "fixed"
    BINARY = "binary"
    UNKNOWN = "unknown"
    VARIANT = "variant"
    GEOMETRY = "geometry"
    GEOGRAPHY = "geography"


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parameters; compare with the constants of this module."""

    type_id: TypeId

    def __str__(self) -> str:
        return self.type_id.value


@dataclass(frozen=True, slots=True)
class DecimalType:
    """Fixed-point decimal: `precision` digits (at most 38), `scale` of them after the point."""

    precision: int
    scale: int

    @property
    def type_id(self) -> TypeId:
        return TypeId.DECIMAL

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class FixedType:
    """Byte strings of exactly `length` bytes."""

    length: int

    @property
    def type_id(self) -> TypeId:
        return TypeId.FIXED

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


@dataclass(frozen=True, slots=True)
class GeometryType:
    """Features with planar edges, in a coordinate reference system."""

    crs: str = "OGC:CRS84"

    @property
    def type_id(self) -> TypeId:
        return TypeId.GEOMETRY

    def __str__(self) -> str:
        return "geometry" if self.crs == "OGC:CRS84" else f"geometry({self.crs})"


@dataclass(frozen=True, slots=True)
class GeographyType:
    """Features whose edges follow `algorithm` on an ellipsoid."""

    crs: str = "OGC:CRS84"
    algorithm: str = "spherical"

    @property
    def type_id(self) -> TypeId:
        return TypeId.GEOGRAPHY

    def __str__(self) -> str:
        if self.algorithm == "spherical":
            return "geography" if self.crs == "OGC:CRS84" else f"geography({self.crs})"
        return f"geography({self.crs}, {self.algorithm})"


@dataclass(frozen=True, slots=True)
class NestedField:
    """A field of a struct (and a column of a table).

    `initial_default` and `write_default` are in-memory values; None means no default, which the
    spec does not distinguish from a null default. `unknown` keeps JSON members that the spec does
    not define, here and in the nested types, so that they are written back.
    """

    field_id: int
    name: str
    field_type: IcebergType
    required: bool = False
    doc: str | None = None
    initial_default: Any = field(default=None, hash=False)
    write_default: Any = field(default=None, hash=False)
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.field_type, _TYPES):
            given = getattr(self.field_type, "__name__", repr(self.field_type))
            raise InvalidOptionError(
                f"field {self.name!r}: its type is {given}, expected a type, such as LongType() or "
                "StringType() of icebergds.types, with parentheses; a schema as text, such as "
                "'id bigint, name string', can be given to create_table"
            )

    @property
    def optional(self) -> bool:
        return not self.required

    def __repr__(self) -> str:
        shown = f"NestedField({self.field_id}, {self.name!r}, {printable(str(self.field_type), 60)}"
        if self.required:
            shown += ", required=True"
        for name in ("doc", "initial_default", "write_default"):
            if (value := getattr(self, name)) is not None:
                shown += f", {name}={printable(repr(value), 60)}"
        return f"{shown})"


@dataclass(frozen=True, slots=True)
class StructType:
    """A tuple of named fields."""

    fields: tuple[NestedField, ...]
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    if TYPE_CHECKING:
        # `fields` may be given as a list.
        def __init__(
            self, fields: Sequence[NestedField], unknown: Mapping[str, Any] = ...
        ) -> None: ...

    def __post_init__(self) -> None:
        if type(self.fields) is not tuple:
            object.__setattr__(self, "fields", listed_fields(self.fields, "StructType"))

    def __str__(self) -> str:
        inner = ", ".join(f"{f.field_id}: {f.name}: {_shown(f)}" for f in self.fields)
        return f"struct<{inner}>"


@dataclass(frozen=True, slots=True)
class ListType:
    """A list of elements of one type."""

    element_id: int
    element_type: IcebergType
    element_required: bool = False
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    @property
    def element_field(self) -> NestedField:
        return NestedField(self.element_id, "element", self.element_type, self.element_required)

    def __str__(self) -> str:
        return f"list<{_shown(self.element_field)}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map; keys are always required."""

    key_id: int
    key_type: IcebergType
    value_id: int
    value_type: IcebergType
    value_required: bool = False
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    @property
    def key_field(self) -> NestedField:
        return NestedField(self.key_id, "key", self.key_type, True)

    @property
    def value_field(self) -> NestedField:
        return NestedField(self.value_id, "value", self.value_type, self.value_required)

    def __str__(self) -> str:
        return f"map<{self.key_type}, {_shown(self.value_field)}>"


def _shown(inner: NestedField) -> str:
    return f"required {inner.field_type}" if inner.required else str(inner.field_type)


ScalarType = PrimitiveType | DecimalType | FixedType | GeometryType | GeographyType
IcebergType = ScalarType | StructType | ListType | MapType
_TYPES = (
    PrimitiveType,
    DecimalType,
    FixedType,
    GeometryType,
    GeographyType,
    StructType,
    ListType,
    MapType,
)

BOOLEAN = PrimitiveType(TypeId.BOOLEAN)
INT = PrimitiveType(TypeId.INT)
LONG = PrimitiveType(TypeId.LONG)
FLOAT = PrimitiveType(TypeId.FLOAT)
DOUBLE = PrimitiveType(TypeId.DOUBLE)
DATE = PrimitiveType(TypeId.DATE)
TIME = PrimitiveType(TypeId.TIME)
TIMESTAMP = PrimitiveType(TypeId.TIMESTAMP)
TIMESTAMPTZ = PrimitiveType(TypeId.TIMESTAMPTZ)
TIMESTAMP_NS = PrimitiveType(TypeId.TIMESTAMP_NS)
TIMESTAMPTZ_NS = PrimitiveType(TypeId.TIMESTAMPTZ_NS)
STRING = PrimitiveType(TypeId.STRING)
UUID = PrimitiveType(TypeId.UUID)
BINARY = PrimitiveType(TypeId.BINARY)
UNKNOWN = PrimitiveType(TypeId.UNKNOWN)
VARIANT = PrimitiveType(TypeId.VARIANT)


def listed_fields(fields: Any, owner: str) -> tuple[NestedField, ...]:
    """The fields that a struct or schema is made of, as a tuple.

    Args:
        fields: a list or tuple of fields.
        owner: the class that is made, for errors.

    Raises:
        InvalidOptionError: something other than fields is given.
    """
    listed = tuple(fields) if isinstance(fields, list | tuple) else (None,)
    if wrong := [one for one in listed if not isinstance(one, NestedField)]:
        given = type(fields if wrong == [None] else wrong[0]).__name__
        raise InvalidOptionError(
            f"the fields of a {'schema' if owner == 'Schema' else 'struct'} are given as one list, "
            f"{owner}([NestedField(...), ...]), but there is a {given}"
        )
    return listed


def is_scalar(field_type: IcebergType) -> TypeGuard[ScalarType]:
    """Whether the type has no fields of its own (variant, geometry and geography included)."""
    return not isinstance(field_type, StructType | ListType | MapType)


def children(field_type: IcebergType) -> tuple[NestedField, ...]:
    """The fields directly inside a type: struct fields, list element, map key and value."""
    match field_type:
        case StructType(fields=fields):
            return fields
        case ListType():
            return (field_type.element_field,)
        case MapType():
            return (field_type.key_field, field_type.value_field)
        case _:
            return ()


def walk(fields: tuple[NestedField, ...]) -> Iterator[NestedField]:
    """Every field at every level, parents before their children."""
    for nested in fields:
        yield nested
        yield from walk(children(nested.field_type))
