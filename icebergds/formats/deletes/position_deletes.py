"""Reads position delete files: the deleted rows of data files (spec: Position Delete Files)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icebergds.errors import CorruptFileError, InvalidDataError
from icebergds.expr.nodes import TRUE, BoundPredicate, Expr, Operation
from icebergds.formats.data_reader import ReadRequest, open_data_file
from icebergds.formats.deletes.positions import PositionCollector, Positions, PositionSet
from icebergds.formats.wrong_counts import Recorded
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile, FileFormat
from icebergds.spec.name_mapping import MappedField, NameMapping
from icebergds.spec.reserved import DELETE_FILE_PATH, DELETE_POS
from icebergds.spec.schema import Schema

# Both are required, but some writers declare them optional and may store nulls.
_SCHEMA = Schema((replace(DELETE_FILE_PATH, required=False), replace(DELETE_POS, required=False)))
NAMES_WITHOUT_IDS = NameMapping(
    tuple(MappedField((field.name,), field.field_id) for field in _SCHEMA.fields)
)
"""Some writers name the columns of position delete files but store no field ids."""
# Filters with more paths exclude hardly any row group.
_MOST_FILTERED_PATHS = 100


@dataclass(frozen=True, slots=True)
class PositionBatch:
    """Rows of a position delete file.

    Attributes:
        paths: distinct locations of data files.
        codes: for each row, the number of its location in `paths`.
        positions: none is negative.
    """

    paths: list[str]
    codes: npt.NDArray[np.int32]
    positions: Positions

    @classmethod
    def of(cls, paths: pa.Array, positions: Positions) -> PositionBatch:
        """Rows with these locations, in which there is no null.

        Raises:
            UnicodeDecodeError: a location is not UTF-8.
        """
        encoded = paths.dictionary_encode()
        return cls(encoded.dictionary.to_pylist(), encoded.indices.to_numpy(), positions)

    def by_path(self) -> Iterator[tuple[str, Positions]]:
        """The positions of each data file, in the order of the rows; each part is a copy."""
        if not self.paths:
            return
        codes, positions = self.codes, self.positions
        # Codes count up in the order of first appearance, so grouped rows have ascending codes.
        if (codes[1:] < codes[:-1]).any():
            order = codes.argsort(kind="stable")
            codes, positions = codes[order], positions[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        for path, part in zip(self.paths, np.split(positions, starts[1:]), strict=True):
            # A copy, so that the batch can be freed.
            yield path, part.copy()


def read_position_deletes(
    io: FileIO,
    location: str,
    file_format: FileFormat,
    *,
    paths: Collection[str] | None = None,
    recorded: Recorded | None = None,
    key_metadata: bytes | None = None,
) -> Mapping[str, PositionSet]:
    """Reads the positions in a delete file, by data file location.

    Arguments and errors are those of `collect_position_deletes`.

    Returns:
        An entry for each data file with at least one position.
    """
    collected = collect_position_deletes(
        io, location, file_format, paths=paths, recorded=recorded, key_metadata=key_metadata
    )
    return {path: positions.result() for path, positions in collected.items()}


def collect_position_deletes(
    io: FileIO,
    location: str,
    file_format: FileFormat,
    *,
    paths: Collection[str] | None = None,
    recorded: Recorded | None = None,
    key_metadata: bytes | None = None,
) -> dict[str, PositionCollector]:
    """Collects the positions in a delete file, by data file location.

    Memory grows with the result, not with the size of the file. Rows need not be sorted. A row with
    a null path or position deletes nothing.

    Args:
        location: of the delete file.
        paths: locations of the data files to return, exactly as in manifests; None for all. Parts
            of the file whose statistics exclude them are skipped.
        recorded: what the file's manifest says of it, to be compared.
        key_metadata: of the file, if it is encrypted.

    Returns:
        An entry for each data file with at least one position.

    Raises:
        CorruptFileError: the file is damaged, lacks a column, has other rows than recorded, or
            holds a negative position or a path that is not UTF-8.
        MissingFileError: the file does not exist.
    """
    collected: dict[str, PositionCollector] = {}
    batches = position_batches(
        io, location, file_format, paths=paths, recorded=recorded, key_metadata=key_metadata
    )
    for batch in batches:
        for path, positions in batch.by_path():
            if paths is None or path in paths:
                collected.setdefault(path, PositionCollector()).add(positions)
    return collected


def position_batches(
    io: FileIO,
    location: str,
    file_format: FileFormat,
    *,
    paths: Collection[str] | None = None,
    recorded: Recorded | None = None,
    key_metadata: bytes | None = None,
) -> Iterator[PositionBatch]:
    """Reads the rows of a delete file; with `paths`, rows of other data files may be among them.

    Arguments and errors are those of `collect_position_deletes`.
    """
    request = ReadRequest(_SCHEMA, row_filter=_filter(paths))
    try:
        with open_data_file(
            io,
            location,
            file_format,
            table_schema=_SCHEMA,
            name_mapping=NAMES_WITHOUT_IDS,
            recorded=recorded,
            key_metadata=key_metadata,
        ) as reader:
            _check_columns(reader.file_schema, location)
            for read in reader.batches(request):
                yield _position_batch(read.batch, location)
    except InvalidDataError as error:
        raise CorruptFileError(f"{location} is not a position delete file: {error}") from error


def positions_nbytes(deletes: Mapping[str, PositionSet]) -> int:
    """The approximate memory of a result of `read_position_deletes`, in bytes."""
    return sum(len(path) + positions.nbytes for path, positions in deletes.items())


def positions_by_path(paths: pa.Array, positions: Positions) -> Iterator[tuple[str, Positions]]:
    """Splits positions by path; each part keeps their order and is a copy.

    Args:
        paths: strings, without nulls.
        positions: one for each path.
    """
    return PositionBatch.of(paths, positions).by_path()


def only_data_path(delete_file: DataFile) -> str | None:
    """The only data file that a position delete file references, if its metadata proves it."""
    if delete_file.referenced_data_file is not None:
        return delete_file.referenced_data_file
    lower = delete_file.lower_bounds.get(DELETE_FILE_PATH.field_id)
    upper = delete_file.upper_bounds.get(DELETE_FILE_PATH.field_id)
    # A truncated upper bound is greater than the lower bound: equal bounds are exact.
    if lower is not None and lower == upper:
        with suppress(UnicodeDecodeError):
            return lower.decode()
    return None


def _check_columns(stored: Schema, location: str) -> None:
    found = {field.field_id for field in stored.fields}
    for field in _SCHEMA.fields:
        if field.field_id not in found:
            raise CorruptFileError(
                f"{location} is not a position delete file: it has no column {field.name!r} "
                f"(field id {field.field_id})"
            )


def _filter(paths: Collection[str] | None) -> Expr:
    if paths is None or len(paths) > _MOST_FILTERED_PATHS:
        return TRUE
    return BoundPredicate(
        Operation.IN, DELETE_FILE_PATH.field_id, DELETE_FILE_PATH.field_type, tuple(paths)
    )


def _position_batch(batch: pa.RecordBatch, location: str) -> PositionBatch:
    if any(column.null_count for column in batch.columns):
        batch = batch.drop_null()
    positions = batch.column(1).to_numpy()
    if len(positions) and positions.min() < 0:
        raise CorruptFileError(f"{location} holds the negative position {positions.min()}")
    try:
        return PositionBatch.of(batch.column(0), positions)
    except UnicodeDecodeError as error:
        raise CorruptFileError(f"{location} holds a path that is not UTF-8: {error}") from error
