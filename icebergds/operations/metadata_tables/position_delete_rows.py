"""Builds the rows of `position_deletes`, from position delete files and deletion vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from icebergds.formats.arrow.types import repeat, schema_to_arrow
from icebergds.formats.data_reader import ReadRequest, open_data_file
from icebergds.formats.deletes.existing_deletes import read_vector_of
from icebergds.formats.deletes.position_deletes import NAMES_WITHOUT_IDS
from icebergds.formats.deletes.positions import Positions
from icebergds.operations.metadata_tables.schemas import (
    CONTENT_OFFSET_OF_DELETES,
    CONTENT_SIZE_OF_DELETES,
    DELETE_FILE,
    PARTITION_OF_DELETES,
    SPEC_ID_OF_DELETES,
)
from icebergds.operations.metadata_tables.tasks import MetadataTablePlan
from icebergds.spec.manifest import DataFile
from icebergds.spec.reserved import DELETE_FILE_PATH, DELETE_POS, DELETE_ROW
from icebergds.spec.schema import Schema
from icebergds.spec.types import NestedField, StructType

_AT_A_TIME = 65_536
_STORED = (DELETE_FILE_PATH.field_id, DELETE_POS.field_id, DELETE_ROW.field_id)


def position_delete_rows(
    plan: MetadataTablePlan, file: DataFile, columns: Schema
) -> Iterator[pa.RecordBatch]:
    """The deleted positions of a file, with what its manifest says about it.

    Args:
        columns: the columns of the rows.

    Raises:
        MissingFileError: the file does not exist.
        CorruptFileError: it is damaged.
        InvalidMetadataError: the entry of a deletion vector lacks something.
    """
    stored = [field for field in columns.fields if field.field_id in _STORED]
    schema = schema_to_arrow(columns)
    constant = _constants(plan, file)
    for read in (_vector_rows if file.is_deletion_vector else _file_rows)(plan, file, stored):
        by_id = {field.field_id: i for i, field in enumerate(stored)}
        arrays = [
            read.column(by_id[field.field_id])
            if field.field_id in by_id
            else repeat(field.field_type, constant(field), read.num_rows)
            for field in columns.fields
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _file_rows(
    plan: MetadataTablePlan, file: DataFile, stored: list[NestedField]
) -> Iterator[pa.RecordBatch]:
    # If no stored column is shown, the path gives batches the length of the file.
    fields = stored or [DELETE_FILE_PATH]
    request = ReadRequest(Schema(tuple(replace(field, required=False) for field in fields)))
    with open_data_file(
        plan.state.io,
        file.file_path,
        file.file_format,
        table_schema=request.schema,
        name_mapping=NAMES_WITHOUT_IDS,
        key_metadata=file.key_metadata,
    ) as reader:
        for read in reader.batches(request):
            yield read.batch


def _vector_rows(
    plan: MetadataTablePlan, file: DataFile, stored: list[NestedField]
) -> Iterator[pa.RecordBatch]:
    found = read_vector_of(plan.state.io, file)
    for some in found.parts(_AT_A_TIME):
        arrays = [_of_vector(field, file, some) for field in stored]
        yield (
            pa.RecordBatch.from_arrays(arrays, [field.name for field in stored])
            if arrays
            else pa.RecordBatch.from_arrays([pa.array(some)], ["pos"])
        )


def _of_vector(field: NestedField, file: DataFile, positions: Positions) -> pa.Array:
    if field.field_id == DELETE_POS.field_id:
        return pa.array(positions, pa.int64())
    value = file.referenced_data_file if field.field_id == DELETE_FILE_PATH.field_id else None
    return repeat(field.field_type, value, len(positions))


def _constants(plan: MetadataTablePlan, file: DataFile) -> Callable[[NestedField], Any]:
    """Finds the value that a field of the manifest has for all rows of a file."""
    spec = plan.state.metadata.specs_by_id.get(file.spec_id)
    parts = () if spec is None else spec.fields
    by_id = {part.field_id: value for part, value in zip(parts, file.partition, strict=False)}

    def constant(field: NestedField) -> Any:
        match field.field_id:
            case SPEC_ID_OF_DELETES.field_id:
                return file.spec_id
            case DELETE_FILE.field_id:
                return file.file_path
            case CONTENT_OFFSET_OF_DELETES.field_id:
                return file.content_offset
            case CONTENT_SIZE_OF_DELETES.field_id:
                return file.content_size_in_bytes
            case PARTITION_OF_DELETES.field_id:
                assert isinstance(field.field_type, StructType), "partition is a struct"
                own_ids = (plan.table.partition_ids[f.field_id] for f in field.field_type.fields)
                return tuple(by_id.get(own_id) for own_id in own_ids)
            case _:
                raise AssertionError(f"{field.name} is stored")

    return constant
