"""Shows a table's metadata as tables (`InspectTable`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict, Unpack

import pyarrow as pa

from icebergds.api.display import shown_in_notebooks
from icebergds.api.scan import listed_names
from icebergds.commit.operations import TableState
from icebergds.errors import InvalidFilterError, InvalidOptionError
from icebergds.operations.metadata_tables.kinds import MetadataTable, metadata_table_of
from icebergds.operations.metadata_tables.plan import plan_metadata_table
from icebergds.operations.metadata_tables.read import read_metadata_table
from icebergds.operations.options.arguments import (
    given_once,
    integer_argument,
    names_argument,
    text_argument,
)
from icebergds.operations.read.options import parse_read_options
from icebergds.suggestions import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Chosen(TypedDict, total=False):
    """Which rows and columns of a metadata table are read.

    filter: a Spark SQL condition, such as `"record_count > 0 and partition.day >= '2026-01-01'"`;
        conditions on partitions and on `content` skip whole manifests. Timestamps need an offset.
    row_filter: PyIceberg's name for `filter`.
    columns: names, dotted for struct fields; all by default. Column statistics are read only if
        they are shown or compared.
    """

    filter: str | None
    row_filter: str | None
    columns: Sequence[str] | str | None


class ChosenOfSnapshot(Chosen, total=False):
    """Adds the snapshot to inspect; set at most one.

    branch, tag: the snapshot of a branch or tag.
    """

    branch: str | None
    tag: str | None


class Selection(ChosenOfSnapshot, total=False):
    """What is read from any metadata table.

    snapshot_id: the snapshot to inspect; the current one by default.
    """

    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class InspectTable:
    """A table's metadata as Arrow tables: `table.inspect.files()`.

    Names, columns and rows are those of Java Iceberg's metadata tables. In Spark they are
    DataFrames, read by tasks: `table.inspect.to_df(spark, "files")`, or
    `spark.read.format("icebergpy").load("db.events.files")`.

    Every method raises:
        InvalidFilterError: the filter cannot be parsed or bound.
        InvalidOptionError: a column does not exist, or an argument is of the wrong type.
        NoSuchSnapshotError: the snapshot, branch or tag does not exist.
        MissingFileError, CorruptFileError: metadata is missing or damaged.
    """

    _state: TableState = field(repr=False)
    _is_staged: bool = field(default=False, repr=False)

    def history(self, **chosen: Unpack[Chosen]) -> pa.Table:
        """Which snapshot became the current one, and when."""
        return self._read(MetadataTable.HISTORY, **chosen)

    def snapshots(self, **chosen: Unpack[Chosen]) -> pa.Table:
        """The snapshots that have not expired."""
        return self._read(MetadataTable.SNAPSHOTS, **chosen)

    def refs(self, **chosen: Unpack[Chosen]) -> pa.Table:
        """Branches and tags."""
        return self._read(MetadataTable.REFS, **chosen)

    def metadata_log_entries(self, **chosen: Unpack[Chosen]) -> pa.Table:
        """The table's metadata files, and the newest snapshot in each."""
        return self._read(MetadataTable.METADATA_LOG_ENTRIES, **chosen)

    def manifests(
        self, snapshot_id: int | None = None, **chosen: Unpack[ChosenOfSnapshot]
    ) -> pa.Table:
        """The manifests of a snapshot."""
        return self._read(MetadataTable.MANIFESTS, snapshot_id=snapshot_id, **chosen)

    def all_manifests(self, **chosen: Unpack[Chosen]) -> pa.Table:
        """The manifests of all snapshots, once for each snapshot that lists them."""
        return self._read(MetadataTable.ALL_MANIFESTS, **chosen)

    def files(self, snapshot_id: int | None = None, **chosen: Unpack[ChosenOfSnapshot]) -> pa.Table:
        """The data and delete files of a snapshot."""
        return self._read(MetadataTable.FILES, snapshot_id=snapshot_id, **chosen)

    def data_files(
        self, snapshot_id: int | None = None, **chosen: Unpack[ChosenOfSnapshot]
    ) -> pa.Table:
        """The data files of a snapshot."""
        return self._read(MetadataTable.DATA_FILES, snapshot_id=snapshot_id, **chosen)

    def delete_files(
        self, snapshot_id: int | None = None, **chosen: Unpack[ChosenOfSnapshot]
    ) -> pa.Table:
        """The delete files of a snapshot."""
        return self._read(MetadataTable.DELETE_FILES, snapshot_id=snapshot_id, **chosen)

    def all_files(self, **chosen: Unpack[Chosen]) -> pa.Table:
        """The data and delete files of all snapshots, once for each manifest that lists them."""
        return self._read(MetadataTable.ALL_FILES, **chosen)

    def all_data_files(self, **chosen: Unpack[Chosen]) -> pa.Table:
        """The data files of all snapshots, once for each manifest that lists them."""
        return self._read(MetadataTable.ALL_DATA_FILES, **chosen)

    def all_delete_files(self, **chosen: Unpack[Chosen]) -> pa.Table:
        """The delete files of all snapshots, once for each manifest that lists them."""
        return self._read(MetadataTable.ALL_DELETE_FILES, **chosen)

    def entries(
        self, snapshot_id: int | None = None, **chosen: Unpack[ChosenOfSnapshot]
    ) -> pa.Table:
        """The entries of a snapshot's manifests, including those of deleted files."""
        return self._read(MetadataTable.ENTRIES, snapshot_id=snapshot_id, **chosen)

    def all_entries(self, **chosen: Unpack[Chosen]) -> pa.Table:
        """The entries of the manifests of all snapshots."""
        return self._read(MetadataTable.ALL_ENTRIES, **chosen)

    def partitions(
        self, snapshot_id: int | None = None, **chosen: Unpack[ChosenOfSnapshot]
    ) -> pa.Table:
        """The partitions of a snapshot, with totals of their files; deletes are not applied."""
        return self._read(MetadataTable.PARTITIONS, snapshot_id=snapshot_id, **chosen)

    def position_deletes(
        self, snapshot_id: int | None = None, **chosen: Unpack[ChosenOfSnapshot]
    ) -> pa.Table:
        """The rows of position delete files and deletion vectors."""
        return self._read(MetadataTable.POSITION_DELETES, snapshot_id=snapshot_id, **chosen)

    def to_df(
        self, spark: SparkSession, metadata_table: str, **chosen: Unpack[Selection]
    ) -> DataFrame:
        """A metadata table as a DataFrame of this state of the table, read by tasks of Spark.

        Args:
            metadata_table: its name, such as `"files"`.
            chosen: rows, columns and snapshot, as for the other methods. Timestamps without an
                offset are in the session's time zone.
        """
        from icebergds.spark.metadata_tables import metadata_table_frame, staged_metadata_table

        kind = metadata_table_of(metadata_table)
        if self._is_staged:
            # Other processes cannot read the metadata of a transaction.
            return staged_metadata_table(spark, self._state, kind, _options(chosen))
        return metadata_table_frame(spark, self._state, kind, _options(chosen))

    def _read(self, kind: MetadataTable, **chosen: Unpack[Selection]) -> pa.Table:
        options = parse_read_options(_options(chosen))
        plan = plan_metadata_table(kind, self._state, options)
        rows = read_metadata_table(plan, options)
        return shown_in_notebooks(rows, f"{kind.value} of {self._state.name}")


