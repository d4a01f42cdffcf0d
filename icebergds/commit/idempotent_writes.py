"""Makes a repeated write commit once, by recording its application and version in the table.

The snapshot's summary records the write. A table property, set by the same commit, lists the newest
versions of each application and outlives expired snapshots. A branch has a write if the write's
snapshot is in the branch's history, expired or not; a write that was rolled back does not count.
Properties of streaming queries that have not written for long are removed by other queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from icebergds.errors import AlreadyCommittedError, InvalidMetadataError, ValidationError
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import RefType, Snapshot
from icebergds.spec.table_properties import TXN_MAX_AGE_MS
from icebergds.spec.updates.table_updates import RemoveProperties, SetProperties, TableUpdate
from icebergds.spec.values.dates import now_ms

STREAMING_QUERY_ID = "spark.sql.streaming.queryId"
STREAMING_EPOCH_ID = "spark.sql.streaming.epochId"
"""Summary entries of snapshots of streaming queries; Java Iceberg writes the same ones."""

_APP_ID = "icebergds.txn-app-id"
_VERSION = "icebergds.txn-version"
_SUMMARIES = ((_APP_ID, _VERSION), (STREAMING_QUERY_ID, STREAMING_EPOCH_ID))
_PROPERTY = "icebergds.txn."
# The property lists several versions, so that an earlier one is still known if the newest ones are
# rolled back and their snapshots expire.
_KEPT_VERSIONS = 10
# Begins the last part of a record that may be removed; its time in milliseconds follows.
_TIME = "t"


@dataclass(frozen=True, slots=True)
class IdempotentWrite:
    """Identifies a write that is committed once, however often it is repeated.

    Attributes:
        app_id: the application that writes, such as the id of a streaming query.
        version: ascending number of the application's write, such as the id of a micro-batch.
        follows: whether the branch must have an earlier write of the application.
        is_batch: whether this is a batch of a streaming query. Such a query refuses to go on if its
            record is missing, so the record is kept for a limited time only.
    """

    app_id: str
    version: int
    follows: bool = False
    is_batch: bool = False

    def summary(self) -> dict[str, str]:
        """The entries that record the write in the snapshot's summary."""
        return {_APP_ID: self.app_id, _VERSION: str(self.version)}

    def property_updates(
        self, metadata: TableMetadata, branch: str, snapshot: Snapshot | None
    ) -> list[TableUpdate]:
        """Records the write in the table property; removes those of queries that ended long ago.

        Args:
            snapshot: the snapshot that the write committed; None if it committed none.
        """
        name = _property_of(branch, self.app_id)
        record = f"{self.version}"
        if snapshot is not None:
            record += f"@{snapshot.snapshot_id}@{snapshot.sequence_number}"
        if self.is_batch:
            record += f"@{_TIME}{now_ms()}"
        kept = metadata.properties.get(name, "").split(",")[: _KEPT_VERSIONS - 1]
        updates: list[TableUpdate] = [
            SetProperties({name: ",".join([record, *filter(None, kept)])})
        ]
        old = _outdated(metadata, now_ms()) if self.is_batch else ()
        if others := tuple(other for other in old if other != name):
            updates.append(RemoveProperties(others))
        return updates

    def is_committed(self, metadata: TableMetadata, branch: str) -> bool:
        """Whether a branch has this write, or a later one of the same application."""
        newest = newest_version(metadata, branch, self.app_id)
        return newest is not None and newest >= self.version

    def validate(self, metadata: TableMetadata, branch: str, table: str) -> None:
        """Refuses a write that is not the application's next one.

        Raises:
            AlreadyCommittedError: the branch has this write, or a later one.
            ValidationError: this write follows earlier ones, and the branch has none of them.
        """
        newest = newest_version(metadata, branch, self.app_id)
        if newest is not None and newest >= self.version:
            raise AlreadyCommittedError(
                f"table {table}, branch {branch}: version {self.version} of {self.app_id!r}, or a "
                "later one, is already committed"
            )
        if newest is None and self.follows:
            raise ValidationError(
                f"table {table}, branch {branch}, has no batch before {self.version} of the "
                f"streaming query {self.app_id}: the table was re-created or rolled back, or the "
                "checkpoint belongs to a query into another table. Start with a new checkpoint, "
                "or, to go on without the earlier batches, set option('on-missing-batches', "
                "'continue')"
            )


