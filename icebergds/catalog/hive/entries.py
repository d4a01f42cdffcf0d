"""Builds the entry of a table in a Hive Metastore, as Java Iceberg does."""

from __future__ import annotations

import getpass
import time
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from icebergds.catalog.hive.messages import Column, SerDe, StorageDescriptor, Table
from icebergds.catalog.hive.parameters import (
    OWNER,
    table_parameters,
)
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.table_properties import ENGINE_HIVE_ENABLED
from icebergds.spec.types import (
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    StructType,
    TypeId,
)


@dataclass(frozen=True, slots=True)
class EntryOptions:
    """The options for entries in a catalog's properties.

    Attributes:
        hive_engine: whether Hive can query tables that have no property for this.
        hive2_compatible: whether to use only types of Hive 2.
        max_parameter_size: maximum number of characters of parameters derived from the metadata.
    """

    hive_engine: bool
    hive2_compatible: bool
    max_parameter_size: int


def new_entry(
    database: str, name: str, location: str, metadata: TableMetadata, options: EntryOptions
) -> Table:
    """The entry of a new table.

    Args:
        location: the metadata file.

    Raises:
        InvalidOptionError: a table property is malformed.
    """
    now_s = int(time.time())
    entry = Table(
        name=name,
        database=database,
        owner=metadata.properties.get(OWNER) or current_user(),
        create_time=now_s,
        last_access_time=now_s,
        retention=2**31 - 1,
        partition_keys=(),
        parameters={},
        table_type="EXTERNAL_TABLE",
    )
    return changed_entry(entry, location, metadata, frozenset(), options)


def changed_entry(
    entry: Table,
    location: str,
    metadata: TableMetadata,
    removed: AbstractSet[str],
    options: EntryOptions,
) -> Table:
    """The entry after a commit.

    Args:
        removed: the names of properties that the commit removes from the table.

    Raises:
        InvalidOptionError: a table property is malformed.
    """
    current = entry.parameters or {}
    hive_engine = ENGINE_HIVE_ENABLED.of(metadata.properties)
    if hive_engine is None:
        hive_engine = options.hive_engine
    parameters = table_parameters(
        metadata,
        location,
        current=current,
        removed=removed,
        hive_engine=hive_engine,
        max_size=options.max_parameter_size,
    )
    storage = _storage(metadata, hive_engine, options.hive2_compatible)
    return replace(entry, storage=storage, parameters=parameters)


def current_user() -> str:
    """The user of this process, as the owner of created objects."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container's user may have no name.
        return "unknown"


def _storage(metadata: TableMetadata, hive_engine: bool, hive2: bool) -> StorageDescriptor:
    formats = _HIVE_ENGINE if hive_engine else _NO_ENGINE
    return StorageDescriptor(
        columns=hive_columns(metadata.schema(), hive2_compatible=hive2),
        location=metadata.location,
        input_format=formats[0],
        output_format=formats[1],
        compressed=False,
        buckets=0,
        serde=SerDe(library=formats[2], parameters={}),
    )


_HIVE_ENGINE = (
    "org.apache.iceberg.mr.hive.HiveIcebergInputFormat",
    "org.apache.iceberg.mr.hive.HiveIcebergOutputFormat",
    "org.apache.iceberg.mr.hive.HiveIcebergSerDe",
)
_NO_ENGINE = (
    "org.apache.hadoop.mapred.FileInputFormat",
    "org.apache.hadoop.mapred.FileOutputFormat",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)


def hive_columns(schema: Schema, *, hive2_compatible: bool) -> tuple[Column, ...]:
    """The top-level columns of a schema.

    Args:
        hive2_compatible: whether to write timestamps with a time zone as timestamps without,
            because Hive 2 only has those.
    """
    return tuple(
        Column(field.name, _type(field.field_type, hive2_compatible), field.doc)
        for field in schema.fields
    )


_ZONED = "timestamp with local time zone"
_PRIMITIVES = {
    TypeId.BOOLEAN: "boolean",
    TypeId.INT: "int",
    TypeId.LONG: "bigint",
    TypeId.FLOAT: "float",
    TypeId.DOUBLE: "double",
    TypeId.DATE: "date",
    TypeId.TIME: "string",
    TypeId.TIMESTAMP: "timestamp",
    TypeId.TIMESTAMPTZ: _ZONED,
    TypeId.TIMESTAMP_NS: "timestamp",
    TypeId.TIMESTAMPTZ_NS: _ZONED,
    TypeId.STRING: "string",
    TypeId.UUID: "string",
    TypeId.FIXED: "binary",
    TypeId.BINARY: "binary",
    TypeId.UNKNOWN: "void",
    # Java Iceberg's `unknown` is not a type that metastores accept.
    TypeId.VARIANT: "binary",
    TypeId.GEOMETRY: "binary",
    TypeId.GEOGRAPHY: "binary",
}


def _type(field_type: IcebergType, hive2: bool) -> str:
    match field_type:
        case StructType(fields=fields):
            inner = ",".join(f"{f.name}:{_type(f.field_type, hive2)}" for f in fields)
            return f"struct<{inner}>"
        case ListType(element_type=element):
            return f"array<{_type(element, hive2)}>"
        case MapType(key_type=key, value_type=value):
            return f"map<{_type(key, hive2)},{_type(value, hive2)}>"
        case DecimalType(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case _:
            text = _PRIMITIVES[field_type.type_id]
            return "timestamp" if hive2 and text == _ZONED else text
