"""Defines the columns of the metadata tables: names, types and field ids are Java Iceberg's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from icebergds.errors import UnsupportedFeatureError
from icebergds.formats.manifests import layout as ids
from icebergds.formats.manifests.bound_values import bound_type
from icebergds.operations.metadata_tables.kinds import MetadataTable
from icebergds.scan.projection import unified_partition_type
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.reserved import DELETE_FILE_PATH, DELETE_POS, DELETE_ROW
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    INT,
    LONG,
    STRING,
    TIMESTAMPTZ,
    UNKNOWN,
    VARIANT,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    is_scalar,
)

READABLE_METRICS = "readable_metrics"
METRICS = (
    "column_size",
    "value_count",
    "null_value_count",
    "nan_value_count",
    "lower_bound",
    "upper_bound",
)
"""The fields of each column of `readable_metrics`, in the order of `STATISTICS`."""

PARTITION_OF_DELETES = NestedField(2147483642, "partition", StructType(()), required=True)
SPEC_ID_OF_DELETES = NestedField(2147483643, "spec_id", INT, required=True)
DELETE_FILE = NestedField(2147483646, "delete_file_path", STRING, required=True)
CONTENT_OFFSET_OF_DELETES = NestedField(2147483639, "content_offset", LONG)
CONTENT_SIZE_OF_DELETES = NestedField(2147483638, "content_size_in_bytes", LONG)
_CONTENT_OF_VECTORS = (CONTENT_OFFSET_OF_DELETES, CONTENT_SIZE_OF_DELETES)

PARTITION_KEY = NestedField(12, "partition_key", BINARY, required=True)
"""In parts of `partitions`: the same in all parts of a partition, and in those alone."""
PART = NestedField(13, "part", INT, required=True)
"""In parts of `partitions`: the number of the part."""


@dataclass(frozen=True, slots=True)
class ColumnMetric:
    """What a field of `readable_metrics` shows.

    Attributes:
        column_id: a column of the table.
        metric: the position in `METRICS`.
        column_type: the column's type.
    """

    column_id: int
    metric: int
    column_type: IcebergType


@dataclass(frozen=True)
class MetadataTableSchema:
    """The columns of a metadata table.

    Attributes:
        metrics: what the innermost fields of `readable_metrics` show, by field id.
        partition_ids: the ids of the table's partition fields, by those of the fields that show
            them.
    """

    schema: Schema
    metrics: Mapping[int, ColumnMetric]
    partition_ids: Mapping[int, int]


def metadata_table_schema(kind: MetadataTable, metadata: TableMetadata) -> MetadataTableSchema:
    """The columns of a metadata table, which may depend on the table's columns and partition specs.

    Raises:
        InvalidMetadataError: partition fields of different types share an id.
        UnsupportedFeatureError: partitions have a transform that is not known.
    """
    if kind in _FIXED:
        return MetadataTableSchema(Schema(_FIXED[kind]), {}, {})
    partition = unified_partition_type(metadata, active_only=True)
    own_ids = {field.field_id: field.field_id for field in partition.fields}
    if kind.lists_files:
        return _with_readable_metrics(metadata, _file_fields(partition), own_ids)
    if kind.lists_entries:
        file = NestedField(
            ids.DATA_FILE, "data_file", StructType(_file_fields(partition)), required=True
        )
        return _with_readable_metrics(metadata, (*_ENTRY, file), own_ids)
    if kind is MetadataTable.PARTITIONS:
        refuse_unknown_values(metadata, partition)
        return MetadataTableSchema(Schema(_partition_fields(partition)), {}, own_ids)
    return _position_deletes(metadata, partition)


def partition_parts_schema(metadata: TableMetadata) -> MetadataTableSchema:
    """The columns of `partitions` in parts: those of `partitions`, and `PARTITION_KEY` and `PART`.

    Errors are those of `metadata_table_schema`.
    """
    whole = metadata_table_schema(MetadataTable.PARTITIONS, metadata)
    return replace(whole, schema=Schema((*whole.schema.fields, PARTITION_KEY, PART)))


def refuse_unknown_values(metadata: TableMetadata, partition: StructType) -> None:
    """Raises UnsupportedFeatureError if a partition field's values have no known type."""
    for field in partition.fields:
        if field.field_type == UNKNOWN:
            raise UnsupportedFeatureError(
                f"table {metadata.location}: its partitions cannot be told apart, because "
                f"partition field {field.name!r} has a transform that is not known, or a column "
                "without a type; read the metadata table files, or upgrade icebergds"
            )


def _partition_fields(partition: StructType) -> tuple[NestedField, ...]:
    if not partition.fields:
        return _PARTITION_COUNTS
    of_partition = NestedField(1, "partition", partition, required=True)
    return (of_partition, NestedField(4, "spec_id", INT, required=True), *_PARTITION_COUNTS)


