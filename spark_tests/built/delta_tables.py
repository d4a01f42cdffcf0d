"""Builds small tables by row-level changes of write tasks, and says what rows they hold."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from built.commit_tables import CommitTable, create_table
from built.rows import arrays
from built.scans import task_groups_of
from icebergds.commit.data_files import Append
from icebergds.commit.options import IsolationLevel
from icebergds.commit.row_delta import RowDelta
from icebergds.commit.validation import Isolation
from icebergds.expr.nodes import TRUE
from icebergds.formats.arrow.types import schema_to_arrow, to_array
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.io.fileio import FileIO
from icebergds.scan.plan.files import plan_files
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.read.files import read_scan_tasks
from icebergds.scan.read_plan import ReadPlan
from icebergds.spec.manifest import DataFileRef, FileFormat, ManifestEntry
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.reserved import FILE_PATH, LAST_UPDATED_SEQUENCE_NUMBER, POS, ROW_ID
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot
from icebergds.spec.sort import SortOrder
from icebergds.spec.transforms import BucketTransform, IdentityTransform
from icebergds.spec.types import LONG, STRING, NestedField
from icebergds.write.changes.deltas import DeltaFiles, merge_deltas, refuse_shared_keys
from icebergds.write.changes.keyed_delta import plan_keyed_delta, write_keyed_delta
from icebergds.write.changes.position_delta import (
    TARGET_COLUMN,
    DeleteTarget,
    PositionDeltaPlan,
    pack_target,
    without_control_columns,
    write_position_delta,
)
from icebergds.write.locations import LocationProvider
from icebergds.write.rows.matching import plan_matching
from icebergds.write.task import WritePlan, plan_write, write_batches

SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "data", STRING)))
UNPARTITIONED = PartitionSpec(0)
BY_DATA = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "data"),))
BY_ID = PartitionSpec(0, (PartitionField((1,), 1000, BucketTransform(3), "id_bucket"),))


class DeltaTable:
    """A table of two columns, `id` and `data`, or of another schema."""

    def __init__(
        self,
        location: Path,
        *,
        version: int,
        spec: PartitionSpec = UNPARTITIONED,
        schema: Schema = SCHEMA,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.properties = properties or {}
        self.table: CommitTable = create_table(
            location,
            spec=spec,
            schema=schema,
            format_version=version,
            properties=self.properties,
        )

    @property
    def head(self) -> Snapshot | None:
        """The snapshot that is read and changed."""
        return self.table.metadata.current_snapshot()

    @property
    def version(self) -> int:
        return self.table.metadata.format_version

    @property
    def schema(self) -> Schema:
        return self.table.metadata.schema()

    def plan(
        self,
        incoming: pa.Schema | None = None,
        *,
        with_lineage: bool = False,
        file_format: FileFormat = FileFormat.PARQUET,
        sort_order: SortOrder | None = None,
        **more: Any,
    ) -> WritePlan:
        metadata = self.table.metadata
        schema = self.schema
        if with_lineage:
            schema = Schema((*schema.fields, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER))
        order = sort_order or SortOrder()
        return plan_write(
            plan_matching(incoming or schema_to_arrow(schema), schema, table="db.t"),
            io=FileIO(),
            locations=LocationProvider.of(metadata.location, metadata.properties),
            spec=metadata.spec(),
            sort_order=order,
            file_format=file_format,
            properties=WriteProperties.of(metadata.properties, schema, order),
            operation_id=str(uuid.uuid4()),
            **{"target_file_size": 512 * 1024 * 1024, **more},
        )

    def batch(self, *rows: Sequence[Any], extra: Mapping[str, Any] | None = None) -> pa.RecordBatch:
        """A batch of in-memory values, a tuple a row; `extra` columns come first."""
        columns = arrays(self.schema, rows)
        names = [field.name for field in self.schema.fields]
        first = {name: pa.array(values) for name, values in (extra or {}).items()}
        return pa.RecordBatch.from_arrays([*first.values(), *columns], names=[*first, *names])

    def append(self, *rows: Sequence[Any]) -> None:
        files = write_batches(self.plan(), [self.batch(*rows)], partition_id=0, attempt_id=0)
        self.table.commit(Append(tuple(files)))

    def keyed(
        self,
        mode: str,
        *tasks: Sequence[pa.RecordBatch],
        keys: Sequence[int] = (1,),
        kinds: str | None = None,
        delete_spec: PartitionSpec | None = None,
        **more: Any,
    ) -> DeltaFiles:
        """Changes rows by key, one task group a task, and commits."""
        incoming = next((batch.schema for task in tasks for batch in task), None)
        incoming = incoming or schema_to_arrow(self.schema)
        in_plan = {
            name: more.pop(name)
            for name in ("sort_order", "target_file_size", "sort", "fanout", "file_format")
            if name in more
        }
        plan = plan_keyed_delta(
            self.plan(**in_plan),
            incoming,
            key_ids=tuple(keys),
            mode=mode,
            row_kind_column=kinds,
            delete_spec=delete_spec or self.table.metadata.spec(),
            format_version=self.version,
            **more,
        )
        results = [
            write_keyed_delta(plan, task, partition_id=at, attempt_id=at)
            for at, task in enumerate(tasks)
        ]
        written = [delta.keys for delta in results if delta.keys is not None]
        refuse_shared_keys(written, "db.t")
        return self.commit(merge_deltas(results))

    def change(
        self,
        *tasks: Sequence[pa.RecordBatch],
        granularity: str = "file",
        start: Snapshot | None = None,
        **more: Any,
    ) -> DeltaFiles:
        """Changes rows by position, one task group a task, and commits.

        The rows were read from snapshot `start`, or from the head.
        """
        start = start or self.head
        incoming = next(batch.schema for task in tasks for batch in task)
        columns = without_control_columns(incoming)
        with_lineage = ROW_ID.name in columns.names
        plan = PositionDeltaPlan(
            write=self.plan(columns if len(columns) else None, with_lineage=with_lineage),
            format_version=self.version,
            granularity=granularity,
            specs=self.table.metadata.specs_by_id,
            **more,
        )
        targets = self._targets(start)
        return self.commit(
            merge_deltas(
                write_position_delta(plan, [targets, *task], partition_id=at, attempt_id=at)
                for at, task in enumerate(tasks)
            ),
            start,
        )

    def change_where(
        self,
        condition: Callable[[dict[str, Any]], bool],
        update: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        **more: Any,
    ) -> DeltaFiles:
        """Deletes the rows of a condition, or updates them, keeping their lineage."""
        start = self.head
        found = [row for row in self.read(start) if condition(row)]
        if not found:
            return DeltaFiles()
        return self.change([self.control(found, update)], start=start, **more)

    def control(
        self,
        found: Sequence[dict[str, Any]],
        update: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> pa.RecordBatch:
        """The rows of a position delta that deletes rows that were read, or updates them."""
        rows = [update(dict(row)) if update else row for row in found]
        columns = [
            pa.array([row["_file"] for row in found], pa.string()),
            pa.array([row["_pos"] for row in found], pa.int64()),
            pa.array([update is not None] * len(found), pa.bool_()),
        ]
        names = ["_file", "_pos", "_write"]
        fields = list(self.schema.fields)
        if self.version >= 3:
            fields += [ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER]
            rows = [{**row, LAST_UPDATED_SEQUENCE_NUMBER.name: None} for row in rows]
        for field in fields:
            columns.append(to_array(field.field_type, [row[field.name] for row in rows]))
            names.append(field.name)
        return pa.RecordBatch.from_arrays(columns, names=names)

    def _targets(self, snapshot: Snapshot | None) -> pa.RecordBatch:
        """Rows that describe every data file of a snapshot, and change none."""
        packed = [
            (path, pack_target(path, target)) for path, target in self.targets(snapshot).items()
        ]
        return pa.RecordBatch.from_pydict(
            {
                "_file": pa.array([path for path, _ in packed], pa.string()),
                TARGET_COLUMN: pa.array([value for _, value in packed], pa.binary()),
            }
        )

    def targets(self, snapshot: Snapshot | None = None) -> dict[str, DeleteTarget]:
        """Every data file of a snapshot, or of the head."""
        snapshot = snapshot or self.head
        if snapshot is None:
            return {}
        return {
            file.entry.data_file.file_path: DeleteTarget(
                DataFileRef(
                    file.entry.data_file.file_path,
                    file.entry.data_file.spec_id,
                    file.entry.data_file.partition,
                ),
                tuple(entry.data_file for entry in file.deletes.position_deletes),
            )
            for file in self.table.files(snapshot)
        }

    def commit(self, delta: DeltaFiles, start: Snapshot | None = None) -> DeltaFiles:
        """Commits changes of the rows of snapshot `start`, or of the head."""
        start = start or self.head
        action = RowDelta(
            delta.files,
            delta.deletes,
            delta.replaced,
            delta.referenced,
            Isolation(IsolationLevel.SERIALIZABLE, None if start is None else start.snapshot_id),
        )
        self.table.commit(action)
        return delta

    def read(self, snapshot: Snapshot | None = None) -> list[dict[str, Any]]:
        """The rows with `_file` and `_pos`, and on version 3 their lineage."""
        snapshot = snapshot or self.head
        if snapshot is None:
            return []
        state = self.table.state
        metadata = state.metadata
        lineage = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER) if self.version >= 3 else ()
        schema = metadata.schema()
        plan = ReadPlan(
            io=FileIO(),
            columns=Schema((*schema.fields, FILE_PATH, POS, *lineage)),
            table_schema=schema,
            specs=metadata.specs_by_id,
        )
        return [
            row
            for task_group in task_groups_of(
                state.io, metadata, snapshot, schema, TRUE, SplitOptions()
            )
            for batch in read_scan_tasks(plan, task_group)
            for row in batch.to_pylist()
        ]

    def rows(self, snapshot: Snapshot | None = None) -> list[tuple[Any, ...]]:
        """The rows' values, in order."""
        names = [field.name for field in self.schema.fields]
        return sorted((tuple(row[name] for name in names) for row in self.read(snapshot)), key=repr)

    def live_entries(self) -> list[ManifestEntry]:
        """Data and delete files of the current snapshot."""
        return [entry for entry in self.table.entries() if entry.status != 2]

    def sequence_number(self, location: str) -> int:
        """The data sequence number of a live file."""
        (found,) = {
            entry.data_sequence_number
            for entry in self.live_entries()
            if entry.data_file.file_path == location
        }
        return found


def planned_deletes(table: CommitTable) -> dict[str, list[str]]:
    """The delete files that apply to each data file."""
    state = table.state
    metadata = state.metadata
    files = plan_files(state.io, metadata, table.head, metadata.schema()).files
    return {
        file.entry.data_file.file_path: [
            entry.data_file.file_path
            for entry in (*file.deletes.position_deletes, *file.deletes.equality_deletes)
        ]
        for file in files
    }
