"""Commits to tables of a REST catalog by requirements and updates.

A server applies the updates to the table as it finds it, if the requirements hold. So a commit
requires that all of the base is unchanged that a requirement can name: the table's UUID, schema,
partition spec, sort order, and the snapshots of its branches and tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from icebergds.catalog.base import Identifier
from icebergds.catalog.metadata_writing import next_metadata
from icebergds.catalog.rest.failures import RestError, reading_answer, unknown_outcome
from icebergds.catalog.rest.http import Answer
from icebergds.catalog.rest.known_parts import without_known_parts
from icebergds.catalog.rest.metrics import report_commit
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

# By what a commit finds: it conflicts with another one, or what it adds is there.
_REFUSED = (400, 409)


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """What a commit requires and changes, as the server is asked for it.

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

        Properties, statistics and snapshots without a name may change meanwhile: nothing can
        require that they do not. They stay as the other commit left them.
        """
        prepared = self.prepare(base, requirements, updates)
        if prepared is None:
            return base
        state = self.send(prepared.requirements, prepared.updates, base)
        report_commit(self.session, self.identifier, state, updates)
        return state

    def prepare(
        self,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> PreparedCommit | None:
        """What to ask the server for; None if the base has it already.

        What the server would refuse or misread is found here, with the table's name.

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
        """Sends a commit; looks for its outcome if the answer is lost.

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
                # A proxy sent it twice, and it conflicts with itself.
                return found
            raise self._refused(error) from None
        return self._committed(answer, updates, base)

    def body(
        self, requirements: Sequence[TableRequirement], updates: Sequence[TableUpdate]
    ) -> dict[str, Any]:
        """A commit to this table as the server gets it."""
        return {
            "identifier": {"namespace": list(self.identifier[:-1]), "name": self.identifier[-1]},
            "requirements": [requirement_to_json(each) for each in requirements],
            "updates": [update_to_json(each) for each in updates],
        }

    def _committed(
        self, answer: Answer, updates: Sequence[TableUpdate], base: TableState
    ) -> TableState:
        """The state in the answer to a commit; loaded if the answer cannot be used.

        Raises:
            CommitStateUnknownError: neither the answer nor the table has the updates.
        """
        session, path = self.session, self.session.routes.table(self.identifier)
        try:
            with reading_answer():
                state = table_state(session, self.io, self.identifier, self.name, answer, base.io)
        except RestError as error:
            return self._looked_for(updates, base, error)
        if not has_snapshots(updates, state):
            # Such as the answer to another request, from a cache.
            reason = "the server's answer does not have the new snapshot"
            return self._looked_for(updates, base, RestError(reason, maybe_done=True))
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
            CommitStateUnknownError: it cannot be looked for.
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
        state: that of the table with this name now, which may be another one.
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
    """The requirements, and that what they can name of the base is unchanged."""
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
