"""Plans appends and overwrites from their options, and commits their files."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable, load_for_write
from icebergds.commit.base import CommitBase
from icebergds.commit.data_files import Append, FastAppend, Overwrite
from icebergds.commit.new_snapshot import NewSnapshot
from icebergds.commit.operations import Change, TableOperations, TableState
from icebergds.commit.replace_partitions import ReplacePartitions
from icebergds.commit.retry import commit_change
from icebergds.commit.snapshot_commit import Action, Committed, commit_snapshot, depends_on_rows
from icebergds.commit.staging import StagedOperations, clean_up_if_abandoned
from icebergds.commit.transaction import in_one_commit
from icebergds.commit.validation import Isolation
from icebergds.commit.workspace import Workspace
from icebergds.errors import (
    AlreadyCommittedError,
    CommitStateUnknownError,
    InvalidMetadataError,
    InvalidOptionError,
    NoSuchTableError,
    ValidationError,
)
from icebergds.expr.bind import bind
from icebergds.expr.nodes import TRUE, Expr
from icebergds.expr.sql import parse_filter
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.formats.data_writer import check_data_writer
from icebergds.interrupts import interrupts_held
from icebergds.io.fileio import FileIO
from icebergds.operations.write.cleanup import WRITE_ID, delete_files
from icebergds.operations.write.commit_options import check_target_branch, commit_options
from icebergds.operations.write.create import NewTable, plan_new_table
from icebergds.operations.write.isolation import check_marked_rows, overwrite_isolation
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.table_settings import data_file_format, distribution_mode
from icebergds.spec.evolution.union_by_name import merge_schema
from icebergds.spec.manifest import DataFile, FileFormat
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.table_properties import (
    FANOUT_ENABLED,
    PARQUET_SHRED_VARIANTS,
    PARQUET_VARIANT_BUFFER_SIZE,
    TARGET_FILE_SIZE_BYTES,
)
from icebergds.spec.updates.requirements import AssertCurrentSchemaId, AssertLastAssignedFieldId
from icebergds.spec.updates.table_updates import LAST_ADDED, AddSchema, SetCurrentSchema
from icebergds.write.locations import LocationProvider
from icebergds.write.rows.fanout import FanoutSettings
from icebergds.write.rows.matching import Matching, plan_matching
from icebergds.write.task import WritePlan, plan_write

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PreparedWrite:
    """A write that has been checked against its table, before any row is written.

    Attributes:
        new_table: the table to create with the first snapshot; None if it exists.
        table_uuid: the UUID of the table that was checked.
        distribution_mode: how its rows should have been shuffled: `none`, `hash` or `range`.
        row_filter: the rows that an overwrite replaces.
        isolation: which concurrent commits make an overwrite fail.
    """

    address: TableAddress
    options: WriteOptions
    overwrite: bool
    plan: WritePlan
    new_table: NewTable | None
    table_uuid: str | None
    distribution_mode: str
    row_filter: Expr
    isolation: Isolation

    @property
    def write_id(self) -> str:
        """The id in the snapshot summary and file names."""
        return self.plan.operation_id

    @property
    def io(self) -> FileIO:
        """The storage of the table."""
        return self.plan.io

    @property
    def data_location(self) -> str:
        """The directory of new files."""
        return self.plan.locations.data_location

    @property
    def operations(self) -> TableOperations:
        return self.new_table or self.address.operations()


def prepare_write(
    options: WriteOptions,
    incoming: pa.Schema,
    columns: Schema,
    *,
    overwrite: bool,
    table: LoadedTable | None = None,
) -> tuple[PreparedWrite, LoadedTable]:
    """Checks a write against its table, and plans its tasks; merges the schema if asked to.

    Args:
        incoming: the Arrow schema of the batches that will come.
        columns: the same in Iceberg's types.
        overwrite: replace rows, rather than append.
        table: the table that the options name; loaded, or planned for creation, by default.

    Returns:
        The write, and the table to commit it to.

    Raises:
        NoSuchTableError: the table does not exist, and option `create` is not set.
        InvalidOptionError, InvalidFilterError: the options do not fit the write or the table.
        InvalidDataError: the rows do not fit the table.
        UnsupportedFeatureError: the table has a feature that cannot be written, or its catalog
            restricts what may be read, and a condition is to choose the rows.
        NoSuchNamespaceError: the namespace of the table to create does not exist.
    """
    if not overwrite and (options.overwrite_filter or options.overwrite_mode == "dynamic"):
        raise InvalidOptionError(
            "options 'overwrite-filter' and 'overwrite-mode' need mode('overwrite'); this write "
            "appends"
        )
    table = table or _table(options, columns)
    new_table = table.operations if isinstance(table.operations, NewTable) else None
    if new_table is None:
        check_target_branch(table.state, options)
    if options.merge_schema and new_table is None:
        table = with_merged_schema(table, columns)
    isolation = overwrite_isolation(options, table)
    if overwrite:
        check_marked_rows(options, table, isolation)
    state, metadata = table.state, table.metadata
    row_filter = overwrite_filter(options)
    if overwrite and row_filter != TRUE:
        # Which files match depends on their rows.
        state.io.require_rows()
    # Raises errors in the filter before rows are written.
    bind(row_filter, metadata.schema(), case_sensitive=False)
    matching = plan_matching(
        incoming, metadata.schema(), table=state.name, time_zone=options.time_zone
    )
    plan = plan_rows(options, state, matching)
    prepared = PreparedWrite(
        options.address,
        options,
        overwrite,
        plan,
        new_table,
        metadata.table_uuid,
        distribution_mode(options, metadata),
        row_filter,
        isolation,
    )
    return prepared, table


def plan_rows(
    options: WriteOptions,
    state: TableState,
    matching: Matching,
    spec: PartitionSpec | None = None,
) -> WritePlan:
    """Plans how tasks write data files, by the table's properties and the write options.

    Args:
        spec: the partition spec of the files; the table's default spec by default.

    Raises:
        InvalidOptionError: options or table properties are malformed.
        UnsupportedFeatureError: the table has a feature that cannot be written.
    """
    metadata, sort_order = state.metadata, state.metadata.sort_order()
    properties = _file_properties(options, metadata.properties)
    file_format = _file_format(options, metadata.properties)
    write_properties = WriteProperties.of(properties, matching.schema, sort_order)
    check_data_writer(file_format, matching.schema, write_properties, f"table {state.name}")
    return plan_write(
        matching,
        io=state.io,
        locations=LocationProvider.of(metadata.location, metadata.properties),
        spec=spec or metadata.spec(),
        sort_order=sort_order,
        file_format=file_format,
        target_file_size=options.target_file_size or TARGET_FILE_SIZE_BYTES.of(metadata.properties),
        properties=write_properties,
        operation_id=str(uuid.uuid4()),
        fanout=FanoutSettings(enabled=_fanout(options, metadata.properties)),
        sort=sort_order.is_sorted and options.use_table_distribution,
    )


def commit_write(
    write: PreparedWrite, files: Iterable[DataFile], table: LoadedTable | None = None
) -> Committed | None:
    """Commits the files of a write; deletes them if it is certain that nothing was committed.

    Also deletes them, and returns None, if the table already has this idempotent write. None is
    also returned if a dynamic overwrite has no rows: nothing is committed, as in Java.

    Args:
        table: as returned by `prepare_write`, for the first attempt; loaded again by default.

    Raises:
        CommitConflictError, ValidationError: concurrent commits conflict; nothing was committed.
        CommitStateUnknownError: it is not known whether it was committed; nothing was deleted.
        AlreadyExistsError: another writer created the table that this write was to create.
    """
    files = tuple(files)
    is_dynamic = write.overwrite and write.options.overwrite_mode == "dynamic"
    if is_dynamic and not files and write.new_table is None:
        return None
    options = commit_options(write.options, write.table_uuid, {WRITE_ID: write.write_id})
    operations = write.operations if table is None else table.operations
    base = None if table is None else table.state
    committed: Committed | None = None
    try:
        if table is not None:
            clean_up_if_abandoned(operations, lambda: delete_files(write.io, files))
        # Ctrl-C that comes when it is committed raises afterwards.
        with interrupts_held():
            committed = commit_snapshot(operations, _action(write, files), options, base)
    except CommitStateUnknownError:
        raise
    except AlreadyCommittedError:
        delete_files(write.io, files)
        return None
    except (Exception, KeyboardInterrupt) as error:
        if committed is None:
            delete_files(write.io, files, error)
        raise
    return committed


def _table(options: WriteOptions, columns: Schema) -> LoadedTable:
    address = options.address
    try:
        return load_for_write(address)
    except NoSuchTableError as error:
        if options.creation is None:
            missing = address.with_catalog_hint(str(error))
            raise NoSuchTableError(
                f"{missing}. To create the table with this write, set option('create', 'true'); to "
                "partition it, also set option('partition-by', 'days(ts), bucket(16, id)')"
            ) from None
        new_table = plan_new_table(address, options.creation, columns)
        return LoadedTable(address, new_table, new_table.planned())


def with_merged_schema(table: LoadedTable, columns: Schema) -> LoadedTable:
    """Adds missing columns to the table, in a commit before any row is written.

    Raises:
        InvalidDataError: the columns do not fit those of the table.
        InvalidMetadataError: the table cannot have a column of such a name or type.
    """

    def merged(metadata: TableMetadata) -> Schema:
        schema, _ = merge_schema(
            metadata.schema(), columns, metadata.last_column_id, case_sensitive=False
        )
        return schema

    def has_columns(state: TableState) -> bool:
        return merged(state.metadata) == state.metadata.schema()

    def produce(state: TableState) -> Change:
        metadata = state.metadata
        return Change(
            [
                AssertCurrentSchemaId(metadata.current_schema_id),
                AssertLastAssignedFieldId(metadata.last_column_id),
            ],
            [AddSchema(merged(metadata)), SetCurrentSchema(LAST_ADDED)],
        )

    if has_columns(table.state):
        return table
    try:
        return table.at(commit_change(table.operations, produce, has_columns, table.state))
    except InvalidMetadataError as error:
        raise InvalidMetadataError(f"table {table.name}: {error}") from None


def in_commit_with_columns(
    table: LoadedTable, columns: Schema, change: Callable[[LoadedTable], _T]
) -> tuple[_T, TableState]:
    """Adds missing columns to the table and changes its rows, in one commit.

    Args:
        change: changes the rows; called with the table that has the columns.

    Returns:
        What `change` returns, and the table afterwards.

    Errors are those of `with_merged_schema`, `change` and `in_one_commit`.
    """

    def run(staged: StagedOperations) -> _T:
        return change(with_merged_schema(replace(table, operations=staged), columns))

    return in_one_commit(table.operations, table.state, run)


@dataclass(frozen=True, slots=True)
class _OfColumns:
    """An action whose files contain columns that the table must still have."""

    action: Action
    columns: Schema

    @property
    def depends_on_rows(self) -> bool:
        return depends_on_rows(self.action)

    def produce(self, work: Workspace, base: CommitBase) -> NewSnapshot:
        known = base.metadata.schema().fields_by_id
        gone = [field.name for field in self.columns.fields if field.field_id not in known]
        if gone:
            raise ValidationError(
                f"table {base.name}: another commit removed {', '.join(gone)} or replaced the "
                "table while rows with these columns were written, so that their values could not "
                "be read; nothing was committed. Repeat the write with the table's columns as they "
                "are now"
            )
        return self.action.produce(work, base)


def _action(write: PreparedWrite, files: tuple[DataFile, ...]) -> Action:
    return _OfColumns(_change(write, files), write.plan.schema)


def _change(write: PreparedWrite, files: tuple[DataFile, ...]) -> Action:
    options = write.options
    if not write.overwrite:
        return FastAppend(files) if options.fast_append else Append(files)
    if options.overwrite_mode == "dynamic":
        return ReplacePartitions(files, write.isolation)
    return Overwrite(files, write.row_filter, case_sensitive=False, isolation=write.isolation)


def overwrite_filter(options: WriteOptions) -> Expr:
    """The rows that an overwrite replaces; not bound yet.

    Raises:
        InvalidFilterError: it cannot be parsed.
    """
    if options.overwrite_filter is None:
        return TRUE
    if not isinstance(options.overwrite_filter, str):
        return options.overwrite_filter
    return parse_filter(options.overwrite_filter, time_zone=options.time_zone)


def _file_properties(options: WriteOptions, properties: Mapping[str, str]) -> dict[str, str]:
    shred, rows = options.shred_variants, options.variant_buffer_size
    chosen = {
        "compression-codec": options.compression_codec,
        "compression-level": options.compression_level,
        PARQUET_SHRED_VARIANTS.name: None if shred is None else str(shred).lower(),
        PARQUET_VARIANT_BUFFER_SIZE.name: None if rows is None else str(rows),
    }
    return {**properties, **{name: value for name, value in chosen.items() if value is not None}}


def _file_format(options: WriteOptions, properties: Mapping[str, str]) -> FileFormat:
    return options.write_format or data_file_format(properties)


def _fanout(options: WriteOptions, properties: Mapping[str, str]) -> bool:
    return FANOUT_ENABLED.of(properties) if options.fanout is None else options.fanout
