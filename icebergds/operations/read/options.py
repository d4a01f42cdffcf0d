"""Options of a read, parsed once: names, types, contradictions (`ReadOptions`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from icebergds.catalog.address import TableAddress
from icebergds.errors import InvalidOptionError
from icebergds.expr.literals import parse_timestamp, round_literal
from icebergds.operations.options.values import (
    CATALOG_PREFIX,
    STORAGE_PREFIXES,
    address_of,
    boolean,
    integer,
    known_zone,
    not_negative,
    parse,
    positive,
    refuse_session_tables,
    refuse_unknown,
)
from icebergds.operations.read.change_options import (
    CHANGE_OPTIONS,
    ChangeOptions,
    parse_change_options,
)
from icebergds.operations.read.stream_options import STREAM_OPTIONS
from icebergds.operations.read.time_travel import TimeTravel
from icebergds.scan.plan.splits import SplitOptions
from icebergds.scan.read_plan import DEFAULT_BATCH_SIZE, DEFAULT_DELETE_CACHE_BYTES
from icebergds.spec.types import TIMESTAMPTZ

_KNOWN = (
    "path",
    "catalog",
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
    "split-size",
    "lookback",
    "file-open-cost",
    "batch-size",
    "delete-cache-bytes",
    "pushdown",
    "skip-native-files",
    "for-changes",
    *CHANGE_OPTIONS,
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


# The end of the year 9999, in seconds since 1970.
_LAST_SECOND = 253_402_300_799
_WHOLE_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What `spark.read.format("icebergpy").option(...).load(path)` asks for."""

    address: TableAddress
    time_travel: TimeTravel = field(default_factory=TimeTravel)
    columns: str | None = None
    filter: str | None = None
    time_zone: str | None = None
    # None leaves the choice to the table's properties.
    split_size: int | None = None
    lookback: int | None = None
    file_open_cost: int | None = None
    batch_size: int = DEFAULT_BATCH_SIZE
    delete_cache_bytes: int = DEFAULT_DELETE_CACHE_BYTES
    pushdown: bool = False
    # What is left to our reader in a scan that Spark's own reader takes part in.
    skip_native_files: bool = False
    # `ReadPlan.for_changes`.
    for_changes: bool = False
    # None where a snapshot is read.
    changes: ChangeOptions | None = None

    @property
    def is_feed(self) -> bool:
        """Whether rows come with what was done to them."""
        return self.changes is not None and self.changes.is_feed


def refuse_stream_options(options: Mapping[str, str]) -> None:
    """Refuses options of streams for a read that is none.

    Raises:
        InvalidOptionError: there is one.
    """
    if found := sorted({name.lower() for name in options} & set(STREAM_OPTIONS)):
        raise InvalidOptionError(f"option {found[0]!r} is for readStream, and this is no stream")


def parse_read_options(options: Mapping[str, str]) -> ReadOptions:
    """The options of a load.

    Args:
        options: names in any case, values as Spark hands them over, as text.

    Raises:
        InvalidOptionError: an unknown name (with the nearest known one), a malformed value,
            options that contradict each other, or no path.
    """
    given = {name.lower(): value for name, value in options.items()}
    refuse_session_tables(given)
    if "paths" in given:
        raise InvalidOptionError(f"one load reads one table, not {given['paths']}; union several")
    refuse_unknown(given, _KNOWN, (*STORAGE_PREFIXES, CATALOG_PREFIX))
    path = given.get("path")
    if not path:
        raise InvalidOptionError(
            "no table is named: load('<table location>'), load('<metadata file>'), or "
            "option('catalog', '<name>') with load('<db.table>'). A table created in Spark's "
            "session catalog loses its options; use a temporary view with OPTIONS instead"
        )
    time_zone = parse(given, "time-zone", known_zone, None)
    return ReadOptions(
        address=address_of(given, path),
        time_travel=_parse_time_travel(given, time_zone),
        columns=given.get("columns"),
        filter=given.get("filter"),
        time_zone=time_zone,
        split_size=parse(given, "split-size", positive, None),
        lookback=parse(given, "lookback", positive, None),
        file_open_cost=parse(given, "file-open-cost", not_negative, None),
        batch_size=parse(given, "batch-size", positive, DEFAULT_BATCH_SIZE),
        delete_cache_bytes=parse(
            given, "delete-cache-bytes", not_negative, DEFAULT_DELETE_CACHE_BYTES
        ),
        pushdown=parse(given, "pushdown", boolean, False),
        skip_native_files=parse(given, "skip-native-files", boolean, False),
        for_changes=parse(given, "for-changes", boolean, False),
        changes=parse_change_options(given),
    )


def split_options(options: ReadOptions, properties: Mapping[str, str]) -> SplitOptions:
    """How to pack tasks: an option wins over the table's property, that over the default."""
    default = SplitOptions()

    def choose(option: int | None, name: str, fallback: int, least: int = 1) -> int:
        if option is not None:
            return option
        convert = positive if least else not_negative
        return int(parse(properties, name, convert, fallback))

    return SplitOptions(
        choose(options.split_size, "read.split.target-size", default.split_size),
        choose(options.lookback, "read.split.planning-lookback", default.lookback),
        choose(options.file_open_cost, "read.split.open-file-cost", default.file_open_cost, 0),
    )


def _parse_time_travel(given: Mapping[str, str], time_zone: str | None) -> TimeTravel:
    named = [name for name in _TIME_TRAVEL if name in given]
    if len(named) > 1:
        raise InvalidOptionError(
            f"options {' and '.join(repr(name) for name in named)} contradict each other: each "
            "chooses a snapshot; give one of them"
        )
    return TimeTravel(
        snapshot_id=parse(given, "snapshot-id", integer, None),
        as_of_ms=parse(
            given,
            "timestampasof",
            lambda text: _timestamp_ms(text, time_zone),
            parse(given, "as-of-timestamp", integer, None),
        ),
        branch=given.get("branch"),
        tag=given.get("tag"),
        version=given.get("versionasof"),
    )


def _timestamp_ms(text: str, time_zone: str | None) -> int:
    if _WHOLE_NUMBER.fullmatch(text.strip()):
        # Spark reads a bare number as seconds since the epoch.
        if abs(int(text)) > _LAST_SECOND:
            raise ValueError(
                "a number counts seconds since 1970, and this one lies beyond the year 9999; "
                "'as-of-timestamp' takes milliseconds"
            )
        return int(text) * 1000
    try:
        moment = parse_timestamp(text.strip())
    except ValueError:
        raise ValueError(
            "expected a timestamp such as 2026-01-31T12:00:00Z, or seconds since the epoch"
        ) from None
    if moment.tzinfo is None and time_zone is None:
        raise ValueError(
            "the session's time zone is not known to a data source; give an offset "
            "(2026-01-31T12:00:00Z) or option('time-zone', '<zone>')"
        )
    micros: int = round_literal(TIMESTAMPTZ, moment, time_zone).floor
    return micros // 1000