def _position_deletes(metadata: TableMetadata, partition: StructType) -> MetadataTableSchema:
    used = {field_id for schema in metadata.schemas for field_id in schema.fields_by_id}
    free = (field_id for field_id in range(1, 2**31) if field_id not in used)
    # Ids of partition fields may be those of the columns in `row`.
    fields = tuple(replace(field, field_id=next(free)) for field in partition.fields)
    of_partition = replace(PARTITION_OF_DELETES, field_type=StructType(fields))
    shown = (
        DELETE_FILE_PATH,
        DELETE_POS,
        replace(DELETE_ROW, field_type=metadata.schema().as_struct()),
        *((of_partition,) if fields else ()),
        SPEC_ID_OF_DELETES,
        DELETE_FILE,
        *_CONTENT_OF_VECTORS[: 2 if metadata.format_version >= 3 else 0],
    )
    own_ids = {
        field.field_id: part.field_id for field, part in zip(fields, partition.fields, strict=True)
    }
    return MetadataTableSchema(Schema(shown), {}, own_ids)


def _with_readable_metrics(
    metadata: TableMetadata, fields: tuple[NestedField, ...], partition_ids: Mapping[int, int]
) -> MetadataTableSchema:
    next_id = Schema(fields).highest_field_id + 1
    columns: list[NestedField] = []
    metrics: dict[int, ColumnMetric] = {}
    for column_id, name, column_type in _scalar_columns(metadata.schema()):
        of_column = []
        for metric, metric_name in enumerate(METRICS):
            metric_type = bound_type(column_type) if metric_name.endswith("bound") else LONG
            of_column.append(NestedField(next_id + 1 + metric, metric_name, metric_type))
            metrics[next_id + 1 + metric] = ColumnMetric(column_id, metric, column_type)
        columns.append(
            NestedField(next_id, name, StructType(tuple(of_column)), doc=f"Metrics of {name}")
        )
        next_id += len(METRICS) + 1
    if not columns:
        return MetadataTableSchema(Schema(fields), {}, partition_ids)
    by_name = tuple(sorted(columns, key=lambda field: field.name))
    readable = NestedField(
        next_id, READABLE_METRICS, StructType(by_name), doc="Sizes, counts and bounds of columns"
    )
    return MetadataTableSchema(Schema((*fields, readable)), metrics, partition_ids)


def _scalar_columns(schema: Schema) -> Iterable[tuple[int, str, IcebergType]]:
    for field_id, field in schema.fields_by_id.items():
        if is_scalar(field.field_type) and field.field_type != VARIANT:
            name = schema.find_name(field_id)
            assert name is not None, "the schema has its fields"
            yield field_id, name, field.field_type


def _file_fields(partition: StructType) -> tuple[NestedField, ...]:
    """The fields of a data or delete file, without its partition if no spec has fields."""
    if not partition.fields:
        return _FILE
    at = next(i for i, field in enumerate(_FILE) if field.field_id == ids.RECORD_COUNT)
    of_partition = NestedField(
        ids.PARTITION, "partition", partition, required=True, doc="Values of the partition fields"
    )
    return (*_FILE[:at], of_partition, *_FILE[at:])


def _map(key_id: int, value_type: IcebergType) -> MapType:
    return MapType(key_id, INT, key_id + 1, value_type, value_required=True)


def _required(*names: tuple[int, str, IcebergType]) -> Sequence[NestedField]:
    return [NestedField(i, name, field_type, required=True) for i, name, field_type in names]


