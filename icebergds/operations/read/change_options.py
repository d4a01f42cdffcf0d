"""Parses the options of a read of changes: appended rows or the change feed of snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.errors import InvalidOptionError
from icebergds.operations.options.moments import milliseconds_or_timestamp
from icebergds.operations.options.values import boolean, integer, parse
from icebergds.scan.projection import parse_column_list

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

_STARTS = ("start-snapshot-id", "start-timestamp", "start-tag")
_ENDS = ("end-snapshot-id", "end-timestamp", "end-tag")
_OF_FEED = ("net-changes", "compute-updates", "identifier-columns")
_OF_APPENDS = ("skip-overwrite-snapshots", "skip-delete-snapshots")


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in a table's history; exactly one attribute is set.

    Attributes:
        timestamp_ms: milliseconds since 1970.
    """

    snapshot_id: int | None = None
    timestamp_ms: int | None = None
    tag: str | None = None


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
    """

    is_feed: bool
    start: Moment | None = None
    end: Moment | None = None
    net: bool = False
    computes_updates: bool = False
    identifier_columns: tuple[tuple[str, ...], ...] | None = None
    skipped: frozenset[str] = frozenset()


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
    names = given.get("identifier-columns")
    columns = None if names is None else tuple(parse_column_list(names))
    net = parse(given, "net-changes", boolean, False)
    # As in Java Iceberg, identifier columns imply compute-updates.
    updates = parse(given, "compute-updates", boolean, columns is not None)
    if columns is not None and not updates:
        raise InvalidOptionError(
            "identifier-columns contradicts compute-updates=false; leave one of them out"
        )
    if updates and parse(given, "pushdown", boolean, False):
        raise InvalidOptionError(
            "pushdown contradicts compute-updates: a pushed filter may keep only one row of an "
            "update, which would look like an insert or a delete; leave pushdown out"
        )
    if net and updates:
        raise InvalidOptionError(
            "net-changes contradicts compute-updates: updates are found within one commit, and net "
            "changes span several; give one of them"
        )
    return ChangeOptions(True, start, end, net, updates, columns)


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
