"""Parses and checks the options of a read (`ReadOptions`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from icebergds.catalog.address import TableAddress
from icebergds.errors import InvalidOptionError
from icebergds.expr.nodes import TRUE, Expr
from icebergds.expr.sql import Transforms, parse_filter
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.io.storage_options import STORAGE_OPTIONS, STORAGE_PREFIXES, storage_properties_of
from icebergds.operations.options.moments import (
    milliseconds_or_timestamp,
    seconds_or_timestamp,
)
from icebergds.operations.options.selections import with_selection
from icebergds.operations.options.values import (
    CATALOG_PREFIX,
    address_of,
    boolean,
    hidden_properties,
    integer,
    is_of_address,
    known_zone,
    not_negative,
    one_of,
    parse,
    positive,
    refuse_session_tables,
    refuse_unknown,
)
from icebergds.operations.read.change_options import (
    CHANGE_OPTIONS,
    SPARK_CHANGE_OPTIONS,
    ChangeOptions,
    parse_change_options,
)
from icebergds.operations.read.stream_options import STREAM_OPTIONS
from icebergds.operations.read.time_travel import TimeTravel
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.projection import FeedColumns, parse_column_list
from icebergds.scan.read_plan import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_DELETE_CACHE_BYTES,
    PLAIN_TYPES,
    ShownTypes,
)
from icebergds.spec.snapshot import MAIN_BRANCH

METADATA_TABLE = "metadata-table"
"""The option of a load that reads a metadata table."""

METADATA_AGGREGATES = "metadata-aggregates"
"""The option that, if false, has rows read for aggregates that metadata answers."""

TIME_AS = "time-as"
"""The option that says as what Spark gets times of day."""

_KNOWN = (
    "path",
    "catalog",
    METADATA_TABLE,
    "snapshot-id",
    "as-of-timestamp",
    "branch",
    "tag",
    "versionAsOf",
    "timestampAsOf",
    "columns",
    "filter",
    "time-zone",
    "location-map",
    *STORAGE_OPTIONS,
    "split-size",
    "lookback",
    "file-open-cost",
    "batch-size",
    "delete-cache-bytes",
    "wrong-counts",
    TIME_AS,
    "timestamp-ns-as",
    "pushdown",
    METADATA_AGGREGATES,
    # Options of writes through a temporary view, which gives its options to reads and writes.
    "isolation-level",
    *CHANGE_OPTIONS,
    *SPARK_CHANGE_OPTIONS,
    *STREAM_OPTIONS,
)
_TIME_TRAVEL = (
    "snapshot-id",
    "as-of-timestamp",
    "branch",
    "tag",
    "versionasof",
    "timestampasof",
)
# Options that are known by Spark's names.
_SPELLED = {"versionasof": "versionAsOf", "timestampasof": "timestampAsOf"}

ColumnNames = Sequence[tuple[str, ...]]
"""Columns as the parts of their names; `("*",)` means all data columns."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a read returns, and how it is split into tasks.

    Attributes:
        columns: None for all.
        row_filter: not bound to a schema yet.
        split_size, lookback, file_open_cost: None to use the table's properties.
        pushdown: whether Spark's filters are pushed down.
        for_changes: as in `ReadPlan`.
        changes: which changes to read; None to read a snapshot.
        wrong_counts: what to do if the counts of rows or files in metadata are wrong.
        metadata_aggregates: whether aggregates may be answered from metadata; None to use the
            table's property.
        shown: as in `ReadPlan`.
    """

    time_travel: TimeTravel = field(default_factory=TimeTravel)
    columns: tuple[tuple[str, ...], ...] | None = None
    row_filter: Expr = TRUE
    split_size: int | None = None
    lookback: int | None = None
    file_open_cost: int | None = None
    batch_size: int = DEFAULT_BATCH_SIZE
    delete_cache_bytes: int = DEFAULT_DELETE_CACHE_BYTES
    pushdown: bool = False
    for_changes: bool = False
    changes: ChangeOptions | None = None
    wrong_counts: WrongCounts = WrongCounts.FAIL
    metadata_aggregates: bool | None = None
    shown: ShownTypes = PLAIN_TYPES

    @property
    def feed(self) -> FeedColumns | None:
        """The columns of the change feed; None if it is not read."""
        return None if self.changes is None else self.changes.feed

    @property
    def newest_of(self) -> str | None:
        """The branch whose newest snapshot is read; None for another snapshot, or for changes."""
        branch = self.time_travel.branch or MAIN_BRANCH
        is_newest = replace(self.time_travel, branch=None) == TimeTravel()
        return branch if is_newest and self.changes is None else None


def is_read_option(name: str) -> bool:
    """Whether an option is one of a read, not of a table, its catalog or its storage."""
    known = {option.lower() for option in _KNOWN}
    return name.lower() in known and not is_of_address(name.lower())


def refuse_stream_options(options: Mapping[str, str]) -> None:
    """Refuses streaming options for a batch read.

    Raises:
        InvalidOptionError: there is one.
    """
    if found := sorted({name.lower() for name in options} & set(STREAM_OPTIONS)):
        raise InvalidOptionError(f"option {found[0]!r} needs readStream; this is a batch read")


def parse_load_options(options: Mapping[str, str]) -> tuple[TableAddress, ReadOptions]:
    """Parses the options of `spark.read.format("icebergpy").option(...).load(path)`.

    Args:
        options: names in any case, values as text, as Spark passes them.

    Raises:
        InvalidFilterError: the filter cannot be parsed.
        InvalidOptionError: a name is unknown (the message suggests the nearest), a value is
            malformed, options contradict each other, or there is no path.
    """
    given = {name.lower(): value for name, value in options.items()}
    refuse_session_tables(given)
    if "paths" in given:
        raise InvalidOptionError(
            f"load reads one table, not several ({given['paths']}); load each and union them"
        )
    path = given.get("path")
    if not path:
        raise InvalidOptionError(
            "no table is named; use load('<table location>'), load('<metadata file>'), or "
            "option('catalog', '<name>') with load('<db.table>'). A table created in Spark's "
            "session catalog loses its options; use a temporary view with OPTIONS instead"
        )
    selected = with_selection(given)
    address = address_of(selected, selected["path"])
    return address, parse_read_options(
        {name: value for name, value in selected.items() if not is_of_address(name)}
    )


def parse_read_options(
    options: Mapping[str, str],
    *,
    filter: str | None = None,
    columns: ColumnNames | None = None,
    snapshot_id: int | None = None,
    branch: str | None = None,
    tag: str | None = None,
    time_zone: str | None = None,
) -> ReadOptions:
    """Parses the options of a read of a known table, from text and typed arguments.

    Args:
        options: as text, by name in any case; none that names a table or its storage.
        filter: a Spark SQL condition; only matching rows are returned.
        columns: None for all.
        snapshot_id, branch, tag: choose the snapshot (`TimeTravel`); options may, too, but at most
            one does. For changes only the branch is allowed.
        time_zone: of timestamps without an offset in the filter, if the options have none; if None,
            they are an error.

    Raises:
        InvalidFilterError: the filter cannot be parsed.
        InvalidOptionError: a name is unknown (the message suggests the nearest), a value is
            malformed, an option is also given as an argument, options contradict each other, or
            `columns` is empty.
    """
    given = {name.lower(): value for name, value in options.items()}
    refuse_unknown(given, _KNOWN, (*STORAGE_PREFIXES, CATALOG_PREFIX), is_write=False)
    if METADATA_TABLE in given:
        raise InvalidOptionError(
            f"option {METADATA_TABLE!r} is one of spark.read.load; a loaded table has its metadata "
            "tables in table.inspect, and streams read rows"
        )
    arguments = {
        "filter": filter,
        "columns": columns,
        "snapshot-id": snapshot_id,
        "branch": branch,
        "tag": tag,
    }
    typed = {name for name, value in arguments.items() if value is not None}
    if both := sorted(typed & given.keys()):
        raise InvalidOptionError(
            f"{', '.join(both)}: given as an argument of the scan and as an option; give one"
        )
    chosen = [name for name in _TIME_TRAVEL if name in given or name in typed]
    if len(chosen) > 1:
        named = " and ".join(repr(_SPELLED.get(name, name)) for name in chosen)
        raise InvalidOptionError(
            f"options {named} contradict each other: each chooses a snapshot; give one of them"
        )
    parse(given, "isolation-level", one_of("none", "snapshot", "serializable"), None)
    zone = parse(given, "time-zone", known_zone, time_zone)
    changes = parse_change_options(given, zone)
    if changes is not None and chosen not in ([], ["branch"]):
        raise InvalidOptionError(
            f"option {_SPELLED.get(chosen[0], chosen[0])!r} chooses one snapshot, but this read "
            "returns the changes between snapshots; set the end of the range with end-snapshot-id, "
            "end-timestamp or end-tag"
        )
    if "columns" in given:
        columns = parse_column_list(given["columns"])
    if columns is not None and not columns:
        raise InvalidOptionError("columns: no column is named; name some, or leave columns out")
    condition = given.get("filter", filter)
    as_of_ms = parse(given, "as-of-timestamp", milliseconds_or_timestamp(zone), None)
    return ReadOptions(
        TimeTravel(
            parse(given, "snapshot-id", integer, snapshot_id),
            parse(given, "timestampasof", seconds_or_timestamp(zone), as_of_ms),
            given.get("branch", branch),
            given.get("tag", tag),
            given.get("versionasof"),
        ),
        None if columns is None else tuple(columns),
        TRUE
        if condition is None
        else parse_filter(condition, time_zone=zone, transforms=Transforms.OF_ROWS),
        split_size=parse(given, "split-size", positive, None),
        lookback=parse(given, "lookback", positive, None),
        file_open_cost=parse(given, "file-open-cost", not_negative, None),
        batch_size=parse(given, "batch-size", positive, DEFAULT_BATCH_SIZE),
        delete_cache_bytes=parse(
            given, "delete-cache-bytes", not_negative, DEFAULT_DELETE_CACHE_BYTES
        ),
        pushdown=parse(given, "pushdown", boolean, False),
        changes=changes,
        wrong_counts=WrongCounts(
            parse(given, "wrong-counts", one_of(*WrongCounts), WrongCounts.FAIL)
        ),
        metadata_aggregates=parse(given, METADATA_AGGREGATES, boolean, None),
        shown=ShownTypes(
            times=parse(given, TIME_AS, one_of("bigint", "time"), "bigint") == "time",
            micros=parse(given, "timestamp-ns-as", one_of("bigint", "microseconds"), "bigint")
            == "microseconds",
        ),
    )


def split_options(options: ReadOptions, properties: Mapping[str, str]) -> SplitOptions:
    """How to pack tasks: by the option, else the table property, else the default."""
    return SplitOptions.of(properties, options.split_size, options.lookback, options.file_open_cost)


def scan_options(
    io: FileIO, arguments: Mapping[str, str | None], options: Mapping[str, str]
) -> dict[str, str]:
    """The options of a load that is equivalent to a scan, including those of the table's storage.

    Args:
        io: the table's storage.
        arguments: the arguments of the scan, by option name; None if not given.
        options: further options by name in any case, already checked.
    """
    named = {name: value for name, value in arguments.items() if value is not None}
    further = {name.lower(): value for name, value in options.items()}
    # Relative paths are relative to this process, but the data source runs in another one.
    location_map = {"": io.working_directory, **io.location_map}
    return {
        **hidden_properties(storage_properties_of(io.all_properties)),
        "location-map": json.dumps(location_map),
        **named,
        **further,
    }


def refuse_address_options(options: Mapping[str, str]) -> None:
    """Refuses options that name a table or its storage, which a scan of a loaded table has.

    Raises:
        InvalidOptionError: an option names a table or its storage.
    """
    names = (name.lower() for name in options)
    if of_load := sorted(name for name in names if is_of_address(name)):
        raise InvalidOptionError(
            f"{', '.join(of_load)}: options that name a table or its storage cannot be set for a "
            "scan of a loaded table; set them in load_table"
        )
