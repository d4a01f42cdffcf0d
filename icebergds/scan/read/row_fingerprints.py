"""Computes fingerprints of rows: 128-bit hashes of all columns, including nested ones.

Equal rows have equal fingerprints: null equals null, NaN equals NaN, -0.0 is not 0.0, and neither
the order of map entries matters nor how variants are encoded. Each task group uses new seeds, and
two different rows have the same fingerprint with a probability of about 2^-128.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.formats.arrow.arrays import as_list_of_entries
from icebergds.formats.deletes.key_columns import KeyColumn, Mask, encode_column
from icebergds.formats.deletes.key_hash import Hashes, hash_columns, new_seed
from icebergds.scan.read.variant_hashes import hash_variants
from icebergds.spec.types import (
    BINARY,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TypeId,
)

_VARIANT = StructType(
    (NestedField(0, "metadata", BINARY, True), NestedField(0, "value", BINARY, True))
)


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprints:
    """Fingerprints of rows, as two columns of 64 bits."""

    high: Hashes
    low: Hashes

    def __len__(self) -> int:
        return len(self.high)

    @staticmethod
    def concat(parts: Sequence[Fingerprints]) -> Fingerprints:
        """Concatenates fingerprints."""
        none = np.empty(0, np.uint64)
        return Fingerprints(
            np.concatenate([none, *(part.high for part in parts)]),
            np.concatenate([none, *(part.low for part in parts)]),
        )

    def filter(self, mask: Mask) -> Fingerprints:
        """The fingerprints of the rows for which a mask is true."""
        return Fingerprints(self.high[mask], self.low[mask])


@dataclass(frozen=True, slots=True)
class Fingerprinter:
    """Computes fingerprints; only those of the same fingerprinter are comparable.

    Args:
        fields: the fields of the columns.
        seeds: one for each 64-bit half.
    """

    fields: tuple[NestedField, ...]
    seeds: tuple[int, int]

    @staticmethod
    def of(fields: Sequence[NestedField]) -> Fingerprinter:
        """A fingerprinter with new seeds."""
        return Fingerprinter(tuple(fields), (new_seed(), new_seed()))

    def fingerprints(self, columns: Sequence[pa.Array], length: int) -> Fingerprints:
        """The fingerprints of rows.

        Args:
            columns: one for each field, in the storage types of `formats.arrow.types.to_arrow`.
        """
        high, low = (
            hash_columns(
                [_lanes(c, f, seed) for c, f in zip(columns, self.fields, strict=True)],
                length,
                seed,
            )
            for seed in self.seeds
        )
        return Fingerprints(high, low)


def _lanes(column: pa.Array, field: NestedField, seed: int) -> KeyColumn:
    """Encodes a column for `hash_columns`; nested values are replaced by their hashes."""
    match field.field_type:
        case StructType(fields=fields):
            return _of_struct(column, fields, seed)
        case ListType():
            values = column.flatten()
            return _of_hashes(column, _hashes(values, field.field_type.element_field, seed))
        case MapType():
            return _of_map(column, field.field_type, seed)
        case GeometryType() | GeographyType():
            return encode_column(column, replace(field, field_type=BINARY))
        case _ if _is_variant(field.field_type):
            hashes = hash_variants(column, seed)
            # What is not a variant equals only the same bytes.
            return hashes or _of_struct(column, _VARIANT.fields, seed)
        case _:
            return encode_column(column, field)


def _hashes(column: pa.Array, field: NestedField, seed: int) -> Hashes:
    return hash_columns([_lanes(column, field, seed)], len(column), seed)


def _of_struct(column: pa.StructArray, fields: Sequence[NestedField], seed: int) -> KeyColumn:
    valid = _valid(column)
    hashes = [_hashes(column.field(at), field, seed) for at, field in enumerate(fields)]
    if valid is not None:
        # Ignores the values inside a null struct.
        hashes = [np.where(valid, each, np.uint64(0)) for each in hashes]
    return KeyColumn(tuple(each.view(np.int64) for each in hashes), None, valid)


def _of_map(column: pa.MapArray, field_type: MapType, seed: int) -> KeyColumn:
    flat = as_list_of_entries(column).flatten()
    fields = (field_type.key_field, field_type.value_field)
    hashes = hash_columns([_of_struct(flat, fields, seed)], len(flat), seed)
    rows = np.repeat(np.arange(len(column)), _lengths(column))
    return _of_hashes(column, hashes[np.lexsort((hashes, rows))])


def _of_hashes(column: pa.Array, hashes: Hashes) -> KeyColumn:
    """A list or map column: the hashes of each row's elements as one binary value."""
    offsets = np.concatenate(([0], np.cumsum(_lengths(column), dtype=np.int64))) * 8
    text = pa.Array.from_buffers(
        pa.large_binary(), len(column), [None, pa.py_buffer(offsets), pa.py_buffer(hashes)]
    )
    return KeyColumn((), text, _valid(column))


def _lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    offsets: npt.NDArray[np.int64] = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    lengths = np.diff(offsets)
    valid = _valid(column)
    return lengths if valid is None else lengths * valid


def _valid(column: pa.Array) -> Mask | None:
    if not column.null_count:
        return None
    valid: Mask = pc.is_valid(column).to_numpy(zero_copy_only=False)
    return valid


def _is_variant(field_type: IcebergType) -> bool:
    return getattr(field_type, "type_id", None) is TypeId.VARIANT
