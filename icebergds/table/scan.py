"""Reads of a table that are not yet bound to a Spark session."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from icebergds.commit.operations import TableState
from icebergds.errors import InvalidOptionError
from icebergds.formats.arrow_types import schema_to_arrow
from icebergds.scan.read_changes import read_share
from icebergds.scan.read_plan import ReadPlan
from icebergds.spec.snapshot import Snapshot
from icebergds.table.option_values import is_of_address, storage_properties_of
from icebergds.table.read_options import ReadOptions, parse_read_options
from icebergds.table.reading import (
    chosen_columns,
    make_read_plan,
    native_rule_of,
    plan_native_files,
    plan_shares,
    resolve_read,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class TableScan:
    """A read that is not yet bound to a Spark session."""

    _state: TableState = field(repr=False)
    filter: str | None
    columns: str | None
    snapshot_id: int | None
    branch: str | None
    tag: str | None
    options: Mapping[str, str]

    def to_arrow(self) -> pa.Table:
        """The rows, read here without Spark, in Arrow's storage types (`formats.arrow_types`).

        Raises:
            InvalidFilterError: the filter cannot be parsed, bound or used.
            InvalidOptionError: no such column, or options that contradict each other.
            NoSuchSnapshotError: no such snapshot, branch or tag.
            InvalidDataError: updates are asked for, and identifiers do not tell rows apart.
        """
        options, snapshot, plan = self._planned(self._options())
        shares = plan_shares(options, self._state, snapshot, plan)
        batches = [batch for share in shares for batch in read_share(plan, share)]
        return pa.Table.from_batches(batches, schema_to_arrow(plan.columns))

    def to_df(self, spark: SparkSession) -> DataFrame:
        """The scan as a DataFrame, from a load of its own, pinned to this state of the table.

        Timestamps without an offset, in the filter and in options, are in the session's time zone.
        Where the session has native scans (`register(spark, native_scans=True)`), the scan is
        planned here, Spark's own reader reads the files that it reads right, and every column may
        hold nulls as far as Spark knows.

        Raises:
            InvalidOptionError: an option that is an argument of `scan` as well.
        """
        zone = spark.conf.get("spark.sql.session.timeZone")
        options = {**({"time-zone": zone} if zone else {}), **self._options()}
        # Spark is imported only where its sessions are at hand.
        importlib.import_module("icebergds.spark.raised").prepare_thread(spark)
        native = importlib.import_module("icebergds.spark.native")
        frame: DataFrame | None = None
        if native.has_native_scans(spark):
            parsed, snapshot, plan = self._planned(options)
            reads_snapshot = parsed.changes is None and not parsed.pushdown
            if reads_snapshot and (rule := native_rule_of(self._state, plan)) is not None:
                files, has_others = plan_native_files(self._state, snapshot, plan, rule)
                frame = native.native_frame(
                    spark,
                    plan,
                    [f.entry.data_file for f in files],
                    self._state.metadata.schemas,
                )
                if frame is not None and not has_others:
                    return frame
        if frame is not None:
            options["skip-native-files"] = "true"
        reader = spark.read.format("icebergpy").options(**options)
        ours = reader.load(self._state.metadata_location)
        return ours if frame is None else frame.union(ours)

    def _planned(self, named: Mapping[str, str]) -> tuple[ReadOptions, Snapshot | None, ReadPlan]:
        state = self._state
        options = parse_read_options({**named, "path": state.metadata_location})
        snapshot, schema = resolve_read(options, state.metadata, state.name)
        columns = chosen_columns(options, state.metadata, schema)
        return options, snapshot, make_read_plan(options, state, schema, columns)

    def _options(self) -> dict[str, str]:
        """The read's options by name, as a data source in another process needs them."""
        io = self._state.io
        arguments = {
            "filter": self.filter,
            "columns": self.columns,
            "snapshot-id": None if self.snapshot_id is None else str(self.snapshot_id),
            "branch": self.branch,
            "tag": self.tag,
        }
        named = {name: value for name, value in arguments.items() if value is not None}
        further = {name.lower(): value for name, value in self.options.items()}
        if of_load := sorted(name for name in further if is_of_address(name)):
            raise InvalidOptionError(
                f"{', '.join(of_load)}: options that name a table or its storage are those of "
                "load_table, not of a scan"
            )
        if both := sorted(named.keys() & further.keys()):
            raise InvalidOptionError(
                f"{', '.join(both)}: given as an argument of the scan and as an option; give one"
            )
        # Relative paths are relative to this process: the data source runs elsewhere.
        location_map = {"": io.working_directory, **io.location_map}
        return {
            **storage_properties_of(io.properties),
            "location-map": json.dumps(location_map),
            **named,
            **further,
        }


def listed_names(names: Sequence[str]) -> str:
    """Names as the option `columns` has them; one with a comma in it is a whole name."""
    return ",".join(f"`{n}`" if "," in n and "`" not in n else n for n in names)
