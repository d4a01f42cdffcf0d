"""`Table`: one table at one moment, and the scans that read it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from icebergds.catalog.base import TableState
from icebergds.catalog.filesystem import load_from_location
from icebergds.catalog.loading import load_catalog
from icebergds.errors import InvalidOptionError
from icebergds.formats.arrow_types import schema_to_arrow
from icebergds.io.fileio import FileIO
from icebergds.scan.projection import parse_column_list, project_columns
from icebergds.scan.read import read_partition
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import Snapshot, SnapshotRef
from icebergds.table.read_options import parse_read_options, storage_properties_of
from icebergds.table.reading import make_read_plan, plan_shares
from icebergds.table.time_travel import resolve_snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def load_state(
    path: str,
    *,
    catalog: str | None = None,
    catalog_properties: Mapping[str, str] | None = None,
    storage_properties: Mapping[str, str] | None = None,
    location_map: Mapping[str, str] | None = None,
) -> TableState:
    """The current state of a table, named by its location, a metadata file or an identifier.

    Args:
        path: a location or a metadata file; with `catalog`, an identifier such as `db.table`.
        catalog: the name of the catalog, for messages.
        catalog_properties: `type`, `warehouse` and what else the catalog asks for.
        storage_properties: properties of the storage, such as `s3.endpoint`.
        location_map: prefixes of locations and what stands in for them.

    Raises:
        NoSuchTableError: there is no such table.
        InvalidMetadataError: its metadata is damaged.
        UnsupportedFeatureError: its format version is above 3.
    """
    storage = dict(storage_properties or {})
    if catalog is None:
        if catalog_properties:
            raise InvalidOptionError(
                f"properties {', '.join(catalog_properties)} are a catalog's, but no catalog is "
                "named: set option('catalog', '<name>') or catalog='<name>'"
            )
        return load_from_location(FileIO(storage, location_map or {}), path)
    properties = {**storage, **(catalog_properties or {})}
    identifier = tuple(path.split("."))
    return load_catalog(catalog, properties, location_map=location_map).load(identifier)


def load_table(
    path: str | os.PathLike[str],
    *,
    catalog: str | None = None,
    properties: Mapping[str, str] | None = None,
    location_map: Mapping[str, str] | None = None,
) -> Table:
    """A table by its location, a metadata file, or an identifier in a catalog.

    Args:
        path: a location or a metadata file; with `catalog`, an identifier such as `db.table`.
        catalog: the name of a catalog, for messages.
        properties: of the catalog (`type`, `warehouse`) and the storage (`s3.endpoint`).
        location_map: prefixes of locations and what stands in for them.

    Raises:
        InvalidOptionError: an unknown property.
        NoSuchTableError: there is no such table.

    >>> load_table("db.events", catalog="lake", properties={"warehouse": "s3://bucket/warehouse"})
    ... # doctest: +SKIP
    """
    path = os.fspath(path)
    given = {key.removeprefix("catalog."): value for key, value in (properties or {}).items()}
    storage = storage_properties_of(given)
    rest = {key: value for key, value in given.items() if key not in storage}
    return Table(
        load_state(
            path,
            catalog=catalog,
            catalog_properties=rest,
            storage_properties=storage,
            location_map=location_map,
        )
    )


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it was when it was loaded."""

    _state: TableState

    @property
    def name(self) -> str:
        return self._state.name

    def __repr__(self) -> str:
        return f"Table({self.name!r}, metadata_location={self.metadata_location!r})"

    @property
    def metadata(self) -> TableMetadata:
        return self._state.metadata

    @property
    def metadata_location(self) -> str:
        return self._state.metadata_location

    @property
    def io(self) -> FileIO:
        return self._state.io

    def location(self) -> str:
        """The table's base location, as its metadata has it."""
        return self.metadata.location

    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema()

    def current_snapshot(self) -> Snapshot | None:
        """The newest snapshot of the main branch; None where the table has no rows yet."""
        return self.metadata.current_snapshot()

    def snapshots(self) -> tuple[Snapshot, ...]:
        """Every snapshot that has not expired."""
        return tuple(self.metadata.snapshots)

    def refs(self) -> Mapping[str, SnapshotRef]:
        """Branches and tags by name."""
        return self.metadata.refs

    def scan(
        self,
        filter: str | None = None,
        columns: Sequence[str] | str | None = None,
        snapshot_id: int | None = None,
        *,
        branch: str | None = None,
        tag: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> TableScan:
        """A read of this table: which rows, which columns, which snapshot.

        Args:
            filter: a Spark SQL condition; the rows that come out satisfy it.
            columns: names, dotted for fields inside structs; all data columns by default.
            snapshot_id: the snapshot to read; the current one by default.
            branch: the branch to read instead.
            tag: the tag to read instead.
            options: further options of the read, such as `split-size`.
        """
        return TableScan(
            self._state,
            filter,
            columns if columns is None or isinstance(columns, str) else _listed(columns),
            snapshot_id,
            branch,
            tag,
            dict(options or {}),
        )


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
        """
        state = self._state
        options = parse_read_options({**self._options(), "path": state.metadata_location})
        snapshot, schema = resolve_snapshot(state.metadata, options.time_travel, state.name)
        names = parse_column_list("*" if options.columns is None else options.columns)
        columns = project_columns(state.metadata, schema, names)
        plan = make_read_plan(options, state, schema, columns)
        shares = plan_shares(options, state, snapshot, plan)
        batches = [batch for share in shares for batch in read_partition(plan, share)]
        return pa.Table.from_batches(batches, schema_to_arrow(columns))

    def to_df(self, spark: SparkSession) -> DataFrame:
        """The scan as a DataFrame, from a load of its own, pinned to this state of the table.

        Timestamps without an offset, in the filter and in options, are in the session's time zone.

        Raises:
            InvalidOptionError: an option that is an argument of `scan` as well.
        """
        zone = spark.conf.get("spark.sql.session.timeZone")
        options = {**({"time-zone": zone} if zone else {}), **self._options()}
        return spark.read.format("icebergpy").options(**options).load(self._state.metadata_location)

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


def _listed(names: Sequence[str]) -> str:
    """Names as the option `columns` has them; one with a comma in it is a whole name."""
    return ",".join(f"`{n}`" if "," in n and "`" not in n else n for n in names)
