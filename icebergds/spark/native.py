"""Reads data files with Spark's own Parquet reader.

Classic Spark matches columns by field id: the relation belongs to a session of its own in which
this is switched on, so that no other read of the user's session changes. Spark Connect has no such
session, so columns are matched by name, if the table's schemas show that every file has the current
names. Files of tables with a name mapping may have no ids: their footers show how columns are
matched.

Spark also pushes filters to files by name. If a file may have a column under another column's name,
it is read under a name that no file has, so that no filter on it can apply to the other one. The
same is done for floating-point numbers, because the bounds in files leave NaN out, and for
decimal numbers that files store with a smaller precision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, functions as f, types as spark_types

from icebergds.commit.operations import TableState
from icebergds.errors import IcebergError
from icebergds.formats.deletes.positions import PositionSet
from icebergds.io.fileio import FileIO
from icebergds.io.threads import waiting_threads
from icebergds.scan.plan.native_columns import NATIVE_PREFIX, is_native_column
from icebergds.scan.plan.stored_names import constant_names, own_names, widened_decimals
from icebergds.scan.read_plan import ReadPlan
from icebergds.spark.file_addresses import (
    address_of,
    hadoop_options,
    listed_name,
    row_name,
    storage_obstacle,
)
from icebergds.spark.jvm import Title
from icebergds.spark.kept_relations import kept_output
from icebergds.spark.native_deletes import listed_sizes, without_deleted
from icebergds.spark.native_failures import know_native_files
from icebergds.spark.parquet_relation import (
    READ_OPTIONS,
    V1_SOURCES,
    log_refusal,
    parquet_by_id,
    parquet_with_options,
)
from icebergds.spark.session import is_connect, session_setting
from icebergds.spark.sql_constants import constant_text
from icebergds.spark.stored_files import StoredNames, file_has_ids, is_named, some_of
from icebergds.spark.types import all_nullable, spark_schema, spark_type
from icebergds.spec.manifest import DataFile
from icebergds.spec.reserved import FILE_PATH, POS
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DOUBLE,
    FLOAT,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    is_scalar,
    walk,
)

_FLOATS = (FLOAT, DOUBLE)

_MOST_OTHERS = 100

NATIVE_SCANS = "spark.icebergpy.native-scans"


def has_native_scans(spark: SparkSession, state: TableState) -> bool:
    """Whether a session reads a table with Spark's own reader as far as possible."""
    if spark.conf.get(NATIVE_SCANS, "false") != "true":
        return False
    return storage_obstacle(spark, state) is None


