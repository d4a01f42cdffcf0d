"""Says which rows may have the keys of a change by key, and how many bytes finding them reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from icebergds.encryption.stored_files import key_of_file
from icebergds.errors import IcebergError
from icebergds.expr.nodes import FALSE, TRUE, BoundPredicate, Expr, Operation, and_, or_
from icebergds.formats.arrow.types import in_memory_values
from icebergds.formats.data_reader import ReadRequest
from icebergds.formats.parquet.reader import ParquetReader
from icebergds.io.failures import storage_failures
from icebergds.scan.plan.files import PlannedFile
from icebergds.scan.plan.packed_files import PackedFiles
from icebergds.scan.read.deletes import read_keys
from icebergds.scan.read.metadata_columns import identity_constants
from icebergds.scan.read_plan import ReadPlan, as_optional
from icebergds.scan.tasks import EqualityDeleteGroup, delete_file_ref
from icebergds.spec.manifest import DataFile, FileFormat, ManifestEntry
from icebergds.spec.schema import Schema
from icebergds.spec.types import IcebergType, ScalarType, TypeId, is_scalar

# Of more keys, most row groups have one, unless they follow each other.
_MOST_KEYS = 1000
_MOST_KEY_FILES = 256
# To open more files takes longer than it can save.
_MOST_OPENED = 256
_OPENED_AT_ONCE = 8
# What a value takes in a file, in bytes. Texts, UUIDs and decimals take more than numbers.
_WIDTHS: dict[object, int] = {
    TypeId.BOOLEAN: 1,
    TypeId.INT: 4,
    TypeId.DATE: 4,
    TypeId.LONG: 8,
    TypeId.TIME: 8,
    TypeId.TIMESTAMP: 8,
    TypeId.TIMESTAMPTZ: 8,
    TypeId.TIMESTAMP_NS: 8,
    TypeId.TIMESTAMPTZ_NS: 8,
}
_WIDTH_OF_OTHERS = 16
_OF_ANY_LENGTH = (TypeId.STRING, TypeId.BINARY, TypeId.FIXED)


def filter_of_keys(plan: ReadPlan, keys: Sequence[ManifestEntry]) -> Expr:
    """Selects at least the rows that have one of some keys; all rows if there are many keys.

    Args:
        plan: reads the keys; the filter is bound to its `table_schema`.
        keys: equality deletes; of those of different key columns, all rows are selected.

    Raises:
        CorruptFileError, MissingFileError: a file is damaged or missing.
    """
    files = [entry.data_file for entry in keys]
    ids, schema = files[0].equality_ids, plan.table_schema
    is_few = len(files) <= _MOST_KEY_FILES and sum(f.record_count for f in files) <= _MOST_KEYS
    types = [_type_of(schema, field_id) for field_id in ids]
    if not is_few or None in types or any(file.equality_ids != ids for file in files):
        return TRUE
    refs = tuple(delete_file_ref(entry.data_file, entry.data_sequence_number) for entry in keys)
    stored = Schema(tuple(map(as_optional, schema.select(ids).fields)))
    batches = [columns for columns, _ in read_keys(plan, stored, EqualityDeleteGroup(ids, refs))]
    return and_(
        *(
            _one_of(field_id, field_type, [columns[at] for columns in batches])
            for at, (field_id, field_type) in enumerate(zip(ids, types, strict=True))
            if field_type is not None
        )
    )


def bytes_of_keys(files: PackedFiles, ids: Iterable[int], schema: Schema) -> int:
    """About how many bytes of key columns data files have.

    Args:
        ids: of the key columns.
    """
    fields = [schema.find_field(field_id) for field_id in ids]
    width = sum(_width(each.field_type) for each in fields if each is not None)
    entries = files.entries
    # Avro files are read whole.
    is_columnar = np.array([k.file_format is not FileFormat.AVRO for k in entries.kinds], np.bool_)
    of_keys = np.minimum(entries.record_count * width, entries.file_size_in_bytes)
    return int(
        np.where(is_columnar[entries.kind_numbers], of_keys, entries.file_size_in_bytes).sum()
    )


def have_any_length(ids: Iterable[int], schema: Schema) -> bool:
    """Whether values of key columns may take more bytes than `bytes_of_keys` takes them to."""
    types = (_type_of(schema, field_id) for field_id in ids)
    return any(kind is None or kind.type_id in _OF_ANY_LENGTH for kind in types)


def bytes_to_read(plan: ReadPlan, files: PackedFiles, ids: Sequence[int], row_filter: Expr) -> int:
    """How many bytes of key columns may have rows that match, as the footers of data files say.

    Args:
        ids: of the key columns.
        row_filter: of `filter_of_keys`.

    Returns:
        What `bytes_of_keys` says if there are many files.
    """
    known = bytes_of_keys(files, ids, plan.table_schema)
    if len(files) > _MOST_OPENED:
        return known
    keys = plan.table_schema.select(ids)

    def of_file(file: PlannedFile) -> int:
        data = file.entry.data_file
        try:
            if data.file_format is FileFormat.PARQUET:
                constants = identity_constants(plan.specs[data.spec_id], data.partition)
                return _bytes_of_parquet(plan, data, ReadRequest(keys, constants, row_filter))
        except IcebergError:
            # If it is read, that raises.
            pass
        return bytes_of_keys(PackedFiles.of([file]), ids, plan.table_schema)

    with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:
        return sum(pool.map(of_file, files))


def _bytes_of_parquet(plan: ReadPlan, data: DataFile, request: ReadRequest) -> int:
    io, path, size = plan.io, data.file_path, data.file_size_in_bytes
    with storage_failures("reading", path), io.open(path, size) as handle:
        reader = ParquetReader(
            handle,
            path,
            table_schema=plan.table_schema,
            name_mapping=plan.name_mapping,
            key=key_of_file(data.key_metadata, path),
        )
        return reader.bytes_to_read(request)


def _one_of(field_id: int, field_type: ScalarType, columns: Iterable[pa.Array]) -> Expr:
    """Selects the rows whose value in a column is in one of the arrays; null equals null."""
    values = {value for column in columns for value in in_memory_values(column)}
    is_null = BoundPredicate(Operation.IS_NULL, field_id, field_type)
    known = tuple(value for value in values if value is not None)
    found = BoundPredicate(Operation.IN, field_id, field_type, known) if known else FALSE
    return or_(is_null, found) if None in values else found


def _type_of(schema: Schema, field_id: int) -> ScalarType | None:
    field = schema.find_field(field_id)
    return field.field_type if field is not None and is_scalar(field.field_type) else None


def _width(kind: IcebergType) -> int:
    return _WIDTHS.get(getattr(kind, "type_id", None), _WIDTH_OF_OTHERS)
