"""Position delete files: the deleted rows of data files (spec: Position Delete Files)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import pyarrow as pa

from icebergds.errors import CorruptFileError, InvalidDataError
from icebergds.expr.nodes import TRUE, BoundPredicate, Expr, Operation
from icebergds.formats.data_reader import ReadRequest, open_data_file
from icebergds.formats.positions import Positions, PositionSet
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import FileFormat
from icebergds.spec.name_mapping import MappedField, NameMapping
from icebergds.spec.reserved import DELETE_FILE_PATH, DELETE_POS
from icebergds.spec.schema import Schema

__all__ = ["PositionSet", "positions_nbytes", "read_position_deletes"]

_SCHEMA = Schema((DELETE_FILE_PATH, DELETE_POS))
# Some writers give the columns names, but no ids.
_NAMES = NameMapping(tuple(MappedField((field.name,), field.field_id) for field in _SCHEMA.fields))
# More positions of one data file are packed, so that memory stays near that of the result.
_PACKED_AT = 1 << 20
# Longer lists of paths do not tell row groups apart.
_MOST_FILTERED_PATHS = 100


def read_position_deletes(
    io: FileIO,
    location: str,
    file_format: FileFormat,
    *,
    paths: Collection[str] | None = None,
) -> Mapping[str, PositionSet]:
    """The positions in a delete file, by the location of the data file.

    Memory follows the result, not the size of the file. Rows need not be sorted.

    Args:
        location: of the delete file.
        paths: data files that are wanted, exactly as manifests name them; None for all. Parts of
            the file whose statistics exclude them are not read.

    Returns:
        An entry for each data file of which there is at least one position.

    Raises:
        CorruptFileError: the file is damaged, lacks a column, or holds a null, a negative position
            or a path that is not UTF-8.
        MissingFileError: there is no such file.
    """
    collected: dict[str, _Collected] = {}
    request = ReadRequest(_SCHEMA, row_filter=_filter(paths))
    try:
        with open_data_file(
            io, location, file_format, table_schema=_SCHEMA, name_mapping=_NAMES
        ) as reader:
            for read in reader.batches(request):
                for path, positions in _by_path(read.batch, paths, location):
                    collected.setdefault(path, _Collected()).add(positions)
    except InvalidDataError as error:
        raise CorruptFileError(f"{location} is no position delete file: {error}") from error
    return {path: positions.result() for path, positions in collected.items()}


def positions_nbytes(deletes: Mapping[str, PositionSet]) -> int:
    """Memory that a result of `read_position_deletes` holds, about, in bytes."""
    return sum(len(path) + positions.nbytes for path, positions in deletes.items())


class _Collected:
    """Positions of one data file, as they come."""

    __slots__ = ("_packed", "_pending", "_pending_count")

    def __init__(self) -> None:
        self._packed: list[PositionSet] = []
        self._pending: list[Positions] = []
        self._pending_count = 0

    def add(self, positions: Positions) -> None:
        self._pending.append(positions)
        self._pending_count += len(positions)
        if self._pending_count >= _PACKED_AT:
            self._pack()

    def result(self) -> PositionSet:
        self._pack()
        return PositionSet.union(self._packed)

    def _pack(self) -> None:
        if self._pending:
            self._packed.append(PositionSet.of(np.concatenate(self._pending)))
            self._pending, self._pending_count = [], 0


def _filter(paths: Collection[str] | None) -> Expr:
    if paths is None or len(paths) > _MOST_FILTERED_PATHS:
        return TRUE
    return BoundPredicate(
        Operation.IN, DELETE_FILE_PATH.field_id, DELETE_FILE_PATH.field_type, tuple(paths)
    )


def _by_path(
    batch: pa.RecordBatch, paths: Collection[str] | None, location: str
) -> Iterator[tuple[str, Positions]]:
    """The positions of a batch, apart for each wanted data file."""
    if not batch.num_rows:
        return
    positions = batch.column(1).to_numpy()
    if positions.min() < 0:
        raise CorruptFileError(f"{location} holds the negative position {positions.min()}")
    encoded = batch.column(0).dictionary_encode()
    codes = encoded.indices.to_numpy()
    # Codes count up in the order of first appearance, so grouped rows have ascending codes.
    if (codes[1:] < codes[:-1]).any():
        order = codes.argsort(kind="stable")
        codes, positions = codes[order], positions[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    try:
        named = encoded.dictionary.to_pylist()
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"{location} holds a path that is not UTF-8: {error}") from error
    for path, part in zip(named, np.split(positions, starts[1:]), strict=True):
        if paths is None or path in paths:
            # A copy, so that the batch can go.
            yield path, part.copy()
