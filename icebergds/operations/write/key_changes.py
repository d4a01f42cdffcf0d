"""Plans changes of rows by key: upserts, deletes and changelogs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.commit.options import IsolationLevel
from icebergds.errors import InvalidDataError, InvalidFilterError, InvalidOptionError
from icebergds.expr.names import quote_name, resolve
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.operations.write.append_overwrite import plan_rows, with_merged_schema
from icebergds.operations.write.cleanup import delete_files
from icebergds.operations.write.commit_options import check_target_branch
from icebergds.operations.write.delta_commit import PreparedDelta
from icebergds.operations.write.options import WriteOptions
from icebergds.operations.write.row_change_options import RowChangeOptions, WriteOperation
from icebergds.operations.write.table_settings import delete_file_format, require_delete_files
from icebergds.scan.projection import parse_column_list
from icebergds.scan.read.deleted_keys import KeyHashing
from icebergds.spec.manifest import ManifestContent
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.reserved import ROW_ID
from icebergds.spec.schema import Schema
from icebergds.spec.table_properties import DELETE_TARGET_FILE_SIZE_BYTES
from icebergds.write.changes.deltas import DeltaFiles
from icebergds.write.changes.keyed_delta import (
    DeltaMode,
    KeyedDeltaPlan,
    ReplacedRows,
    plan_keyed_delta,
    write_keyed_delta,
    write_keys,
)
from icebergds.write.rows.matching import plan_matching


def prepare_key_change(
    table: LoadedTable,
    options: WriteOptions,
    change: RowChangeOptions,
    incoming: pa.Schema,
    columns: Schema,
    *,
    keeps_row_ids: bool = False,
) -> tuple[PreparedDelta, KeyTask, LoadedTable]:
    """Checks a change by key against its table, and plans its tasks; may merge the schema.

    Args:
        keeps_row_ids: whether `KeyTask.replacing` will be run.
        incoming: the Arrow schema of the batches that will come.
        columns: the same in Iceberg's types.

    Raises:
        InvalidOptionError: the options do not fit the table, or there is no key.
        InvalidDataError: the rows do not fit the table.
        UnsupportedFeatureError: the table's version does not support delete files, or the table
            has a feature that cannot be written, or its catalog restricts what may be read.
    """
    state = table.state
    state.io.require_rows()
    check_target_branch(state, options)
    require_delete_files(state, by_key=True)
    ordered = _order_column(change, incoming)
    kinds = (change.row_kind_column or "").lower()
    # If the table has a column of this name, it is written like any other.
    is_stored = state.metadata.schema().find_id(kinds, False) is not None
    control = {name for name in incoming.names if name.lower() == kinds and not is_stored}
    if options.merge_schema:
        table = with_merged_schema(table, _without(columns, control))
        state = table.state
    schema = state.metadata.schema()
    # The column that orders rows need not be a column of the table.
    is_extra = ordered is not None and ordered not in control and not schema.find_id(ordered, False)
    extra = ordered if is_extra else None
    rows = pa.schema([field for field in incoming if field.name != extra])
    key_ids = key_ids_of(state, change.keys)
    delete_spec = _delete_spec(options, state, key_ids)
    written = pa.schema([field for field in rows if field.name not in control])
    of_keys = change.operation is WriteOperation.DELETE
    if keeps_row_ids:
        written = written.append(pa.field(ROW_ID.name, pa.int64()))
    matching = plan_matching(
        schema_to_arrow(schema) if of_keys else written,
        Schema((*schema.fields, ROW_ID), schema.schema_id, schema.identifier_field_ids)
        if keeps_row_ids
        else schema,
        table=state.name,
        time_zone=options.time_zone,
    )
    write = plan_rows(options, state, matching)
    plan = plan_keyed_delta(
        write,
        rows,
        key_ids=key_ids,
        mode=change.operation.value,
        row_kind_column=change.row_kind_column,
        delete_spec=delete_spec,
        format_version=state.metadata.format_version,
        delete_format=delete_file_format(state.metadata, write.file_format),
        delete_file_size=DELETE_TARGET_FILE_SIZE_BYTES.of(state.metadata.properties),
        keys_meet=change.keys_meet,
    )
    named = ", ".join(str(schema.find_name(key_id)) for key_id in key_ids)
    read_at = options.validate_from_snapshot_id
    if read_at is None and (head := state.metadata.head_of(options.branch)) is not None:
        read_at = head.snapshot_id
    prepared = PreparedDelta(
        options.address,
        options,
        write.operation_id,
        state.io,
        state.metadata.table_uuid,
        write.locations.data_location,
        read_at,
        IsolationLevel(options.isolation_level or IsolationLevel.NONE),
        new_spec=None if delete_spec.spec_id in state.metadata.specs_by_id else delete_spec,
        deletes_are_global=bool(state.metadata.spec().fields) and not delete_spec.fields,
        key_spec=delete_spec,
        key_hashing=KeyHashing(plan.key_ids, plan.keys.seed),
    )
    return prepared, KeyTask(plan, named, ordered, extra, change.is_ordered), table


@dataclass(frozen=True, slots=True)
class KeyTask:
    """A task of a change by key (`DeltaTask`).

    Attributes:
        keys: the names of the key columns, for messages.
        ordered: the column that orders rows; None if keys must be distinct in upserts.
        extra: that column, if it is not written.
        is_ordered: whether the rows come in its order.
    """

    plan: KeyedDeltaPlan
    keys: str
    ordered: str | None
    extra: str | None
    is_ordered: bool

    def __call__(
        self, batches: Iterable[pa.RecordBatch], *, partition_id: int, attempt_id: int
    ) -> DeltaFiles:
        write = partial(write_keyed_delta, partition_id=partition_id, attempt_id=attempt_id)
        if self.ordered is not None:
            ordered = batches if self.is_ordered else _sorted(batches, self.ordered)
            return write(self.plan, self._without_extra(ordered))
        if self.plan.mode is DeltaMode.UPSERT:
            return _write_distinct(self.plan, self.keys, batches, write)
        return write(self.plan, batches)

    def of_keys(
        self, batches: Iterable[pa.RecordBatch], *, partition_id: int, attempt_id: int
    ) -> DeltaFiles:
        """Writes equality deletes of the keys alone; rows need only them and their kinds."""
        return write_keys(self.plan, batches, partition_id=partition_id, attempt_id=attempt_id)

    @property
    def hashing(self) -> KeyHashing:
        """How `of_keys` hashes keys."""
        return KeyHashing(self.plan.key_ids, self.plan.keys.seed, with_row_ids=True)

    def replacing(self, rows: ReplacedRows) -> KeyTask:
        """The task after `of_keys`, with the rows that were found by these keys."""
        return replace(self, plan=replace(self.plan, replaced=rows, keys_meet=False))

    def _without_extra(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        if self.extra is None:
            return batches
        return (batch.drop_columns([self.extra]) for batch in batches)


def key_ids_of(state: TableState, keys: str | None) -> tuple[int, ...]:
    """The field ids of the key columns.

    Args:
        keys: names joined by commas; None for the table's identifier fields.

    Raises:
        InvalidOptionError: there are none, or one is not a column of the table.
    """
    schema = state.metadata.schema()
    if keys is None:
        if not schema.identifier_field_ids:
            raise InvalidOptionError(
                f"table {state.name} has no identifier fields; name the key columns with "
                "option('upsert-keys', 'id, region') or keys=[...]"
            )
        return tuple(sorted(schema.identifier_field_ids))
    ids: dict[int, None] = {}
    for parts in parse_column_list(keys):
        try:
            ids[resolve(quote_name(parts), schema, case_sensitive=False).field_id] = None
        except InvalidFilterError as error:
            raise InvalidOptionError(f"option 'upsert-keys' = {keys!r}: {error}") from None
    return tuple(ids)


def _order_column(change: RowChangeOptions, incoming: pa.Schema) -> str | None:
    """The incoming column that orders rows, by its name there."""
    if change.order_by is None:
        return None
    for name in incoming.names:
        if name.lower() == change.order_by.lower():
            return str(name)
    raise InvalidOptionError(
        f"option 'upsert-order-by' = {change.order_by!r}: the incoming rows have no such column; "
        f"they have {', '.join(incoming.names)}"
    )


def _without(columns: Schema, names: set[str]) -> Schema:
    return Schema(tuple(field for field in columns.fields if field.name not in names))


def _delete_spec(
    options: WriteOptions, state: TableState, key_ids: tuple[int, ...]
) -> PartitionSpec:
    """The spec of equality deletes; a new one if the table has none that fits.

    Equality deletes in a partition apply only to files of that partition. So they are partitioned
    only if the keys determine the partition and all data files have the current spec. Otherwise
    they are global: they have an unpartitioned spec (spec: Scan Planning).
    """
    metadata = state.metadata
    spec = metadata.spec()
    if not spec.fields:
        return spec
    if spec.source_ids <= set(key_ids) and _is_only_spec(options, state, spec):
        return spec
    unpartitioned = (spec for spec in metadata.partition_specs if not spec.fields)
    newest = max(metadata.specs_by_id)
    return next(unpartitioned, PartitionSpec(newest + 1, ()))


def _is_only_spec(options: WriteOptions, state: TableState, spec: PartitionSpec) -> bool:
    metadata = state.metadata
    if len(metadata.partition_specs) == 1:
        return True
    snapshot = metadata.head_of(options.branch)
    if snapshot is None:
        return True
    return all(
        manifest.partition_spec_id == spec.spec_id
        for manifest in read_snapshot_manifests(state.io, snapshot)
        if manifest.content is ManifestContent.DATA
        and (manifest.added_files_count != 0 or manifest.existing_files_count != 0)
    )


def _write_distinct(
    plan: KeyedDeltaPlan,
    keys: str,
    batches: Iterable[pa.RecordBatch],
    write: Callable[[KeyedDeltaPlan, Iterable[pa.RecordBatch]], DeltaFiles],
) -> DeltaFiles:
    """Upserts rows whose keys must be distinct, because no order says which of two rows wins."""
    rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    delta = write(plan, counted())
    distinct = delta.counts["upserted"]
    if distinct < rows:
        delete_files(plan.write.io, delta.all_files)
        raise InvalidDataError(
            f"table {plan.write.matching.table}: {rows} rows to upsert have only {distinct} "
            f"different keys ({keys}); drop the duplicates, or set "
            "option('upsert-order-by', '<column>') or order_by= to a column whose greatest value "
            "wins"
        )
    return delta


def _sorted(batches: Iterable[pa.RecordBatch], order_by: str) -> list[pa.RecordBatch]:
    """Sorts the rows of a task by a column as Spark does: nulls first, NaN last, stable."""
    given = list(batches)
    if not given:
        return []
    table = pa.Table.from_batches(given)
    values = table[order_by]
    is_nan = pc.is_nan(values) if pa.types.is_floating(values.type) else pc.is_null(values)
    ranks = {
        "valid": pc.is_valid(values),
        "nan": pc.and_not(is_nan, pc.is_null(values)).fill_null(False),
        "value": values,
    }
    order = pc.sort_indices(pa.table(ranks), sort_keys=[(name, "ascending") for name in ranks])
    ordered: list[pa.RecordBatch] = table.take(order).to_batches()
    return ordered