def native_frame(
    spark: SparkSession,
    plan: ReadPlan,
    files: Sequence[DataFile],
    history: Sequence[Schema],
    *,
    names: StoredNames | None,
    lacked: Mapping[int, Any],
    others: Sequence[NestedField] = (),
    deleted: Mapping[str, PositionSet] | None = None,
    by_position: bool = False,
    title: Title | None = None,
) -> DataFrame | None:
    """Reads files with Spark's own reader; the columns are those of the plan, all nullable.

    Args:
        files: files that `scan.plan.native` allows.
        history: all schemas of the table.
        names: of the columns in these files; None for those of the table, or if files have ids.
        lacked: the values of columns, by id, in files that lack them.
        others: columns of the files that are not in the plan. Spark does not read them, but sees
            from them which part of the files it reads: a small part may be broadcast in joins.
        deleted: the deleted positions of all files, by their paths; None if no row is deleted.
        by_position: the names of columns and their metadata do not matter.
        title: what Spark's UI calls the scan.

    Returns:
        None if there are no files, or Spark cannot read them or find the columns in them.
    """
    if not files:
        return None
    by_id = names is None and not is_connect(spark)
    # Spark skips row groups by their bounds, which leave out NaN, its greatest number, and it fails
    # for decimal numbers that do not fit a file's type. No filter on such columns may reach the
    # files: if read by id, they get a name that no file has; else they are in an expression.
    unfiltered = _floats(plan.columns.fields) | widened_decimals(history)
    hidden = frozenset() if by_id else unfiltered
    fields = [_filled(field, lacked) for field in plan.columns.fields if _place(field) is None]
    own = own_names(history) - (unfiltered - hidden)
    stored = _StoredSchema(
        {each.field_id: each.name for each in walk(tuple(fields)) if each.field_id in own}
        if names is None
        else dict(names),
        by_id,
    )
    schema = stored.struct([*fields, *_beside(stored, fields, others)])
    paths = [file.file_path for file in files]
    addresses = [address_of(plan.io, path) for path in paths]
    know_native_files(addresses)
    options = hadoop_options(plan.io, paths)
    rows = None
    if not is_connect(spark):
        if names is not None or file_has_ids(plan.io, files[0]):
            if not options:
                rows = parquet_by_id(spark, schema, addresses, title)
            elif sizes := _stored_sizes(plan.io, paths):
                rows = parquet_with_options(spark, schema, addresses, options, sizes, title)
    elif _tells_places(spark) and (
        names is not None
        or (
            _ids(fields) <= constant_names(history)
            and all(is_named(plan.io, file, fields) for file in some_of(files))
        )
    ):
        rows = _by_name(spark, schema, addresses, options)
    if rows is not None and deleted is not None:
        rows = _without_deleted(spark, rows, plan.io, deleted)
    if rows is None:
        return None
    are_scalar = len(fields) == len(plan.columns.fields) and all(
        is_scalar(field.field_type) for field in fields
    )
    if by_position and are_scalar and len(schema.fields) == len(fields) and not hidden:
        return rows
    if by_id and are_scalar and all(stored.name_of(field) == field.name for field in fields):
        # Takes far fewer JVM calls than selecting each column.
        struct = all_nullable(spark_schema(plan.columns))
        return kept_output(spark, rows, struct.json(), lambda: rows.to(struct))
    # So do texts, but Spark substitutes variables in them.
    if are_scalar and not any("${" in field.name or field.doc for field in fields):
        texts = tuple(_text(field, stored, hidden) for field in fields)
        return kept_output(spark, rows, texts, lambda: rows.selectExpr(*texts))
    return rows.select(*(_output(field, stored, hidden) for field in plan.columns.fields))


def _without_deleted(
    spark: SparkSession, rows: DataFrame, io: FileIO, deleted: Mapping[str, PositionSet]
) -> DataFrame | None:
    """The rows that are not deleted; None if Spark names the files differently."""
    names = {path: row_name(io, path) for path in deleted}
    by_name = {names[path]: positions for path, positions in deleted.items()}
    if is_connect(spark):
        listed_names = {name.replace("file:///", "file:/") for name in rows.inputFiles()}
        is_same = listed_names == by_name.keys()
        return without_deleted(spark, rows, by_name, None) if is_same else None
    listed = listed_sizes(rows)
    sizes = {name: listed.get(listed_name(io, path)) for path, name in names.items()}
    known = {name: size for name, size in sizes.items() if size is not None}
    return without_deleted(spark, rows, by_name, known) if len(known) == len(by_name) else None


def has_sizes(rows: DataFrame, io: FileIO, files: Sequence[DataFile]) -> bool:
    """Whether the files of a classic Spark relation have the sizes recorded in manifests."""
    listed = listed_sizes(rows)
    return all(
        listed.get(listed_name(io, file.file_path)) == file.file_size_in_bytes for file in files
    )


def _tells_places(spark: SparkSession) -> bool:
    """Whether a session's Parquet reader returns the files and positions of rows."""
    listed = session_setting(spark)(V1_SOURCES)
    return listed is None or "parquet" in (name.strip() for name in listed.lower().split(","))


def _stored_sizes(io: FileIO, paths: Sequence[str]) -> list[int] | None:
    """The sizes of files in bytes, from the storage; None if it cannot say one of them.

    Spark would miss rows of files that are larger than the size it is given.
    """
    try:
        return list(waiting_threads().map(io.size, paths))
    except IcebergError as error:
        log_refusal(paths[0], error)
        return None


def _by_name(
    spark: SparkSession,
    schema: spark_types.StructType,
    addresses: Sequence[str],
    options: Mapping[str, str],
) -> DataFrame | None:
    given = {**READ_OPTIONS, **options}
    try:
        rows = spark.read.schema(schema).options(**given).parquet(*addresses)
        # Only this shows whether Spark can access the files.
        _ = rows.schema
    except PySparkException as error:
        log_refusal(addresses[0], error)
        return None
    return rows