def _options(chosen: Selection) -> dict[str, str]:
    """The options of a load.

    Raises:
        InvalidOptionError: an argument is unknown or given twice.
    """
    known = Selection.__annotations__
    for name in chosen:
        if name not in known:
            near = did_you_mean(name, known, shown=repr)
            hint = f"; {near}" if near else "."
            raise InvalidOptionError(
                f"metadata tables have no argument {name!r}{hint} There are {', '.join(known)}"
            )
    condition = given_once("filter", chosen.get("filter"), "row_filter", chosen.get("row_filter"))
    if condition is not None and not isinstance(condition, str):
        raise InvalidFilterError(
            f"filter {condition!r} is a {type(condition).__name__}; expected the condition as SQL "
            'text, such as "record_count > 5"'
        )
    names = names_argument("columns", chosen.get("columns"))
    snapshot_id = integer_argument("snapshot_id", chosen.get("snapshot_id"))
    given = {
        "filter": condition,
        "columns": names if names is None or isinstance(names, str) else listed_names(names),
        "snapshot-id": None if snapshot_id is None else str(snapshot_id),
        "branch": text_argument("branch", chosen.get("branch")),
        "tag": text_argument("tag", chosen.get("tag")),
    }
    return {name: value for name, value in given.items() if value is not None}
