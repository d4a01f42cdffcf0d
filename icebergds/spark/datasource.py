"""Implements the data source `icebergpy`: creates readers and writers from options.

Spark creates it in a separate process for every load and save, and plans in another process.
Imports for reading and writing are local, so that neither pays for the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from icebergds.errors import InvalidOptionError
from icebergds.operations.read.options import (
    parse_load_options,
    refuse_stream_options,
)
from icebergds.spark.errors import without_frames
from icebergds.spark.planned_load import planned_load
from icebergds.spark.read_mark import marked_schema, read_marks
from icebergds.spark.types import spark_schema
from icebergds.spark.user_schema import (
    project_load_schema,
    project_user_schema,
    refuse_second_choice,
)
from icebergds.spark.worker import acknowledge, spare_archives
from icebergds.spec.schema import Schema

if TYPE_CHECKING:
    from icebergds.catalog.address import TableAddress
    from icebergds.commit.operations import TableState
    from icebergds.operations.metadata_tables.load import MetadataTableLoad
    from icebergds.operations.metadata_tables.tasks import MetadataTablePlan
    from icebergds.operations.read.options import ReadOptions
    from icebergds.scan.read_plan import ReadPlan
    from icebergds.spark.reader import IcebergReader
    from icebergds.spark.stream_reader import IcebergStreamReader
    from icebergds.spark.stream_writer import IcebergStreamWriter
    from icebergds.spark.writer import IcebergWriter
    from icebergds.spec.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class _Pinned:
    """What a load reads, so that calls in other processes need not parse or load it again.

    Attributes:
        state: the table, without what the read does not need.
        schema: the schema that is read.
    """

    address: TableAddress
    options: ReadOptions
    state: TableState
    snapshot: Snapshot | None
    schema: Schema


class IcebergDataSource(DataSource):
    """Reads and writes Iceberg tables: `spark.read.format("icebergpy").load("<location>")`."""

    session_catalogs: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Catalog properties by catalog name, from the configuration of the registering session."""

    scan_key: ClassVar[bytes | None] = None
    """The key of planned scans of encrypted files; see `sealed_scans`."""

    @without_frames()
    def __init__(self, options: Mapping[str, str]) -> None:
        spare_archives()
        # Spark pickles this object after schema(), and again with the reader (`_release`).
        self.options = self._with_session_catalog(dict(options))
        self._pinned: _Pinned | None = None
        self._metadata_table: MetadataTableLoad | None = None
        # Spark does not call `schema()` if the user gave a schema.
        self._chose_columns = False

    @classmethod
    def name(cls) -> str:
        return "icebergpy"

    @without_frames()
    def schema(self) -> StructType:
        """The columns of the load; pins its snapshot."""
        from icebergds.operations.read.snapshot_read import check_read, chosen_columns
        from icebergds.operations.read.stream_options import check_stream_options

        if (planned := planned_load(self.options, self.scan_key)) is not None:
            self._chose_columns = True
            plan, _ = planned
            return spark_schema(plan.columns, plan.shown)
        check_stream_options(self.options)
        if self._pin_metadata_table() is not None:
            self._chose_columns = True
            return spark_schema(self._metadata_plan().columns)
        load = self._pin()
        self._chose_columns = True
        check_read(load.options, load.state, load.snapshot, load.schema)
        columns = chosen_columns(load.options, load.state.metadata, load.schema)
        shown = spark_schema(columns, load.options.shown)
        branch = load.options.newest_of
        if branch is None or load.address.is_metadata_file:
            return shown
        return marked_schema(shown, load.state.metadata, branch, load.snapshot)

    @without_frames()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Creates the reader for these columns, chosen by `schema()` or by the user."""
        from icebergds.operations.read.snapshot_read import make_read_plan
        from icebergds.spark.pushdown import PushdownReader
        from icebergds.spark.reader import IcebergReader

        spare_archives()
        if (planned := planned_load(self.options, self.scan_key)) is not None:
            return self._planned_reader(*planned)
        refuse_stream_options(self.options)
        if self._pin_metadata_table() is not None:
            return self._metadata_reader(schema)
        load = self._pin()
        columns = self._columns(schema, load)
        plan = make_read_plan(load.options, load.state, load.schema, columns)
        kind = PushdownReader if load.options.pushdown else IcebergReader
        self._release()
        return kind(plan, partial(_packed_task_groups, load.options, load.state, load.snapshot))

    # Frames stay: PySpark fails again after an error here, and would show only its own last error.
    def streamReader(self, schema: StructType) -> IcebergStreamReader:
        """Creates the reader of a streaming query for these columns."""
        from icebergds.operations.read.snapshot_read import make_read_plan
        from icebergds.operations.read.stream_options import parse_stream_options
        from icebergds.operations.read.stream_read import load_stream
        from icebergds.spark.stream_reader import IcebergStreamReader

        if self._pin_metadata_table() is not None:
            raise InvalidOptionError("a metadata table is no stream; read it with spark.read")
        stream = parse_stream_options(self.options)
        load = self._pin()
        columns = self._columns(schema, load)
        plan = make_read_plan(load.options, load.state, load.schema, columns)
        self._release()
        refresh = partial(load_stream, load.address, load.options, stream, plan)
        return IcebergStreamReader(plan, stream, refresh)

    @without_frames()
    def writer(self, schema: StructType, overwrite: bool) -> IcebergWriter:
        """Creates the writer of a DataFrame, after checking that its rows fit the table."""
        from icebergds.operations.write.options import parse_write_options
        from icebergds.spark.write_jobs import log_cost, plan_job
        from icebergds.spark.writer import IcebergWriter

        spare_archives()
        options = replace(parse_write_options(self.options), read_marks=read_marks(schema))
        planned = plan_job(options, schema, overwrite=overwrite)
        log_cost(planned.job)
        return IcebergWriter(planned.job, planned.task)

    @without_frames()
    def streamWriter(self, schema: StructType, overwrite: bool) -> IcebergStreamWriter:
        """Creates the writer of a micro-batch; `overwrite` is true in output mode `complete`."""
        from icebergds.operations.write.stream_options import streaming_write_options
        from icebergds.spark.stream_writer import batch_writer

        spare_archives()
        return batch_writer(streaming_write_options(self.options), schema, overwrite=overwrite)

    def _planned_reader(self, plan: ReadPlan, task_groups: list[bytes]) -> IcebergReader:
        from icebergds.spark.reader import IcebergReader

        if not self._chose_columns:
            raise InvalidOptionError("a planned scan has its columns; load it without a schema")
        self._release()
        return IcebergReader(plan, lambda _: task_groups)

    def _pin_metadata_table(self) -> MetadataTableLoad | None:
        """The metadata table that the load names, if any; pins it if it is not pinned yet."""
        from icebergds.operations.metadata_tables.load import open_metadata_table

        if self._metadata_table is None and self._pinned is None:
            self._metadata_table = open_metadata_table(self.options)
        return self._metadata_table

    def _metadata_plan(self, columns: Schema | None = None) -> MetadataTablePlan:
        from icebergds.operations.metadata_tables.plan import plan_metadata_table

        load = self._metadata_table
        assert load is not None, "the load names a metadata table"
        return plan_metadata_table(load.kind, load.state, load.options, columns)

    def _metadata_reader(self, schema: StructType) -> DataSourceReader:
        from icebergds.spark.reader import MetadataTableReader

        load, plan = self._metadata_table, self._metadata_plan()
        assert load is not None, "the load names a metadata table"
        if not self._chose_columns:
            refuse_second_choice(load.options)
            fields = plan.table.schema.fields
            plan = self._metadata_plan(project_user_schema(schema, fields, load.state.name))
        self._release()
        return MetadataTableReader(plan, load.options)

    def _columns(self, schema: StructType, load: _Pinned) -> Schema:
        if not self._chose_columns:
            refuse_second_choice(load.options)
        return project_load_schema(
            schema,
            load.state,
            load.schema,
            feed=load.options.feed,
            shown=load.options.shown,
        )

    def __getstate__(self) -> dict[str, Any]:
        # Spark pickles the source before it plans, and may plan a load more than once, so the
        # snapshot is pinned now, even if `schema()` was not called. The reader raises any errors.
        if self._pinned is None and not self._chose_columns:
            with suppress(Exception):
                if self._pin_metadata_table() is None:
                    self._pin()
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Tasks receive this object first; Spark then waits for their partitions to call the reader.
        acknowledge()
        self.__dict__.update(state)

    def _release(self) -> None:
        """Drops what tasks do not need: Spark sends this object to each task with the reader."""
        self.options, self._pinned, self._chose_columns = {}, None, True
        self._metadata_table = None
        # A session's own class is pickled with its catalogs and their passwords.
        self.__class__ = IcebergDataSource

    def _with_session_catalog(self, options: dict[str, str]) -> dict[str, str]:
        """Adds the properties of the session's catalog that the options or their path name."""
        from icebergds.catalog.config import mention_catalogs
        from icebergds.catalog.naming import catalog_among

        mention_catalogs(self.session_catalogs)
        given = {name.lower() for name in options}
        if "catalog" not in given:
            chosen, path = catalog_among(self.session_catalogs, options.get("path", ""))
            options |= {} if chosen is None else {"catalog": chosen, "path": path}
        known = self.session_catalogs.get(options.get("catalog", ""), {})
        return options | {
            f"catalog.{name}": value
            for name, value in known.items()
            if f"catalog.{name}".lower() not in given
        }

    def _pin(self) -> _Pinned:
        """What the load reads; pins the newest snapshot if nothing is pinned yet."""
        from icebergds.operations.read.snapshot_read import resolve_read, without_other_snapshots

        if self._pinned is None:
            address, options = parse_load_options(self.options)
            state = address.load()
            snapshot, schema = resolve_read(options, state.metadata, state.name)
            if options.changes is None:
                state = without_other_snapshots(state, snapshot)
            self._pinned = _Pinned(address, options, state, snapshot, schema)
        return self._pinned


def _packed_task_groups(
    options: ReadOptions, state: TableState, snapshot: Snapshot | None, plan: ReadPlan
) -> list[bytes]:
    from icebergds.operations.read.snapshot_read import plan_task_groups
    from icebergds.scan.packing import pack_task_group

    return list(map(pack_task_group, plan_task_groups(options, state, snapshot, plan)))
