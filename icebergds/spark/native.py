"""Reads data files with Spark's own Parquet reader, which matches columns by field id.

Columns are read under names that no file has, and renamed afterwards. Spark pushes filters to files
by name: under the real names, a filter could apply to a column that has since been dropped or
renamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession, functions as f, types as spark_types

from icebergds.formats.arrow.types import FIELD_ID
from icebergds.formats.parquet.footer import read_footer
from icebergds.formats.parquet.open import open_parquet
from icebergds.io.failures import storage_failures
from icebergds.io.fileio import FileIO
from icebergds.scan.plan.native import NATIVE_PREFIX
from icebergds.scan.read_plan import ReadPlan
from icebergds.spark.types import spark_type
from icebergds.spec.manifest import DataFile
from icebergds.spec.reserved import FILE_PATH, MAX_TABLE_FIELD_ID, POS
from icebergds.spec.schema import Schema
from icebergds.spec.types import IcebergType, ListType, MapType, NestedField, StructType, is_scalar

NATIVE_SCANS = "spark.icebergpy.native-scans"
READ_BY_ID = "spark.sql.parquet.fieldId.read.enabled"
_IGNORE_MISSING_IDS = "spark.sql.parquet.fieldId.read.ignoreMissing"

# Reserved by the specification but not used, so no file has it.
_NO_FIELD_ID = MAX_TABLE_FIELD_ID + 1
# Some writers rename columns like this, so such a name may belong to another column.
_REPLACED = re.compile(r"^_|_x", re.ASCII)
_READ_OPTIONS = {
    # Paths are not patterns, and a directory such as `day=1` is not a column.
    "__globPaths__": "false",
    "recursiveFileLookup": "true",
    # A session may be set to skip missing or corrupt files, which would lose rows.
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
    # Iceberg dates and timestamps use the proleptic Gregorian calendar.
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}


def enable_native_scans(spark: SparkSession) -> None:
    """Enables native scans in a session."""
    spark.conf.set(READ_BY_ID, "true")
    spark.conf.set(NATIVE_SCANS, "true")


def has_native_scans(spark: SparkSession) -> bool:
    """Whether scans of a session are native where they can be."""
    return (
        spark.conf.get(NATIVE_SCANS, "false") == "true"
        and spark.conf.get(READ_BY_ID, "false") == "true"
        and spark.conf.get(_IGNORE_MISSING_IDS, "false") == "false"
    )


def native_frame(
    spark: SparkSession, plan: ReadPlan, files: Sequence[DataFile], history: Iterable[Schema]
) -> DataFrame | None:
    """Reads files with Spark's own reader; the columns are those of the plan, all nullable.

    Args:
        files: files that `scan.plan.native` allows.
        history: all schemas of the table.

    Returns:
        None if there are no files, or they cannot be read by field id.
    """
    if not files:
        return None
    probe = _probe(plan.io, files[0].file_path, _unambiguous(plan.table_schema, history))
    if probe is None:
        return None
    stored = [_stored_field(field) for field in plan.columns.fields if _place(field) is None]
    paths = [_address(plan.io.resolve(file.file_path)) for file in files]
    schema = spark_types.StructType([*stored, probe])
    rows = spark.read.schema(schema).options(**_READ_OPTIONS).parquet(*paths)
    message = (
        f"{READ_BY_ID} must be true while native scans run: without it Spark would not find the "
        "columns of this table. Set it to true, or re-create the DataFrame without native scans"
    )
    by_id = f.assert_true(f.col(_quoted(probe.name)).isNull(), message).isNull()
    return rows.where(by_id).select(*map(_output, plan.columns.fields))


def _probe(
    io: FileIO, location: str, fields: Mapping[tuple[int, str], NestedField]
) -> spark_types.StructField | None:
    """A column that Spark finds only if it matches columns by name instead of by field id.

    One without nulls if possible, so that the first row shows it.
    """
    with storage_failures("reading", location), io.open(location) as handle:
        footer = read_footer(handle, location)
        with open_parquet(handle, footer) as file:
            stored = file.schema_arrow
    nulls = _null_counts(footer)
    candidates = []
    for column in stored:
        field_id = (column.metadata or {}).get(FIELD_ID)
        field = None if field_id is None else fields.get((int(field_id), column.name))
        if field is not None:
            candidates.append((nulls.get(column.name) != 0, column.name, field))
    if not candidates:
        return None
    _, name, field = min(candidates, key=lambda candidate: candidate[0])
    return _identified(name, spark_type(field.field_type), _NO_FIELD_ID)


def _unambiguous(
    schema: Schema, history: Iterable[Schema]
) -> Mapping[tuple[int, str], NestedField]:
    """Columns of a schema by id and name, if no column of another type ever had the name.

    Spark takes the type of a stored column from a requested column of the same name, whatever
    their ids, so no file may have a column of another type under the name of the probe. Empty if
    schemas were removed, because files may have been written with them.
    """
    history = tuple(history)
    if {known.schema_id for known in history} != set(range(len(history))):
        return {}
    found: dict[tuple[int, str], NestedField] = {}
    ids: dict[str, set[int]] = {}
    types: dict[str, set[str]] = {}
    for known in history:
        for field in known.fields:
            name = field.name.lower()
            ids.setdefault(name, set()).add(field.field_id)
            types.setdefault(name, set()).add(str(field.field_type))
            current = schema.fields_by_id.get(field.field_id)
            if current is not None and is_scalar(current.field_type):
                found[field.field_id, field.name] = current
    return {
        (field_id, name): field
        for (field_id, name), field in found.items()
        if len(ids[name.lower()]) == 1 or len(types[name.lower()]) == 1
        if not _REPLACED.search(name)
    }


def _null_counts(footer: pq.FileMetaData) -> Mapping[str, int | None]:
    if not footer.num_row_groups:
        return {}
    group = footer.row_group(0)
    columns = (group.column(index) for index in range(group.num_columns))
    return {
        column.path_in_schema: None if column.statistics is None else column.statistics.null_count
        for column in columns
    }


def _stored_field(field: NestedField) -> spark_types.StructField:
    stored = _stored_type(field.field_type)
    return _identified(f"{NATIVE_PREFIX}{field.field_id}", stored, field.field_id)


def _stored_type(field_type: IcebergType) -> Any:
    """The Spark type, with struct fields under names that no file has."""
    match field_type:
        case StructType(fields=fields):
            return spark_types.StructType(list(map(_stored_field, fields)))
        case ListType():
            return spark_types.ArrayType(_stored_type(field_type.element_type))
        case MapType():
            return spark_types.MapType(
                _stored_type(field_type.key_type), _stored_type(field_type.value_type)
            )
        case _:
            return spark_type(field_type)


def _place(field: NestedField) -> str | None:
    """Spark's metadata column for `_file` or `_pos`; None for other columns."""
    match field.field_id:
        case FILE_PATH.field_id:
            return "_metadata.file_path"
        case POS.field_id:
            return "_metadata.row_index"
        case _:
            return None


