"""Shreds the variant columns of a Parquet file, each as its first rows suggest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from icebergds.errors import CorruptFileError, InvalidDataError
from icebergds.formats.arrow.types import field_id_of
from icebergds.formats.arrow.variant.inference import infer_shape
from icebergds.formats.arrow.variant.shredding import Shape, shredded, variant_type
from icebergds.formats.data_file.column_metrics import FileMetrics, MeasuredColumn
from icebergds.formats.data_file.stored_columns import stored_batch
from icebergds.formats.data_file.variant_bounds import VariantRanges
from icebergds.formats.parquet.columns import ParquetLeaf, leaves_of
from icebergds.spec.schema import Schema
from icebergds.spec.table_properties import PARQUET_SHRED_VARIANTS
from icebergds.spec.types import VARIANT


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file stores the columns of a schema.

    Attributes:
        schema: of the rows.
        plain: the stored schema without shredding.
        stored: the stored schema.
        leaves: its leaf columns.
        shapes: how variants are shredded, by their ordinals in the stored schema.
        location: the file, for errors.
    """

    schema: Schema
    plain: pa.Schema
    stored: pa.Schema
    leaves: tuple[ParquetLeaf, ...]
    location: str
    shapes: Mapping[int, Shape] = field(default_factory=dict)

    @staticmethod
    def of(schema: Schema, plain: pa.Schema, location: str) -> Layout:
        """The layout without shredding."""
        return Layout(schema, plain, plain, leaves_of(plain), location)

    def shredding(self, rows: pa.Table, num_rows: int) -> Layout:
        """A layout that shreds the variants at the top level, if their first rows suggest it.

        Args:
            rows: the first ones of the file.
            num_rows: how many of them to look at.

        Raises:
            InvalidDataError: a value is not a variant.
        """
        variants = {f.field_id for f in self.schema.fields if f.field_type == VARIANT}
        columns = [at for at, each in enumerate(self.plain) if field_id_of(each) in variants]
        if not columns:
            return self
        first = rows.slice(0, num_rows).to_batches()
        plain = [stored_batch(batch, self.schema, self.plain) for batch in first]
        sample = pa.Table.from_batches(plain, self.plain).combine_chunks()
        shapes, fields = {}, list(self.plain)
        for at in columns:
            for chunk in sample.column(at).chunks:
                with self._reading():
                    shape = infer_shape(chunk, self._place(at))
                if shape is not None:
                    shapes[at] = shape
                    fields[at] = fields[at].with_type(variant_type(shape))
        stored = pa.schema(fields)
        return Layout(self.schema, self.plain, stored, leaves_of(stored), self.location, shapes)

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of the schema as it is stored.

        Raises:
            InvalidDataError: a value of a shredded column is not a variant.
        """
        plain = stored_batch(batch, self.schema, self.plain)
        if not self.shapes:
            return plain
        columns = plain.columns
        for at, shape in self.shapes.items():
            with self._reading():
                columns[at] = shredded(columns[at], shape, self._place(at))
        return pa.RecordBatch.from_arrays(columns, schema=self.stored)

    def _place(self, at: int) -> str:
        return f"column {self.plain.field(at).name!r} of {self.location}"

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Variants are read from rows here, not from a file."""
        try:
            yield
        except CorruptFileError as error:
            raise InvalidDataError(
                f"{error}; the rows to write are not variants. With the table property "
                f"{PARQUET_SHRED_VARIANTS.name} = false they are written as they are"
            ) from error


class VariantMetrics:
    """The bounds of the shredded variants of a file.

    Args:
        columns: those with metrics.
    """

    def __init__(self, layout: Layout, columns: Sequence[MeasuredColumn]) -> None:
        wanted = {column.field_id: column for column in columns if column.mode.has_bounds}
        self._ranges = [
            (at, wanted[field_id], VariantRanges(shape))
            for at, shape in layout.shapes.items()
            if (field_id := field_id_of(layout.plain.field(at))) in wanted
        ]

    def add(self, stored: pa.Table) -> None:
        """Adds the rows of a row group."""
        for at, _, ranges in self._ranges:
            for chunk in stored.column(at).chunks:
                ranges.add(chunk)

    def complete(self, metrics: FileMetrics) -> None:
        """Adds the bounds to the metrics of the footer."""
        for _, column, ranges in self._ranges:
            lower, upper = ranges.bounds(column.mode)
            if lower is not None:
                metrics.lower_bounds[column.field_id] = lower
            if upper is not None:
                metrics.upper_bounds[column.field_id] = upper
