"""Options of a streaming read: where it starts, what it reads at a time, what it leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icebergds.errors import InvalidOptionError
from icebergds.operations.options.values import boolean, integer, one_of, parse, positive

MAX_FILES = "streaming-max-files-per-micro-batch"
MAX_ROWS = "streaming-max-rows-per-micro-batch"

STREAM_OPTIONS = (
    "stream-from",
    "stream-from-timestamp",
    "stream-on-expired",
    MAX_FILES,
    MAX_ROWS,
)
"""Options that no other read has, as documented."""

_STARTS = ("stream-from", "stream-from-timestamp", "start-snapshot-id")
_SHARED = (
    "start-snapshot-id",
    "read-change-feed",
    "streaming-skip-overwrite-snapshots",
    "streaming-skip-delete-snapshots",
)
_REFUSED = (
    *("snapshot-id", "as-of-timestamp", "tag", "versionasof", "timestampasof"),
    *("start-timestamp", "start-tag", "end-snapshot-id", "end-timestamp", "end-tag"),
    *("net-changes", "compute-updates", "identifier-columns", "pushdown"),
    *("skip-overwrite-snapshots", "skip-delete-snapshots"),
)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What `spark.readStream.format("icebergpy").option(...).load(path)` asks for.

    Attributes:
        start: `snapshot`, the rows of the newest snapshot and what comes then; `now`, what comes;
            `earliest`, all that the table knows.
        start_snapshot_id: read what came after this snapshot instead.
        start_ms: read what came after this time instead, in milliseconds since 1970.
        is_feed: read what was inserted and deleted, not only what was appended.
        skipped: operations of snapshots that a read of appended rows leaves out.
        goes_on: with the newest snapshot, where the one that was read last has expired.
        max_files, max_rows: of a micro-batch, which has one file at least; None for no limit.
    """

    start: str = "snapshot"
    start_snapshot_id: int | None = None
    start_ms: int | None = None
    is_feed: bool = False
    skipped: frozenset[str] = frozenset()
    goes_on: bool = False
    max_files: int | None = None
    max_rows: int | None = None


def check_stream_options(options: Mapping[str, str]) -> None:
    """Checks options of streams where there are any, long before a query starts.

    Raises:
        InvalidOptionError: as `split_stream_options` does.
    """
    if any(name.lower() in STREAM_OPTIONS for name in options):
        split_stream_options(options)


def split_stream_options(options: Mapping[str, str]) -> tuple[StreamOptions, dict[str, str]]:
    """The options of the stream, and the others: which table, which columns, which rows.

    Args:
        options: names in any case.

    Raises:
        InvalidOptionError: a malformed value, one that no stream can have, or a contradiction.
    """
    given = {name.lower(): value for name, value in options.items()}
    if refused := sorted(given.keys() & set(_REFUSED)):
        raise InvalidOptionError(
            f"option {refused[0]!r} is not for readStream, which starts where 'stream-from', "
            "'start-snapshot-id' or 'stream-from-timestamp' says and has no end"
        )
    starts = [name for name in _STARTS if name in given]
    if len(starts) > 1:
        raise InvalidOptionError(
            f"options {' and '.join(map(repr, starts))} contradict each other: each says where "
            "the stream starts; give one"
        )
    is_feed = parse(given, "read-change-feed", boolean, False)
    stream = StreamOptions(
        parse(given, "stream-from", one_of("snapshot", "now", "earliest"), "snapshot"),
        parse(given, "start-snapshot-id", integer, None),
        parse(given, "stream-from-timestamp", integer, None),
        is_feed,
        frozenset(
            kind
            for kind in ("overwrite", "delete")
            if parse(given, f"streaming-skip-{kind}-snapshots", boolean, False)
        ),
        parse(given, "stream-on-expired", one_of("fail", "latest"), "fail") == "latest",
        parse(given, MAX_FILES, positive, None),
        parse(given, MAX_ROWS, positive, None),
    )
    own = {*STREAM_OPTIONS, *_SHARED}
    return stream, {name: value for name, value in given.items() if name not in own}
