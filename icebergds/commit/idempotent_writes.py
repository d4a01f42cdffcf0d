"""Writes that may be repeated and are committed once: marked in the table, atomically with them.

A mark is in the summary of its snapshot. The newest marks of an application are also in a property
of the table, set by the same commits, which outlives the snapshots. A mark counts for a branch
whose history its snapshot is in, also if it has expired since; rolled back, it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from icebergds.errors import AlreadyCommittedError, InvalidMetadataError, ValidationError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import MAIN_BRANCH, Snapshot
from icebergds.spec.updates.table_updates import SetProperties, TableUpdate

STREAMING_QUERY_ID = "spark.sql.streaming.queryId"
STREAMING_EPOCH_ID = "spark.sql.streaming.epochId"
"""Entries of the summaries of streaming queries, also of those that Java Iceberg writes."""

_APP_ID = "icebergds.txn-app-id"
_VERSION = "icebergds.txn-version"
_SUMMARIES = ((_APP_ID, _VERSION), (STREAMING_QUERY_ID, STREAMING_EPOCH_ID))
_PROPERTY = "icebergds.txn."
# So many writes of an application may be rolled back and expire, and the one before is still known.
_KEPT_MARKS = 10


@dataclass(frozen=True, slots=True)
class IdempotentWrite:
    """A write that is committed once, however often it is repeated.

    Attributes:
        app_id: who writes, such as the id of a streaming query.
        version: of its writes, in ascending order, such as the number of a batch.
        follows: whether the branch must have an earlier one.
    """

    app_id: str
    version: int
    follows: bool = False

    def summary(self) -> dict[str, str]:
        """The entries of the snapshot's summary."""
        return {_APP_ID: self.app_id, _VERSION: str(self.version)}

    def marked(
        self, metadata: TableMetadata, branch: str, snapshot: Snapshot | None
    ) -> TableUpdate:
        """What outlives the snapshot, or stands for a write that made none."""
        name = _property_of(branch, self.app_id)
        mark = f"{self.version}"
        if snapshot is not None:
            mark += f"@{snapshot.snapshot_id}@{snapshot.sequence_number}"
        kept = metadata.properties.get(name, "").split(",")[: _KEPT_MARKS - 1]
        return SetProperties({name: ",".join([mark, *filter(None, kept)])})

    def is_done(self, metadata: TableMetadata, branch: str) -> bool:
        """Whether a branch has this write, or a later one of the same application."""
        newest = newest_version(metadata, branch, self.app_id)
        return newest is not None and newest >= self.version

    def check(self, metadata: TableMetadata, branch: str, table: str) -> None:
        """Refuses a write that is not the next one.

        Raises:
            AlreadyCommittedError: the branch has it, or a later one.
            ValidationError: it lacks the earlier ones that this one follows.
        """
        newest = newest_version(metadata, branch, self.app_id)
        if newest is not None and newest >= self.version:
            raise AlreadyCommittedError(
                f"table {table}, branch {branch}: version {self.version} of {self.app_id!r}, or a "
                "later one, has been committed before"
            )
        if newest is None and self.follows:
            raise ValidationError(
                f"table {table}, branch {branch}, has no batch before {self.version} of the "
                f"streaming query {self.app_id}: the table was made anew or rolled back, or the "
                "checkpoint is that of a query into another table. Start with a new checkpoint, "
                "or, to go on without the earlier batches, set option('on-missing-batches', "
                "'continue')"
            )


def newest_version(metadata: TableMetadata, branch: str, app_id: str) -> int | None:
    """The version of an application's newest write that a branch has; None if it has none.

    Raises:
        InvalidMetadataError: a mark is no number.
    """
    history = tuple(_history(metadata, branch))
    found = [
        _number(snapshot.summary[version], f"summary of snapshot {snapshot.snapshot_id}")
        for snapshot in history
        for app, version in _SUMMARIES
        if snapshot.summary.get(app) == app_id and version in snapshot.summary
    ]
    # A branch may have what was committed to another one that it was made of.
    ending = _property_of("", app_id).removeprefix(_PROPERTY)
    for name, text in metadata.properties.items():
        rest = name.removeprefix(_PROPERTY)
        if rest == name or "." not in rest or rest[rest.index(".") :] != ending:
            continue
        of_branch = name == _property_of(branch, app_id)
        for mark in text.split(","):
            version, *place = (_number(part, f"table property {name}") for part in mark.split("@"))
            if _is_in(metadata, history, *place) if place else of_branch:
                found.append(version)
    return max(found, default=None)


def _is_in(
    metadata: TableMetadata, history: Sequence[Snapshot], snapshot_id: int, number: int = 0
) -> bool:
    """Whether a snapshot, which may have expired, is in a history, the newest first."""
    if snapshot_id in metadata.snapshots_by_id:
        return any(snapshot.snapshot_id == snapshot_id for snapshot in history)
    if metadata.format_version == 1:
        # Nothing tells when it was.
        return True
    later = [snapshot for snapshot in history if snapshot.sequence_number > number]
    if not later:
        return False
    oldest = later[-1]
    is_first = oldest.parent_snapshot_id is None
    followed = None if is_first else metadata.snapshot_by_id(oldest.parent_snapshot_id or 0)
    # What lies before the oldest known snapshot is the history of that one.
    return oldest.parent_snapshot_id == snapshot_id or (not is_first and followed is None)


def _number(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidMetadataError(
            f"{where}: the mark of a transaction has {text!r} where a number is expected"
        ) from None


def _history(metadata: TableMetadata, branch: str) -> Iterator[Snapshot]:
    """The snapshots of a branch from its head on, as far as they have not expired."""
    snapshot = metadata.snapshot_by_ref(branch)
    if snapshot is None and branch not in metadata.refs:
        # A branch that is not there yet starts at main's head.
        snapshot = metadata.snapshot_by_ref(MAIN_BRANCH)
    while snapshot is not None:
        yield snapshot
        parent_id = snapshot.parent_snapshot_id
        snapshot = None if parent_id is None else metadata.snapshot_by_id(parent_id)


def _property_of(branch: str, app_id: str) -> str:
    """A name in which the first dot ends the branch's."""
    return f"{_PROPERTY}{quote(branch, safe='').replace('.', '%2E')}.{app_id}"
