"""Parses the options of a read of changes: appended rows or the change feed of snapshots.

The change feed has two sets of options: those of Java Iceberg, and those of Spark's change data,
which give its columns Spark's names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.errors import InvalidOptionError
from icebergds.operations.options.moments import microseconds, milliseconds_or_timestamp
from icebergds.operations.options.values import boolean, integer, parse
from icebergds.scan.projection import OWN_FEED, SPARK_FEED, FeedColumns, parse_column_list

CHANGE_OPTIONS = (
    "start-snapshot-id",
    "start-timestamp",
    "start-tag",
    "end-snapshot-id",
    "end-timestamp",
    "end-tag",
    "read-change-feed",
    "net-changes",
    "compute-updates",
    "identifier-columns",
    "skip-overwrite-snapshots",
    "skip-delete-snapshots",
    "streaming-skip-overwrite-snapshots",
    "streaming-skip-delete-snapshots",
)
"""Option names as documented."""

SPARK_CHANGE_OPTIONS = (
    "changes",
    "startingVersion",
    "endingVersion",
    "startingTimestamp",
    "endingTimestamp",
    "startingBoundInclusive",
    "endingBoundInclusive",
    "deduplicationMode",
    "computeUpdates",
)
"""Options of Spark's change data, as documented; each of them reads it."""

