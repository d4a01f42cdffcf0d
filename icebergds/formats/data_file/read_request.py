"""Defines the interface of data file readers: the request, the reader and its batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from icebergds.expr.nodes import TRUE, Expr
from icebergds.spec.schema import Schema

DEFAULT_BATCH_SIZE = 65_536


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Which columns to read, and which rows may be skipped.

    Attributes:
        schema: the columns to read, in this order; nested ones may be narrowed. Columns with
            reserved ids are read if the file stores them.
        constants: in-memory values of columns at any depth of structs, by field id, used if the
            file lacks the column.
        row_filter: bound to the table's schema. It only skips whole parts of a file in which no row
            matches: rows that do not match are returned too.
        batch_size: maximum number of rows in a batch.
    """

    schema: Schema
    constants: Mapping[int, Any] = field(default_factory=dict)
    row_filter: Expr = TRUE
    batch_size: int = DEFAULT_BATCH_SIZE


@dataclass(frozen=True, slots=True)
class PositionedBatch:
    """Consecutive rows of a file.

    Attributes:
        batch: the rows, of the Arrow schema `schema_to_arrow(request.schema)`.
        first_position: ordinal in the file of the first row.
        num_rows: number of rows, also if no column is read.
    """

    batch: pa.RecordBatch
    first_position: int
    num_rows: int


class DataFileReader(Protocol):
    """An open data or delete file.

    `file_schema` holds the file's columns with field ids, stored in the file or assigned by name or
    position. `num_rows` is the number of rows of the whole file; None if it is not known yet: Avro
    files do not store it, so it is known when the last row was read.
    """

    @property
    def file_schema(self) -> Schema: ...

    @property
    def num_rows(self) -> int | None: ...

    def batches(
        self, request: ReadRequest, start: int | None = None, length: int | None = None
    ) -> Iterator[PositionedBatch]:
        """The rows of a file, or of its bytes `start` to `start + length`, in the file's order.

        Adjacent ranges that cover the file yield each row exactly once, wherever they are cut.

        Raises:
            CorruptFileError: the file is damaged, or a column's stored type cannot be read as the
                table's.
            InvalidDataError: a required column is missing or holds nulls; a value does not fit.
            UnsupportedFeatureError: a column is stored in a form that is not supported.
        """
        ...
