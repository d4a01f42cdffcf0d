"""Commits to tables of a REST catalog with requirements and updates.

A server applies the updates to the current table if the requirements hold. So a commit requires
everything about the base that a requirement can name to be unchanged: the table's UUID, schema,
partition spec, sort order, and the snapshots of its branches and tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from icebergds.catalog.base import Identifier
from icebergds.catalog.metadata_writing import next_metadata
from icebergds.catalog.rest.failures import RestError, reading_answer, unknown_outcome
from icebergds.catalog.rest.http import Answer
from icebergds.catalog.rest.known_parts import without_known_parts
from icebergds.catalog.rest.labels import has_labels
from icebergds.catalog.rest.session import RestSession
from icebergds.catalog.rest.tables import last_seen, load_table, table_state
from icebergds.commit.operations import TableState
from icebergds.errors import (
    CommitConflictError,
    IcebergError,
    NoSuchTableError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.json.updates import requirement_to_json, update_to_json
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.updates.requirements import (
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUuid,
    TableRequirement,
    check_requirements,
)
from icebergds.spec.updates.table_updates import AddSnapshot, SetSnapshotRef, TableUpdate

# Because of the current state: a conflict with another commit, or an addition that exists.
_REFUSED = (400, 409)


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """The requirements and updates of a commit, as sent to the server.

    Attributes:
        changed: the table's metadata with the updates.
    """

    requirements: Sequence[TableRequirement]
    updates: Sequence[TableUpdate]
    changed: TableMetadata


@dataclass(frozen=True, slots=True)
class RestTableOperations:
    """`TableOperations` of a table in a REST catalog.

    Attributes:
        io: the storage of the catalog's tables.
        name: the table's name in messages.
    """

    session: RestSession = field(repr=False)
    io: FileIO
    identifier: Identifier
    name: str

    def refresh(self) -> TableState:
        """Implements `TableOperations.refresh`.

        Raises:
            InvalidMetadataError: the server's answer is malformed.
            StorageError: the server does not answer, or refuses to.
        """
        return load_table(self.session, self.io, self.identifier, self.name)

    def refresh_whole(self) -> TableState:
        """Implements `LoadsParts.refresh_whole`; errors are those of `refresh`."""
        return load_table(self.session, self.io, self.identifier, self.name, whole=True)

    def last_seen(self) -> TableState | None:
        """Implements `KeepsLastSeen.last_seen`."""
        return last_seen(self.session, self.io, self.identifier)

    def commit(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> TableState:
        """Implements `TableOperations.commit`.

        Properties, statistics and snapshots without a branch or tag may change concurrently,
        because no requirement covers them. They keep the changes of the other commit.
        """
        prepared = self.prepare(base, requirements, updates)
        if prepared is None:
            return base
        return self.send(prepared.requirements, prepared.updates, base)

    def prepare(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> PreparedCommit | None:
        """Prepares the commit for the server; None if the base already has the updates.

        Finds what the server would refuse or misread, with the table's name in the error.

        Raises:
            CommitConflictError: a requirement does not hold for the base.
            IcebergError: the updates do not fit the base.
        """
        check_requirements(requirements, base.metadata, self.name)
        changed = next_metadata(base.metadata, base.metadata_location, updates)
        if changed is base.metadata:
            return None
        return PreparedCommit(
            _with_whole_base(requirements, base.metadata, updates),
            without_known_parts(updates, base.metadata, changed),
            changed,
        )

    def send(
        self,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
        base: TableState,
    ) -> TableState:
        """Sends a commit; checks the table for the outcome if the answer is lost.

        Raises:
            CommitConflictError: a requirement does not hold.
            NoSuchTableError: there is no such table.
            CommitStateUnknownError: it is unknown whether it was committed.
            StorageError: the server refused it, or was not reached.
        """
        body = self.body(requirements, updates)
        path = self.session.routes.table(self.identifier)
        try:
            answer = self.session.change("POST", path, body, answered=True)
        except RestError as error:
            if error.maybe_done:
                return self._looked_for(updates, base, error)
            if error.status in _REFUSED and (found := self._found(updates, base, error)):
                # A proxy sent it twice, and it conflicted with itself.
                return found
            raise self._refused(error) from None
        return self._committed(answer, updates, base)

    def body(
        self, requirements: Sequence[TableRequirement], updates: Sequence[TableUpdate]
    ) -> dict[str, Any]:
        """The body of a request that commits to this table."""
        return {
            "identifier": {"namespace": list(self.identifier[:-1]), "name": self.identifier[-1]},
            "requirements": [requirement_to_json(each) for each in requirements],
            "updates": [update_to_json(each) for each in updates],
        }

    def _committed(
        self, answer: Answer, updates: Sequence[TableUpdate], base: TableState
    ) -> TableState:
        """The state in the answer to a commit; loads the table if the answer is unusable.

        Raises:
            CommitStateUnknownError: neither the answer nor the table has the updates.
        """
        session, path = self.session, self.session.routes.loaded_table(self.identifier)
        try:
            with reading_answer():
                state = table_state(session, self.io, self.identifier, self.name, answer, base.io)
        except RestError as error:
            return self._looked_for(updates, base, error)
        if not has_snapshots(updates, state):
            # For example a cached answer to another request.
            reason = "the server's answer does not have the new snapshot"
            return self._looked_for(updates, base, RestError(reason, maybe_done=True))
        if not has_labels(answer.body):
            state = replace(state, labels=base.labels)
        session.seen.keep(path, answer, state)
        return state

    def _looked_for(
        self, updates: Sequence[TableUpdate], base: TableState, error: RestError
    ) -> TableState:
        """The table, if it has the updates.

        Raises:
            CommitStateUnknownError: it does not have them, and may still get them.
        """
        state = self._found(updates, base, error)
        if state is None:
            raise unknown_outcome(f"commit to table {self.name}", error)
        return state

    def _found(
        self, updates: Sequence[TableUpdate], base: TableState, error: RestError
    ) -> TableState | None:
        """The table, if it has the updates.

        Raises:
            CommitStateUnknownError: the table cannot be checked.
        """
        try:
            state = self.refresh_whole()
        except NoSuchTableError:
            return None
        except Exception as failure:
            raise unknown_outcome(f"commit to table {self.name}", error, failure) from None
        return state if is_in_effect(updates, base, state) else None

    def _refused(self, error: RestError) -> IcebergError:
        why = error.explanation or error.reason
        match error.status:
            case 404:
                self.session.seen.forget(self.session.routes.table(self.identifier))
                return NoSuchTableError(f"table {self.name} does not exist in its catalog")
            case 409:
                return CommitConflictError(
                    f"table {self.name} was changed by another commit: {why}"
                )
            case _:
                return error


def is_in_effect(updates: Sequence[TableUpdate], base: TableState, state: TableState) -> bool:
    """Whether a table has the changes of a commit, which are applied together or not at all.

    Args:
        base: the state that the commit is based on.
        state: the current state of the table of this name, which may be another table.
    """
    if any(isinstance(each, AddSnapshot) for each in updates):
        return has_snapshots(updates, state)
    if base.metadata.table_uuid != state.metadata.table_uuid:
        return False
    try:
        changed = next_metadata(state.metadata, state.metadata_location, updates)
    except IcebergError:
        return False
    return changed is state.metadata


def has_snapshots(updates: Sequence[TableUpdate], state: TableState) -> bool:
    """Whether a table has all snapshots that a commit adds."""
    added = [each.snapshot.snapshot_id for each in updates if isinstance(each, AddSnapshot)]
    return all(snapshot_id in state.metadata.snapshots_by_id for snapshot_id in added)


def _with_whole_base(
    requirements: Sequence[TableRequirement],
    base: TableMetadata,
    updates: Sequence[TableUpdate],
) -> list[TableRequirement]:
    """The requirements, and those that the base is unchanged as far as they can state it."""
    uuid = base.table_uuid
    created = [
        each.name
        for each in updates
        if isinstance(each, SetSnapshotRef) and each.name not in base.refs
    ]
    whole: list[TableRequirement] = [
        *([] if uuid is None else [AssertTableUuid(uuid)]),
        AssertCurrentSchemaId(base.current_schema_id),
        AssertLastAssignedFieldId(base.last_column_id),
        AssertDefaultSpecId(base.default_spec_id),
        AssertLastAssignedPartitionId(base.last_partition_id),
        AssertDefaultSortOrderId(base.default_sort_order_id),
        *(AssertRefSnapshotId(name, ref.snapshot_id) for name, ref in base.refs.items()),
        *(AssertRefSnapshotId(name, None) for name in created),
    ]
    return list(dict.fromkeys((*requirements, *whole)))
