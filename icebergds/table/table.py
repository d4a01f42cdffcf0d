"""`Table`: one table at one moment, its scans and its changes."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icebergds.commit.delete import Delete
from icebergds.commit.operations import TableState
from icebergds.commit.options import CommitOptions
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.errors import InvalidFilterError, InvalidOptionError
from icebergds.expr.sql import parse_filter
from icebergds.io.fileio import FileIO
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.snapshot import MAIN_BRANCH, Snapshot, SnapshotRef
from icebergds.spec.sort import SortOrder
from icebergds.table.address import TableAddress
from icebergds.table.arguments import (
    integer_argument,
    mapping_argument,
    names_argument,
    path_argument,
    text_argument,
)
from icebergds.table.option_values import storage_properties_of
from icebergds.table.rows import Rows, write_rows
from icebergds.table.scan import TableScan, listed_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
        InvalidOptionError: an unknown property, or an argument of the wrong type.
        NoSuchTableError: there is no such table.

    >>> load_table("db.events", catalog="lake", properties={"warehouse": "s3://bucket/warehouse"})
    ... # doctest: +SKIP
    """
    path = path_argument("path", path)
    catalog = text_argument("catalog", catalog)
    given = {
        key.removeprefix("catalog."): value
        for key, value in mapping_argument("properties", properties).items()
    }
    storage = storage_properties_of(given)
    rest = {key: value for key, value in given.items() if key not in storage}
    locations = mapping_argument("location_map", location_map)
    address = TableAddress(path, catalog, rest, storage, locations)
    return Table(address, address.load())


@dataclass(slots=True)
class Table:
    """A table as it was when it was loaded, refreshed, or changed through this object."""

    _address: TableAddress
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

    def refresh(self) -> Table:
        """Loads the table again, here; returns it."""
        self._state = self._address.load()
        return self

    def location(self) -> str:
        """The table's base location, as its metadata has it."""
        return self.metadata.location

    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema()

    def spec(self) -> PartitionSpec:
        """The partition spec of new files."""
        return self.metadata.spec()

    def sort_order(self) -> SortOrder:
        """The order in which new files should be sorted."""
        return self.metadata.sort_order()

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.properties

    def current_snapshot(self) -> Snapshot | None:
        """The newest snapshot of the main branch; None where the table has no rows yet."""
        return self.metadata.current_snapshot()

    def snapshots(self) -> tuple[Snapshot, ...]:
        """Every snapshot that has not expired."""
        return tuple(self.metadata.snapshots)

    def refs(self) -> Mapping[str, SnapshotRef]:
        """Branches and tags by name."""
        return self.metadata.refs

    def append(
        self,
        df: Rows | DataFrame,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Adds rows, in one commit.

        A DataFrame of Spark is first shuffled as the table's `write.distribution-mode` says, and
        each task's rows are sorted in the table's order.

        Args:
            df: a DataFrame of Spark, or an Arrow table, batch or reader of batches.
            branch: the branch to commit to; main by default.
            snapshot_properties: entries of the snapshot's summary.
            options: further options of the write, such as `target-file-size-bytes`.

        Raises:
            InvalidDataError: the rows do not fit the table.
            CommitConflictError: other commits kept coming first.
            CommitStateUnknownError: whether the commit landed is not known.
        """
        self._write(df, False, _options(options, snapshot_properties, branch=branch))

    def overwrite(
        self,
        df: Rows | DataFrame,
        overwrite_filter: str | None = None,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Replaces all rows, or those of a filter, in one commit.

        Args:
            overwrite_filter: a Spark SQL condition. Whole files are replaced: where it selects only
                some rows of a file, nothing is written.

        Other arguments and errors are those of `append`.

        Raises:
            ValidationError: the filter selects only some rows of a file, or others changed what is
                replaced (option `isolation-level`).
        """
        named = {"branch": branch, "overwrite-filter": overwrite_filter}
        self._write(df, True, _options(options, snapshot_properties, **named))

    def dynamic_partition_overwrite(
        self,
        df: Rows | DataFrame,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Replaces the partitions that the rows are in, in one commit.

        Arguments and errors are those of `overwrite`.
        """
        named = {"branch": branch, "overwrite-mode": "dynamic"}
        self._write(df, True, _options(options, snapshot_properties, **named))

    def delete(
        self,
        delete_filter: str,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        """Deletes the rows of a filter where that takes whole files, in one commit.

        Args:
            delete_filter: a Spark SQL condition.

        Raises:
            ValidationError: the filter selects only some rows of a file.
            CommitConflictError, CommitStateUnknownError: as for `append`.
        """
        action = Delete(parse_filter(delete_filter), case_sensitive=False)
        options = CommitOptions(
            branch or MAIN_BRANCH, None, snapshot_properties or {}, self.metadata.table_uuid
        )
        self._state = commit_snapshot(self._address.operations(), action, options).state

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

        Raises:
            InvalidFilterError: the filter is no text.
            InvalidOptionError: another argument is of the wrong type.
        """
        if filter is not None and not isinstance(filter, str):
            raise InvalidFilterError(
                f"filter {filter!r} is a {type(filter).__name__}; write the condition as text, "
                'such as "id > 5"'
            )
        names = names_argument("columns", columns)
        return TableScan(
            self._state,
            filter,
            names if names is None or isinstance(names, str) else listed_names(names),
            integer_argument("snapshot_id", snapshot_id),
            text_argument("branch", branch),
            text_argument("tag", tag),
            mapping_argument("options", options),
        )

    def _write(self, rows: Rows | DataFrame, overwrite: bool, options: Mapping[str, str]) -> None:
        if isinstance(rows, Rows):
            self._state = write_rows(self._address, rows, options, overwrite=overwrite).state
        else:
            # Spark is imported only where its DataFrames are at hand.
            frames = importlib.import_module("icebergds.spark.frames")
            frames.write_frame(rows, self._address, self._state, options, overwrite=overwrite)
            self.refresh()


def _options(
    options: Mapping[str, str] | None,
    snapshot_properties: Mapping[str, str] | None,
    **named: str | None,
) -> dict[str, str]:
    """Options of a write from the arguments of a method and further ones."""
    further = {name.lower(): value for name, value in (options or {}).items()}
    given = {name: value for name, value in named.items() if value is not None}
    if both := sorted(given.keys() & further.keys()):
        raise InvalidOptionError(
            f"{', '.join(both)}: given as an argument and as an option; give one"
        )
    summary = {f"snapshot-property.{k}": v for k, v in (snapshot_properties or {}).items()}
    return {**further, **given, **summary}
