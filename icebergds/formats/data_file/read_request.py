"""What is asked of a reader of data files, and what it gives back."""

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
    """Which columns to read, and which rows may be left out unread.

    Attributes:
        schema: the columns to read, in this order, nested ones possibly narrowed. Columns of
            reserved ids are read where the file stores them.
        constants: in-memory values of columns at any depth of structs, by field id, for files
            that lack them.
        row_filter: bound to the table's schema. Only whole parts of a file in which it selects no
            row are skipped: rows that it rejects come too.
        batch_size: greatest number of rows in a batch.
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
        num_rows: how many rows there are, also where no column is read.
    """

    batch: pa.RecordBatch
    first_position: int
    num_rows: int


class DataFileReader(Protocol):
    """An open data or delete file.

    `file_schema` holds the file's columns that have ids, from the file itself or as its columns
    were matched.
    """

    @property
    def file_schema(self) -> Schema: ...

    def batches(
        self, request: ReadRequest, start: int | None = None, length: int | None = None
    ) -> Iterator[PositionedBatch]:
        """The rows of a file, or of its bytes `start` to `start + length`, in the file's order.

        Ranges that together cover the file together yield each row once, wherever they are cut.

        Raises:
            CorruptFileError: the file is damaged, or stores a column as a type that is not the
                table's.
            InvalidDataError: a required column is absent or holds nulls; a value does not fit.
            UnsupportedFeatureError: a column is stored in a form that is not read.
        """
        ...