_STARTS = ("start-snapshot-id", "start-timestamp", "start-tag")
_ENDS = ("end-snapshot-id", "end-timestamp", "end-tag")
_OF_FEED = ("net-changes", "compute-updates", "identifier-columns")
_OF_APPENDS = ("skip-overwrite-snapshots", "skip-delete-snapshots")


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in a table's history; exactly one of the first four attributes is set.

    Attributes:
        timestamp_ms: milliseconds since 1970.
        version: a snapshot id, a commit version, or the name of a tag or branch.
        is_before: the point is just before the commit of the version.
    """

    snapshot_id: int | None = None
    timestamp_ms: int | None = None
    tag: str | None = None
    version: str | None = None
    is_before: bool = False


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """Which changes a read returns.

    Attributes:
        is_feed: the change feed, with the change type of each row; otherwise only appended rows.
        start: changes after this point; None to start with the oldest known snapshot.
        end: changes up to and including this point; None for the head of the branch.
        net: the net changes of the whole range, as if it were one snapshot.
        identifier_columns: names of the columns that identify the rows of an update; None for the
            table's identifier fields.
        skipped: operations of the snapshots that a read of appended rows skips.
        for_spark: the feed has the columns of Spark's change data.
        keeps_carryovers: the feed has rows that commits replaced by equal ones.
    """

    is_feed: bool
    start: Moment | None = None
    end: Moment | None = None
    net: bool = False
    computes_updates: bool = False
    identifier_columns: tuple[tuple[str, ...], ...] | None = None
    skipped: frozenset[str] = frozenset()
    for_spark: bool = False
    keeps_carryovers: bool = False

    @property
    def feed(self) -> FeedColumns | None:
        """The columns of the feed; None for appended rows."""
        if not self.is_feed:
            return None
        return SPARK_FEED if self.for_spark else OWN_FEED


def parse_change_options(
    given: Mapping[str, str], time_zone: str | None = None
) -> ChangeOptions | None:
    """Parses the options of a read of changes; None if a snapshot is read.

    Args:
        given: options with names in lower case.
        time_zone: the zone of timestamps without an offset; if None, they are refused.

    Raises:
        InvalidOptionError: a value is malformed, or options contradict each other.
    """
    if (for_spark := parse_spark_change_options(given, time_zone)) is not None:
        return for_spark
    is_feed = parse(given, "read-change-feed", boolean, False)
    start, end = _moment(given, _STARTS, time_zone), _moment(given, _ENDS, time_zone)
    if not is_feed:
        _refuse(given, _OF_FEED, "needs read-change-feed=true")
    if not is_feed and start is None:
        needs_start = "needs a start (start-snapshot-id, start-timestamp or start-tag)"
        _refuse(given, (*_ENDS, *_OF_APPENDS), needs_start)
        return None
    _check_order(start, end)
    if not is_feed:
        return ChangeOptions(False, start, end, skipped=_skipped(given))
    _refuse(given, _OF_APPENDS, "contradicts read-change-feed, which reads all snapshots")
    columns, updates = _updates(given, "compute-updates")
    net = parse(given, "net-changes", boolean, False)
    if net and updates:
        raise InvalidOptionError(
            "net-changes contradicts compute-updates: updates are found within one commit, and net "
            "changes span several; give one of them"
        )
    return ChangeOptions(True, start, end, net, updates, columns)


def parse_spark_change_options(
    given: Mapping[str, str], time_zone: str | None = None
) -> ChangeOptions | None:
    """Parses the options of Spark's change data; None if there are none.

    Arguments and errors are those of `parse_change_options`.
    """
    named = [name for name in SPARK_CHANGE_OPTIONS if name.lower() in given]
    if named in ([], ["changes"]) and not parse(given, "changes", boolean, False):
        return None
    if not parse(given, "changes", boolean, True):
        raise InvalidOptionError(f"option {named[1]!r} contradicts changes=false; give one of them")
    own = [name for name in CHANGE_OPTIONS if name in given and name != "identifier-columns"]
    if own:
        raise InvalidOptionError(
            f"options {named[0]!r} and {own[0]!r} contradict each other: the first is one of "
            "Spark's change data, the second of icebergds' own change feed; use the options of one"
        )
    start, end = _bounds(given, time_zone)
    columns, updates = _updates(given, "computeUpdates")
    mode = given.get("deduplicationmode", "dropCarryovers").lower()
    if mode not in ("none", "dropcarryovers", "netchanges"):
        raise _invalid(
            "INVALID_DEDUPLICATION_MODE",
            f"Invalid `deduplicationMode`: '{given['deduplicationmode']}'. Expected one of: none, "
            "dropCarryovers, netChanges.",
        )
    if updates and mode == "none":
        raise _invalid(
            "UPDATE_DETECTION_REQUIRES_CARRY_OVER_REMOVAL",
            "`computeUpdates` cannot be used with `deduplicationMode=none`: it keeps copy-on-write "
            "carry-over pairs that would be silently mislabeled as updates. Set "
            "`deduplicationMode` to `dropCarryovers` or `netChanges`.",
        )
    return ChangeOptions(
        True,
        start,
        end,
        mode == "netchanges",
        updates,
        columns,
        for_spark=True,
        keeps_carryovers=mode == "none",
    )


def _bounds(given: Mapping[str, str], time_zone: str | None) -> tuple[Moment | None, Moment | None]:
    """The start, exclusive, and the end, inclusive, of a range of Spark's change data."""
    by_version, by_time = (
        [name for name in (f"starting{kind}", f"ending{kind}") if name in given]
        for kind in ("version", "timestamp")
    )
    if by_version and by_time:
        raise _invalid(
            "CONFLICTING_RANGE_TYPES",
            "Cannot specify both version and timestamp ranges for CDC queries. Use either "
            "`startingVersion`/`endingVersion` or `startingTimestamp`/`endingTimestamp`.",
        )
    for kind, found in (("Version", by_version), ("Timestamp", by_time)):
        if found and found[0].startswith("ending"):
            raise _invalid(
                f"MISSING_STARTING_{kind.upper()}",
                f"`starting{kind}` is required when `ending{kind}` is specified for CDC queries.",
            )
    from_included = parse(given, "startingboundinclusive", boolean, True)
    to_included = parse(given, "endingboundinclusive", boolean, True)
    start_us = _microseconds(given, "startingtimestamp", time_zone)
    end_us = _microseconds(given, "endingtimestamp", time_zone)
    if start_us is not None and end_us is not None and start_us > end_us:
        raise InvalidOptionError(
            f"startingTimestamp ({given['startingtimestamp']}) is later than endingTimestamp "
            f"({given['endingtimestamp']}); swap them"
        )
    return (
        _spark_moment(given.get("startingversion"), start_us, is_before=from_included),
        _spark_moment(given.get("endingversion"), end_us, is_before=not to_included),
    )


