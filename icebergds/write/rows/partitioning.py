"""Splits batches by partition (spec: Partitioning).

Partition values become dense codes; a stable sort by code makes the rows of each partition
contiguous, and each partition is a slice of the sorted rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icebergds.formats.arrow.types import in_memory_values
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import VoidTransform
from icebergds.write.rows.source_columns import TransformedColumn, transformed_column

_Codes = npt.NDArray[np.signedinteger[Any]]
_FEW = 1 << 16
_NAN_BITS = {4: 0x7FC00000, 8: 0x7FF8000000000000}


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """The rows of a batch that belong to one partition, in their original order.

    Attributes:
        partition: the partition tuple.
        batch: the rows.
    """

    partition: tuple[Any, ...]
    batch: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Partitioner:
    """Splits batches of one schema by one spec; created by `plan_partitioning`.

    Attributes:
        columns: the transformed column of each partition field; None for dropped (void) fields.
    """

    columns: tuple[TransformedColumn | None, ...]

    @property
    def is_trivial(self) -> bool:
        """Whether there is only one partition."""
        return not any(self.columns)

    def split(self, batch: pa.RecordBatch) -> list[PartitionRows]:
        """Splits rows by partition, in the order of each partition's first row.

        Raises:
            InvalidDataError: a partition value does not fit its type.
        """
        if not batch.num_rows:
            return []
        if self.is_trivial:
            return [PartitionRows((None,) * len(self.columns), batch)]
        fields = [
            None if column is None else _encode(column.values(batch)) for column in self.columns
        ]
        groups = _group([field for field in fields if field is not None])
        rows = batch if groups.order is None else batch.take(pa.array(groups.order, pa.uint32()))
        return [
            PartitionRows(
                tuple(None if field is None else field.value_at(first) for field in fields),
                rows if length == batch.num_rows else rows.slice(start, length),
            )
            for start, length, first in groups.slices
        ]


def plan_partitioning(spec: PartitionSpec, schema: Schema, *, table: str) -> Partitioner:
    """Plans the partitioning of a schema's batches.

    Args:
        spec: the partition spec of the files to write.
        schema: the schema of the batches.
        table: the table's name or location, for messages.

    Raises:
        UnsupportedFeatureError: a transform is unknown.
        InvalidMetadataError: the spec does not fit the schema.
    """
    return Partitioner(
        tuple(
            None
            if isinstance(field.transform, VoidTransform)
            else transformed_column(
                schema,
                field.source_ids,
                field.transform,
                f"partition field {field.name!r} of table {table}",
            )
            for field in spec.fields
        )
    )


@dataclass(frozen=True, slots=True)
class _Encoded:
    """Dictionary-encoded values of a partition field."""

    codes: _Codes
    distinct: list[Any]

    def value_at(self, row: int) -> Any:
        return self.distinct[self.codes[row]]


@dataclass(frozen=True, slots=True)
class _Groups:
    """Rows grouped by partition.

    Attributes:
        order: row indices that make groups contiguous; None if they already are.
        slices: of the reordered rows: start, length, and the original index of the first row.
    """

    order: _Codes | None
    slices: list[tuple[int, int, int]]


def _encode(values: pa.Array) -> _Encoded:
    keys = values
    if pa.types.is_floating(values.type):
        keys = _float_bits(values)
    if pa.types.is_null(values.type):
        return _Encoded(np.zeros(len(values), np.int32), [None])
    encoded = keys.dictionary_encode(null_encoding="encode")
    distinct = encoded.dictionary
    if keys is not values:
        distinct = distinct.view(values.type)
    return _Encoded(np.asarray(encoded.indices), in_memory_values(distinct))


def _float_bits(values: pa.Array) -> pa.Array:
    """The bits of floats, with one bit pattern for all NaNs."""
    width = values.type.bit_width // 8
    bits = values.view(pa.int32() if width == 4 else pa.int64())
    return pc.if_else(pc.is_nan(values), pa.scalar(_NAN_BITS[width], bits.type), bits)


def _group(fields: Sequence[_Encoded]) -> _Groups:
    codes, count = fields[0].codes, len(fields[0].distinct)
    for field in fields[1:]:
        codes = codes.astype(np.int64) * len(field.distinct) + field.codes
        count *= len(field.distinct)
        if count > _FEW:
            codes, count = _dense(codes)
    codes = codes.astype(_narrowest(count))
    runs = np.concatenate(([0], np.flatnonzero(codes[1:] != codes[:-1]) + 1))
    if len(runs) <= count and len(np.unique(codes[runs])) == len(runs):
        return _Groups(None, _slices(runs, runs, len(codes)))
    order = np.argsort(codes, kind="stable")
    lengths = np.bincount(codes)
    starts = (np.cumsum(lengths) - lengths)[lengths > 0]
    return _Groups(order, _slices(starts, order[starts], len(codes)))


def _dense(codes: _Codes) -> tuple[_Codes, int]:
    encoded = pa.array(codes).dictionary_encode()
    return np.asarray(encoded.indices), len(encoded.dictionary)


def _narrowest(count: int) -> type[np.unsignedinteger[Any]] | type[np.int32]:
    # numpy uses radix sort for integers of up to 16 bits.
    return np.uint8 if count <= 1 << 8 else np.uint16 if count <= _FEW else np.int32


def _slices(starts: _Codes, firsts: _Codes, length: int) -> list[tuple[int, int, int]]:
    """Slices in the order of the groups' first rows."""
    lengths = np.diff(starts, append=length)
    order = np.argsort(firsts)
    columns = (starts[order].tolist(), lengths[order].tolist(), firsts[order].tolist())
    return list(zip(*columns, strict=True))
