"""Maps table columns to Parquet types and column paths (spec: Appendix A, Parquet)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.arrow.types import FIELD_ID, to_arrow
from icebergds.formats.data_file.file_schema import ColumnKind, FileColumn, columns_of
from icebergds.formats.data_file.stored_columns import Dialect
from icebergds.spec.types import (
    UUID,
    GeographyType,
    GeometryType,
    NestedField,
)


@dataclass(frozen=True, slots=True)
class ParquetLeaf:
    """A leaf column: its path in the Parquet schema, and its field id.

    All parts of a variant have the id of the variant.
    """

    path: str
    field_id: int | None


def leaves_of(stored: pa.Schema) -> tuple[ParquetLeaf, ...]:
    """The leaf columns of a stored schema, in the file's order."""
    return leaves_in(columns_of(stored))


def leaves_in(columns: Iterable[FileColumn]) -> tuple[ParquetLeaf, ...]:
    """The leaf columns of a file's columns, in the file's order."""
    return tuple(leaf for column in columns for leaf in _leaves(column, column.name))


class _GeospatialType(pa.ExtensionType):  # type: ignore[misc]
    """WKB that Arrow annotates as geometry or geography: GeoArrow's `geoarrow.wkb`.

    Used only to write schemas, and not registered: that could conflict with other packages.
    """

    def __init__(self, metadata: bytes) -> None:
        self._metadata = metadata
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return self._metadata

    @classmethod
    def __arrow_ext_deserialize__(
        cls, storage_type: pa.DataType, serialized: bytes
    ) -> _GeospatialType:
        return cls(serialized)


_DEFAULT_CRS = "OGC:CRS84"


def _data_type(field: NestedField) -> pa.DataType:
    field_type = field.field_type
    match field_type:
        case _ if field_type == UUID:
            return pa.uuid()
        case GeometryType():
            return _GeospatialType(_geoarrow_metadata(field_type.crs, None))
        case GeographyType(algorithm=algorithm) if algorithm != "spherical":
            raise UnsupportedFeatureError(
                f"column {field.name!r} is of type {field_type}: pyarrow {pa.__version__} cannot "
                "write geographies to Parquet whose edges are not spherical; set the table's "
                "property 'write.format.default' to 'orc' or 'avro'"
            )
        case GeographyType():
            return _GeospatialType(_geoarrow_metadata(field_type.crs, field_type.algorithm))
        case _:
            return to_arrow(field_type)


def _geoarrow_metadata(crs: str, edges: str | None) -> bytes:
    metadata = {} if edges is None else {"edges": edges}
    if crs != _DEFAULT_CRS:
        metadata |= {"crs": crs, "crs_type": "srid" if crs.startswith("srid:") else "unknown"}
    return json.dumps(metadata).encode()


def _attributes(field: NestedField) -> dict[str, str]:
    return {FIELD_ID.decode(): str(field.field_id)}


PARQUET = Dialect("Parquet", _data_type, _attributes)


def _leaves(column: FileColumn, path: str) -> Iterator[ParquetLeaf]:
    match column.kind:
        case ColumnKind.LEAF:
            yield ParquetLeaf(path, column.field_id)
        case ColumnKind.STRUCT:
            for child in column.children:
                below = f"{path}.{child.name}"
                leaves = _leaves(child, below)
                if column.is_variant:
                    leaves = (replace(leaf, field_id=column.field_id) for leaf in leaves)
                yield from leaves
        case ColumnKind.LIST:
            yield from _leaves(column.children[0], f"{path}.list.element")
        case ColumnKind.MAP:
            for child, name in zip(column.children, ("key", "value"), strict=True):
                yield from _leaves(child, f"{path}.key_value.{name}")