_FILE = (
    NestedField(ids.CONTENT, "content", INT, doc="0: data, 1: position, 2: equality deletes"),
    NestedField(ids.FILE_PATH, "file_path", STRING, required=True, doc="Location of the file"),
    NestedField(ids.FILE_FORMAT, "file_format", STRING, required=True),
    NestedField(141, "spec_id", INT, doc="Partition spec of the file"),
    NestedField(ids.RECORD_COUNT, "record_count", LONG, required=True, doc="Rows in the file"),
    NestedField(
        ids.FILE_SIZE_IN_BYTES, "file_size_in_bytes", LONG, required=True, doc="Size of the file"
    ),
    NestedField(ids.COLUMN_SIZES, "column_sizes", _map(117, LONG), doc="Bytes by column id"),
    NestedField(
        ids.VALUE_COUNTS, "value_counts", _map(119, LONG), doc="Values, null or not, by column id"
    ),
    NestedField(
        ids.NULL_VALUE_COUNTS, "null_value_counts", _map(121, LONG), doc="Nulls by column id"
    ),
    NestedField(
        ids.NAN_VALUE_COUNTS, "nan_value_counts", _map(138, LONG), doc="NaN values by column id"
    ),
    NestedField(
        ids.LOWER_BOUNDS, "lower_bounds", _map(126, BINARY), doc="Lower bounds by column id"
    ),
    NestedField(
        ids.UPPER_BOUNDS, "upper_bounds", _map(129, BINARY), doc="Upper bounds by column id"
    ),
    NestedField(ids.KEY_METADATA, "key_metadata", BINARY, doc="About the encryption key"),
    NestedField(
        ids.SPLIT_OFFSETS,
        "split_offsets",
        ListType(133, LONG, element_required=True),
        doc="Where the file can be split",
    ),
    NestedField(
        ids.EQUALITY_IDS,
        "equality_ids",
        ListType(136, INT, element_required=True),
        doc="Columns that equality deletes compare",
    ),
    NestedField(ids.SORT_ORDER_ID, "sort_order_id", INT, doc="Sort order of the rows"),
    NestedField(ids.FIRST_ROW_ID, "first_row_id", LONG, doc="Id of the first row"),
    NestedField(
        ids.REFERENCED_DATA_FILE,
        "referenced_data_file",
        STRING,
        doc="The data file that all deletes are for",
    ),
    NestedField(ids.CONTENT_OFFSET, "content_offset", LONG, doc="Where the content begins"),
    NestedField(
        ids.CONTENT_SIZE_IN_BYTES, "content_size_in_bytes", LONG, doc="Length of the content"
    ),
)
_ENTRY = (
    NestedField(ids.STATUS, "status", INT, required=True, doc="0: existing, 1: added, 2: deleted"),
    NestedField(ids.SNAPSHOT_ID, "snapshot_id", LONG),
    NestedField(ids.SEQUENCE_NUMBER, "sequence_number", LONG),
    NestedField(ids.FILE_SEQUENCE_NUMBER, "file_sequence_number", LONG),
)
_PARTITION_COUNTS = (
    NestedField(2, "record_count", LONG, required=True, doc="Rows in data files"),
    NestedField(3, "file_count", INT, required=True, doc="Data files"),
    NestedField(
        11, "total_data_file_size_in_bytes", LONG, required=True, doc="Size of the data files"
    ),
    NestedField(
        5, "position_delete_record_count", LONG, required=True, doc="Rows in position delete files"
    ),
    NestedField(6, "position_delete_file_count", INT, required=True, doc="Position delete files"),
    NestedField(
        7, "equality_delete_record_count", LONG, required=True, doc="Rows in equality delete files"
    ),
    NestedField(8, "equality_delete_file_count", INT, required=True, doc="Equality delete files"),
    NestedField(9, "last_updated_at", TIMESTAMPTZ, doc="When a file of it was last added"),
    NestedField(10, "last_updated_snapshot_id", LONG, doc="The snapshot that added this file"),
)
_MANIFEST = (
    *_required(
        (14, "content", INT),
        (1, "path", STRING),
        (2, "length", LONG),
        (3, "partition_spec_id", INT),
    ),
    # Old manifest lists may lack them.
    NestedField(4, "added_snapshot_id", LONG),
    NestedField(5, "added_data_files_count", INT),
    NestedField(6, "existing_data_files_count", INT),
    NestedField(7, "deleted_data_files_count", INT),
    NestedField(15, "added_delete_files_count", INT),
    NestedField(16, "existing_delete_files_count", INT),
    NestedField(17, "deleted_delete_files_count", INT),
    NestedField(
        8,
        "partition_summaries",
        ListType(
            9,
            StructType(
                (
                    NestedField(10, "contains_null", BOOLEAN, required=True),
                    NestedField(11, "contains_nan", BOOLEAN),
                    NestedField(12, "lower_bound", STRING),
                    NestedField(13, "upper_bound", STRING),
                )
            ),
            element_required=True,
        ),
        required=True,
    ),
)
_FIXED: Mapping[MetadataTable, tuple[NestedField, ...]] = {
    MetadataTable.HISTORY: (
        NestedField(1, "made_current_at", TIMESTAMPTZ, required=True),
        NestedField(2, "snapshot_id", LONG, required=True),
        NestedField(3, "parent_id", LONG),
        NestedField(4, "is_current_ancestor", BOOLEAN, required=True),
    ),
    MetadataTable.METADATA_LOG_ENTRIES: (
        NestedField(1, "timestamp", TIMESTAMPTZ, required=True),
        NestedField(2, "file", STRING, required=True),
        NestedField(3, "latest_snapshot_id", LONG),
        NestedField(4, "latest_schema_id", INT),
        NestedField(5, "latest_sequence_number", LONG),
    ),
    MetadataTable.SNAPSHOTS: (
        NestedField(1, "committed_at", TIMESTAMPTZ, required=True),
        NestedField(2, "snapshot_id", LONG, required=True),
        NestedField(3, "parent_id", LONG),
        NestedField(4, "operation", STRING),
        NestedField(5, "manifest_list", STRING),
        NestedField(6, "summary", MapType(7, STRING, 8, STRING, value_required=True)),
    ),
    MetadataTable.REFS: (
        NestedField(1, "name", STRING, required=True),
        NestedField(2, "type", STRING, required=True),
        NestedField(3, "snapshot_id", LONG, required=True),
        NestedField(4, "max_reference_age_in_ms", LONG),
        NestedField(5, "min_snapshots_to_keep", INT),
        NestedField(6, "max_snapshot_age_in_ms", LONG),
    ),
    MetadataTable.MANIFESTS: _MANIFEST,
    MetadataTable.ALL_MANIFESTS: (
        *_MANIFEST,
        NestedField(18, "reference_snapshot_id", LONG, required=True),
        NestedField(19, "key_metadata", BINARY),
    ),
}