def newest_version(metadata: TableMetadata, branch: str, app_id: str) -> int | None:
    """The newest version of an application's writes that a branch has; None if it has none.

    Raises:
        InvalidMetadataError: a recorded version is not a number.
    """
    history = metadata.lineage(metadata.head_of(branch))
    found = [
        _number(snapshot.summary[version], f"summary of snapshot {snapshot.snapshot_id}")
        for snapshot in history
        for app, version in _SUMMARIES
        if snapshot.summary.get(app) == app_id and version in snapshot.summary
    ]
    # A branch also has what was committed to the branch that it was created from.
    ending = _property_of("", app_id).removeprefix(_PROPERTY)
    for name, text in metadata.properties.items():
        rest = name.removeprefix(_PROPERTY)
        if rest == name or "." not in rest or rest[rest.index(".") :] != ending:
            continue
        of_branch = name == _property_of(branch, app_id)
        for record in text.split(","):
            version, *snapshot_key = (
                _number(part, f"table property {name}")
                for part in record.split("@")
                if not part.startswith(_TIME)
            )
            if _is_in(metadata, history, *snapshot_key) if snapshot_key else of_branch:
                found.append(version)
    return max(found, default=None)


def version_before(metadata: TableMetadata, branch: str, app_id: str, version: int) -> int | None:
    """The version recorded for an application on a branch before another one; None if none.

    Raises:
        InvalidMetadataError: a recorded version is not a number.
    """
    name = _property_of(branch, app_id)
    records = filter(None, metadata.properties.get(name, "").split(","))
    versions = [_number(record.split("@")[0], f"table property {name}") for record in records]
    return max((known for known in versions if known < version), default=None)


@dataclass(frozen=True, slots=True)
class ForgottenWrite:
    """An application whose newest version on a branch has changed."""

    branch: str
    app_id: str
    before: int | None
    after: int | None


def forgotten_writes(before: TableMetadata, after: TableMetadata) -> list[ForgottenWrite]:
    """The applications whose newest versions are not known any more after snapshots expired.

    This concerns writers that record versions in summaries only, as Java Iceberg does, and versions
    that were rolled back, if nothing is left that shows it.

    Raises:
        InvalidMetadataError: a recorded version is not a number.
    """
    expired = before.snapshots_by_id.keys() - after.snapshots_by_id.keys()
    summaries = [before.snapshots_by_id[snapshot_id].summary for snapshot_id in expired]
    in_summaries = {s[app] for s in summaries for app, _ in _SUMMARIES if app in s}
    in_properties = {
        name.removeprefix(_PROPERTY).partition(".")[2]
        for name in before.properties
        if name.startswith(_PROPERTY)
    }
    branches = [name for name, ref in after.refs.items() if ref.ref_type is RefType.BRANCH]
    pairs = ((b, app) for b in branches for app in sorted(in_summaries | in_properties))
    found = (
        ForgottenWrite(*pair, newest_version(before, *pair), newest_version(after, *pair))
        for pair in pairs
    )
    return [write for write in found if write.before != write.after]


def _outdated(metadata: TableMetadata, now_ms: int) -> Iterator[str]:
    """The properties of streaming queries whose newest record is too old to be kept.

    Raises:
        InvalidOptionError: the property that says how old is malformed.
    """
    max_age = TXN_MAX_AGE_MS.of(metadata.properties)
    for name, text in metadata.properties.items():
        newest = text.split(",")[0].split("@")[-1]
        if not (name.startswith(_PROPERTY) and newest.startswith(_TIME)):
            continue
        if _number(newest[1:], f"table property {name}") < now_ms - max_age:
            yield name


def _is_in(
    metadata: TableMetadata, history: Sequence[Snapshot], snapshot_id: int, number: int = 0
) -> bool:
    """Whether a snapshot, which may have expired, is in a history (newest first)."""
    if snapshot_id in metadata.snapshots_by_id:
        return any(snapshot.snapshot_id == snapshot_id for snapshot in history)
    if metadata.format_version == 1:
        # Without sequence numbers, the order of snapshots is not known: count it as in the history.
        return True
    later = [snapshot for snapshot in history if snapshot.sequence_number > number]
    if not later:
        return False
    oldest = later[-1]
    is_first = oldest.parent_snapshot_id is None
    followed = None if is_first else metadata.snapshot_by_id(oldest.parent_snapshot_id or 0)
    # The expired snapshots before the oldest known one are its ancestors.
    return oldest.parent_snapshot_id == snapshot_id or (not is_first and followed is None)


def _number(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidMetadataError(
            f"{where}: {text!r} is not a number; expected the version of an idempotent write"
        ) from None


def _property_of(branch: str, app_id: str) -> str:
    """The property of a branch and application; the first dot after the prefix ends the branch."""
    return f"{_PROPERTY}{quote(branch, safe='').replace('.', '%2E')}.{app_id}"