def _spark_moment(version: str | None, micros: int | None, *, is_before: bool) -> Moment | None:
    if version is not None:
        return Moment(version=version.strip(), is_before=is_before)
    if micros is None:
        return None
    # Snapshots have whole milliseconds; the last one that is not later, or that is earlier.
    return Moment(timestamp_ms=(micros - 1 if is_before else micros) // 1000)


def _microseconds(given: Mapping[str, str], name: str, time_zone: str | None) -> int | None:
    text = given.get(name)
    try:
        return None if text is None else microseconds(text, time_zone)
    except ValueError as error:
        raise _invalid(
            "INVALID_TIMESTAMP",
            f"The timestamp '{text}' cannot be cast to TIMESTAMP type for CDC queries: {error}",
        ) from None


def _invalid(condition: str, message: str) -> InvalidOptionError:
    """The error with the name and the text of Spark's error condition."""
    return InvalidOptionError(
        f"[INVALID_CDC_OPTION.{condition}] Invalid Change Data Capture (CDC) option. {message}"
    )


def _updates(
    given: Mapping[str, str], option: str
) -> tuple[tuple[tuple[str, ...], ...] | None, bool]:
    """The identifier columns, and whether updates are computed.

    Args:
        option: the one that asks for updates.
    """
    names = given.get("identifier-columns")
    columns = None if names is None else tuple(parse_column_list(names))
    # As in Java Iceberg, identifier columns imply updates.
    updates: bool = parse(given, option.lower(), boolean, columns is not None)
    if columns is not None and not updates:
        raise InvalidOptionError(
            f"identifier-columns contradicts {option}=false; leave one of them out"
        )
    if updates and parse(given, "pushdown", boolean, False):
        raise InvalidOptionError(
            f"pushdown contradicts {option}: a pushed filter may keep only one row of an "
            "update, which would look like an insert or a delete; leave pushdown out"
        )
    return columns, updates


def _moment(
    given: Mapping[str, str], names: tuple[str, ...], time_zone: str | None
) -> Moment | None:
    named = [name for name in names if name in given]
    if not named:
        return None
    if len(named) > 1:
        raise InvalidOptionError(f"options {' and '.join(named)} contradict each other; give one")
    by_id, by_time, by_tag = names
    return Moment(
        parse(given, by_id, integer, None),
        parse(given, by_time, milliseconds_or_timestamp(time_zone), None),
        given.get(by_tag),
    )


def _check_order(start: Moment | None, end: Moment | None) -> None:
    if start is None or end is None or start.timestamp_ms is None or end.timestamp_ms is None:
        return
    if start.timestamp_ms > end.timestamp_ms:
        raise InvalidOptionError(
            f"start-timestamp ({start.timestamp_ms} ms since 1970) is later than end-timestamp "
            f"({end.timestamp_ms} ms); swap them"
        )


def _skipped(given: Mapping[str, str]) -> frozenset[str]:
    def is_set(name: str) -> bool:
        names = (name, f"streaming-{name}")
        return any(parse(given, each, boolean, False) for each in names)

    kinds = ("overwrite", "delete")
    return frozenset(kind for kind in kinds if is_set(f"skip-{kind}-snapshots"))


def _refuse(given: Mapping[str, str], names: tuple[str, ...], why: str) -> None:
    named = [name for name in names if given.get(name, "false").lower() != "false"]
    if named:
        raise InvalidOptionError(f"option {named[0]!r}: {why}")
