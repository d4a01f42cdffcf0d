"""Writes that may be repeated and are committed once: marked in the table, atomically with them.

A marker is in the summary of its snapshot. It is also a property of the table, set by the same
commit, which outlives the snapshot. One whose snapshot is still there but is no ancestor of the
branch any more was rolled back, and does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from icebergds.errors import AlreadyCommittedError, InvalidMetadataError, ValidationError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import MAIN_BRANCH, Snapshot
from icebergds.spec.updates import SetProperties, TableUpdate

STREAMING_QUERY_ID = "spark.sql.streaming.queryId"
STREAMING_EPOCH_ID = "spark.sql.streaming.epochId"
"""Entries of the summaries of streaming queries, also of those that Java Iceberg writes."""

_APP_ID = "icebergds.txn-app-id"
_VERSION = "icebergds.txn-version"
_MARKERS = ((_APP_ID, _VERSION), (STREAMING_QUERY_ID, STREAMING_EPOCH_ID))
_PROPERTY = "icebergds.txn."


@dataclass(frozen=True, slots=True)
class Transaction:
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

    def marker(self, branch: str, snapshot_id: int | None) -> TableUpdate:
        """What outlives the snapshot, or stands for a write that made none."""
        value = str(self.version) + ("" if snapshot_id is None else f"@{snapshot_id}")
        return SetProperties({_property_of(branch, self.app_id): value})

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
        InvalidMetadataError: a marker is no number.
    """
    ancestors = tuple(_ancestors(metadata, branch))
    found = [
        _number(snapshot.summary[version], f"summary of snapshot {snapshot.snapshot_id}")
        for snapshot in ancestors
        for app, version in _MARKERS
        if snapshot.summary.get(app) == app_id and version in snapshot.summary
    ]
    name = _property_of(branch, app_id)
    if name in metadata.properties:
        version, _, snapshot_id = metadata.properties[name].partition("@")
        marked_id = _number(snapshot_id or "0", f"table property {name}")
        is_ancestor = any(snapshot.snapshot_id == marked_id for snapshot in ancestors)
        if is_ancestor or marked_id not in metadata.snapshots_by_id:
            found.append(_number(version, f"table property {name}"))
    return max(found, default=None)


def _number(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidMetadataError(
            f"{where}: the marker of a transaction has {text!r} where a number is expected"
        ) from None


def _ancestors(metadata: TableMetadata, branch: str) -> Iterator[Snapshot]:
    """The snapshots of a branch from its head on, as far as they have not expired."""
    snapshot = metadata.snapshot_by_ref(branch)
    if snapshot is None and branch not in metadata.refs:
        # A branch that is not there yet starts at main's head.
        snapshot = metadata.snapshot_by_ref(MAIN_BRANCH)
    while snapshot is not None:
        yield snapshot
        parent_id = snapshot.parent_snapshot_id
        snapshot = None if parent_id is None else metadata.snapshots_by_id.get(parent_id)


def _property_of(branch: str, app_id: str) -> str:
    return f"{_PROPERTY}{branch}.{app_id}"