def _ids(fields: Sequence[NestedField]) -> frozenset[int]:
    return frozenset(Schema(tuple(fields)).fields_by_id)


def _beside(
    stored: _StoredSchema, fields: Sequence[NestedField], others: Sequence[NestedField]
) -> list[NestedField]:
    """Those of the other columns that do not collide with the ones that are read."""
    taken = {stored.name_of(field).lower() for field in fields} | {"_metadata"}
    ids = {field.field_id for field in fields}
    found = []
    for field in others:
        name = stored.name_of(field).lower()
        if field.field_id not in ids and name not in taken and is_native_column(field):
            taken.add(name)
            found.append(field)
    # The estimate need not be exact for very wide tables.
    return found[:_MOST_OTHERS]


def _filled(field: NestedField, lacked: Mapping[int, Any]) -> NestedField:
    """The field, with the value that it has in files that lack it as its default."""
    return replace(field, initial_default=lacked.get(field.field_id, field.initial_default))


def _place(field: NestedField) -> str | None:
    """Spark's metadata column for `_file` or `_pos`; None for other columns."""
    match field.field_id:
        case FILE_PATH.field_id:
            return "_metadata.file_path"
        case POS.field_id:
            return "_metadata.row_index"
        case _:
            return None


def _floats(fields: Sequence[NestedField]) -> frozenset[int]:
    """The ids of the columns and fields of floating-point numbers."""
    return frozenset(each.field_id for each in walk(tuple(fields)) if each.field_type in _FLOATS)


def _output(field: NestedField, stored: _StoredSchema, hidden: frozenset[int]) -> Column:
    place = _place(field)
    if place is not None:
        return f.col(place).alias(field.name)
    is_hidden = not hidden.isdisjoint(each.field_id for each in walk((field,)))
    column = f.col(_quoted(stored.name_of(field)))
    if is_hidden:
        same = f.nanvl if field.field_type in _FLOATS else f.coalesce
        column = same(column, column)
    if not is_scalar(field.field_type):
        column = column.cast(all_nullable(spark_type(field.field_type)))
    # Without explicit metadata the column would keep the field id.
    return column.alias(field.name, metadata={"comment": field.doc} if field.doc else {})


def _text(field: NestedField, stored: _StoredSchema, hidden: frozenset[int]) -> str:
    """The SQL of a scalar column, with its name in the table, without the field id of a file."""
    column = _quoted(stored.name_of(field))
    same = f"if(true, {column}, {column})"
    if field.field_id in hidden:
        same = f"{'nanvl' if field.field_type in _FLOATS else 'coalesce'}({column}, {column})"
    return f"{same} AS {_quoted(field.name)}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class _StoredSchema:
    """How columns are found in files.

    Attributes:
        names: by id, the names to read fields under; other fields get names that no file has.
        by_id: whether Spark finds columns in files by their ids; otherwise by these names.
    """

    names: Mapping[int, str]
    by_id: bool

    def struct(self, fields: Iterable[NestedField]) -> spark_types.StructType:
        """The Spark type of fields, with their initial defaults."""
        return spark_types.StructType([self._field(field) for field in fields])

    def name_of(self, field: NestedField) -> str:
        """The name that Spark reads a field under."""
        return self.names.get(field.field_id, f"{NATIVE_PREFIX}{field.field_id}")

    def _field(self, field: NestedField) -> spark_types.StructField:
        metadata: dict[str, Any] = {"parquet.field.id": field.field_id} if self.by_id else {}
        if field.initial_default is not None and is_scalar(field.field_type):
            metadata["EXISTS_DEFAULT"] = constant_text(field.field_type, field.initial_default)
        return spark_types.StructField(
            self.name_of(field), self._type(field.field_type), True, metadata
        )

    def _type(self, field_type: IcebergType) -> spark_types.DataType:
        match field_type:
            case StructType(fields=fields):
                return self.struct(fields)
            case ListType():
                return spark_types.ArrayType(self._type(field_type.element_type))
            case MapType():
                return spark_types.MapType(
                    self._type(field_type.key_type), self._type(field_type.value_type)
                )
            case _:
                return spark_type(field_type)
