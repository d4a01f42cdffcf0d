"""Parses the options of a streaming read: its start, the size of its batches, what it skips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.errors import InvalidOptionError
from icebergds.operations.options.moments import milliseconds_or_timestamp
from icebergds.operations.options.values import (
    boolean,
    integer,
    known_zone,
    one_of,
    parse,
    positive,
)
from icebergds.operations.read.change_options import (
    SPARK_CHANGE_OPTIONS,
    ChangeOptions,
    parse_spark_change_options,
)

MAX_FILES = "streaming-max-files-per-micro-batch"
MAX_ROWS = "streaming-max-rows-per-micro-batch"

STREAM_OPTIONS = (
    "stream-from",
    "stream-from-timestamp",
    "stream-on-expired",
    MAX_FILES,
    MAX_ROWS,
)
"""Options of streaming reads only, as documented."""

_STARTS = ("stream-from", "stream-from-timestamp", "start-snapshot-id")
_SPARK_STARTS = ("startingVersion", "startingTimestamp")
_REFUSED = (
    *("snapshot-id", "as-of-timestamp", "tag", "versionasof", "timestampasof"),
    *("start-timestamp", "start-tag", "end-snapshot-id", "end-timestamp", "end-tag"),
    *("endingversion", "endingtimestamp", "endingboundinclusive"),
    *("net-changes", "compute-updates", "pushdown"),
    *("skip-overwrite-snapshots", "skip-delete-snapshots"),
)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What `spark.readStream.format("icebergpy").option(...).load(path)` asks for.

    Attributes:
        start: `snapshot`: the rows of the newest snapshot, then new ones; `now`: only new ones;
            `earliest`: all from the oldest known snapshot on.
        start_snapshot_id: read what was committed after this snapshot instead.
        start_ms: read what was committed after this time instead, in milliseconds since 1970.
        changes: the change feed to read, with its start if Spark's options give it; None to read
            appended rows.
        skipped: operations of the snapshots that a read of appended rows skips.
        goes_on: continue with the newest snapshot if the one read last has expired.
        max_files, max_rows: limits of a micro-batch, which reads at least one file; None for none.
    """

    start: str = "snapshot"
    start_snapshot_id: int | None = None
    start_ms: int | None = None
    changes: ChangeOptions | None = None
    skipped: frozenset[str] = frozenset()
    goes_on: bool = False
    max_files: int | None = None
    max_rows: int | None = None


def check_stream_options(options: Mapping[str, str]) -> None:
    """Checks streaming options, if there are any, before a query starts.

    Raises:
        InvalidOptionError: as for `parse_stream_options`.
    """
    if any(name.lower() in STREAM_OPTIONS for name in options):
        parse_stream_options(options)


def parse_stream_options(options: Mapping[str, str]) -> StreamOptions:
    """Parses the options that only streams have, from all options of a load.

    Args:
        options: names in any case.

    Raises:
        InvalidOptionError: a value is malformed, a stream does not support an option, or options
            contradict each other.
    """
    given = {name.lower(): value for name, value in options.items()}
    zone = parse(given, "time-zone", known_zone, None)
    changes = parse_spark_change_options(given, zone)
    refused = sorted(given.keys() & set(_REFUSED))
    if changes is None and "identifier-columns" in given:
        refused.append("identifier-columns")
    if refused:
        named = next((name for name in SPARK_CHANGE_OPTIONS if name.lower() == refused[0]), None)
        what = (
            "a stream has no end; read a range of changes with spark.read"
            if named is not None
            else "set the start of the stream with 'stream-from', 'start-snapshot-id' or "
            "'stream-from-timestamp'"
        )
        raise InvalidOptionError(
            f"readStream does not support option {named or refused[0]!r}; {what}"
        )
    if changes is not None and changes.net:
        raise InvalidOptionError(
            "readStream does not support deduplicationMode=netChanges: a stream has no end whose "
            "rows could be compared with those of its start; use dropCarryovers, or spark.read"
        )
    starts = [name for name in (*_STARTS, *_SPARK_STARTS) if name.lower() in given]
    if len(starts) > 1:
        raise InvalidOptionError(
            f"options {' and '.join(map(repr, starts))} contradict each other: each sets the start "
            "of the stream; give one"
        )
    if parse(given, "read-change-feed", boolean, False):
        changes = ChangeOptions(True)
    return StreamOptions(
        parse(given, "stream-from", one_of("snapshot", "now", "earliest"), "snapshot"),
        parse(given, "start-snapshot-id", integer, None),
        parse(given, "stream-from-timestamp", milliseconds_or_timestamp(zone), None),
        changes,
        frozenset(
            kind
            for kind in ("overwrite", "delete")
            if parse(given, f"streaming-skip-{kind}-snapshots", boolean, False)
        ),
        parse(given, "stream-on-expired", one_of("fail", "latest"), "fail") == "latest",
        parse(given, MAX_FILES, positive, None),
        parse(given, MAX_ROWS, positive, None),
    )