def _output(field: NestedField) -> Column:
    place = _place(field)
    if place is not None:
        return f.col(place).alias(field.name)
    column = f.col(_quoted(f"{NATIVE_PREFIX}{field.field_id}"))
    if not is_scalar(field.field_type):
        column = column.cast(_nullable(spark_type(field.field_type)))
    # Without explicit metadata the column would keep the field id.
    return column.alias(field.name, metadata={"comment": field.doc} if field.doc else {})


def _nullable(data_type: spark_types.DataType) -> spark_types.DataType:
    """The type with nulls allowed at every level, as Spark's reader returns it."""
    match data_type:
        case spark_types.StructType(fields=fields):
            return spark_types.StructType(
                [
                    spark_types.StructField(x.name, _nullable(x.dataType), True, x.metadata)
                    for x in fields
                ]
            )
        case spark_types.ArrayType():
            return spark_types.ArrayType(_nullable(data_type.elementType))
        case spark_types.MapType():
            return spark_types.MapType(_nullable(data_type.keyType), _nullable(data_type.valueType))
        case _:
            return data_type


def _identified(
    name: str, data_type: spark_types.DataType, field_id: int
) -> spark_types.StructField:
    return spark_types.StructField(name, data_type, True, {"parquet.field.id": field_id})


def _address(path: str) -> str:
    """A path for Spark, independent of its default file system."""
    return f"file://{path}" if path.startswith("/") else path


def native_name(path: str) -> str:
    """How Spark's `_metadata.file_path` names a file that `is_plain_path`."""
    place = f"file:{path}" if path.startswith("/") else path
    return quote(place, safe="/:=+@,~")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
