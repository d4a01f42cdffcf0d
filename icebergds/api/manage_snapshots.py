"""Manages the branches, tags and the current snapshot of a table (`Table.manage_snapshots`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from icebergds.api.display import update_text
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.commit.staging import StagedOperations
from icebergds.commit.transaction import in_one_commit
from icebergds.errors import InvalidOptionError, NoSuchSnapshotError
from icebergds.operations.evolution import references
from icebergds.operations.evolution.cherry_pick import cherry_pick, publish_changes
from icebergds.operations.evolution.references import RefEdit, update_references
from icebergds.operations.options.arguments import integer_argument, text_argument
from icebergds.operations.options.moments import moment_or_age
from icebergds.operations.outcomes import nothing_committed
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.updates.apply_updates import apply_updates
from icebergds.spec.updates.table_updates import SetSnapshotRef
from icebergds.spec.values.dates import now_ms

if TYPE_CHECKING:
    from icebergds.api.table_base import TableBase

_Pick: TypeAlias = Callable[[LoadedTable], TableState]


@dataclass(slots=True)
class ManageSnapshots:
    """Changes of a table's branches, tags and current snapshot, committed together.

        with table.manage_snapshots() as manage:
            manage.create_tag("end-of-2025")
            manage.create_branch("audit", max_ref_age_ms=7 * 86_400_000)

    Changes of references raise at once if they do not fit: NoSuchSnapshotError for a snapshot,
    branch or tag that does not exist, AlreadyExistsError, or InvalidOptionError. All are committed
    at the end of the block, or by `commit`; if another commit comes first, they are repeated on the
    table's new state. `cherry_pick` and `publish_changes` are made at the commit.
    """

    _table: TableBase
    _draft: TableMetadata
    _steps: list[list[RefEdit] | _Pick] = field(default_factory=list)

    def __repr__(self) -> str:
        waiting = sum(len(step) if isinstance(step, list) else 1 for step in self._steps)
        return update_text("ManageSnapshots", self._table.name, waiting)

    @classmethod
    def of(cls, table: TableBase) -> ManageSnapshots:
        """Starts changes of the table's current state."""
        return cls(table, table.refresh().metadata)

    def create_branch(
        self,
        branch_name: str | int,
        snapshot_id: int | str | None = None,
        max_ref_age_ms: int | None = None,
        max_snapshot_age_ms: int | None = None,
        min_snapshots_to_keep: int | None = None,
    ) -> Self:
        """Creates a branch.

        Args:
            branch_name: the first two arguments may also come in PyIceberg's order.
            snapshot_id: where it starts; at the current snapshot by default.
            max_ref_age_ms: after which age `expire_snapshots` removes the branch; milliseconds.
            max_snapshot_age_ms: how old snapshots may become that it keeps meanwhile.
            min_snapshots_to_keep: how many it keeps however old they are.
        """
        name, start = _in_order("branch_name", branch_name, snapshot_id)
        ref = SnapshotRef(
            self._snapshot(start),
            RefType.BRANCH,
            integer_argument("min_snapshots_to_keep", min_snapshots_to_keep),
            integer_argument("max_snapshot_age_ms", max_snapshot_age_ms),
            integer_argument("max_ref_age_ms", max_ref_age_ms),
        )
        return self._edit(partial(references.create_reference, name=name, ref=ref))

    def create_tag(
        self,
        tag_name: str | int,
        snapshot_id: int | str | None = None,
        max_ref_age_ms: int | None = None,
    ) -> Self:
        """Creates a tag; arguments are those of `create_branch`."""
        name, start = _in_order("tag_name", tag_name, snapshot_id)
        age = integer_argument("max_ref_age_ms", max_ref_age_ms)
        ref = SnapshotRef(self._snapshot(start), RefType.TAG, max_ref_age_ms=age)
        return self._edit(partial(references.create_reference, name=name, ref=ref))

    def replace_branch(self, branch_name: str, snapshot: int | str) -> Self:
        """Moves a branch to any snapshot, or to the snapshot of another branch or tag."""
        return self._move(_name("branch_name", branch_name), RefType.BRANCH, snapshot)

    def replace_tag(self, tag_name: str, snapshot: int | str) -> Self:
        """Moves a tag to any snapshot, or to the snapshot of another branch or tag."""
        return self._move(_name("tag_name", tag_name), RefType.TAG, snapshot)

    def rename_branch(self, branch_name: str, new_name: str) -> Self:
        """Renames a branch other than main."""
        name, new = _name("branch_name", branch_name), _name("new_name", new_name)
        return self._edit(partial(references.rename_branch, name=name, new_name=new))

    def remove_branch(self, branch_name: str) -> Self:
        """Removes a branch other than main; snapshots that no reference keeps can expire."""
        name = _name("branch_name", branch_name)
        return self._edit(partial(references.remove_reference, name=name, ref_type=RefType.BRANCH))

    def remove_tag(self, tag_name: str) -> Self:
        """Removes a tag."""
        name = _name("tag_name", tag_name)
        return self._edit(partial(references.remove_reference, name=name, ref_type=RefType.TAG))

    def set_max_ref_age_ms(self, name: str, max_ref_age_ms: int | None) -> Self:
        """Sets the age after which a branch or tag is removed; None: by the table's property."""
        age = integer_argument("max_ref_age_ms", max_ref_age_ms)
        return self._retain(name, None, max_ref_age_ms=age)

    def set_max_snapshot_age_ms(self, branch_name: str, max_snapshot_age_ms: int | None) -> Self:
        """Sets the age to which a branch keeps its snapshots; None: by the table's property."""
        age = integer_argument("max_snapshot_age_ms", max_snapshot_age_ms)
        return self._retain(branch_name, RefType.BRANCH, max_snapshot_age_ms=age)

    def set_min_snapshots_to_keep(
        self, branch_name: str, min_snapshots_to_keep: int | None
    ) -> Self:
        """Sets how many snapshots a branch keeps at least; None: by the table's property."""
        number = integer_argument("min_snapshots_to_keep", min_snapshots_to_keep)
        return self._retain(branch_name, RefType.BRANCH, min_snapshots_to_keep=number)

    def fast_forward(self, branch_name: str, to: str) -> Self:
        """Moves a branch forward to the snapshot of another branch or tag."""
        name, target = _name("branch_name", branch_name), _name("to", to)
        return self._edit(partial(references.fast_forward, name=name, to=target))

    fast_forward_branch = fast_forward

    def rollback_to_snapshot(self, snapshot_id: int) -> Self:
        """Makes an ancestor of the current snapshot the current one."""
        wanted = _snapshot_id(snapshot_id)
        return self._edit(partial(references.roll_back, snapshot_id=wanted))

    def rollback_to_timestamp(self, timestamp: Any) -> Self:
        """Makes the newest ancestor from before a time the current snapshot.

        Args:
            timestamp: milliseconds since 1970, a datetime, or a timestamp as text with its offset.
        """
        moment = moment_or_age("timestamp", timestamp)
        if moment is None:
            raise InvalidOptionError("timestamp = None: expected a point in time")
        return self._edit(partial(references.roll_back_to_time, timestamp_ms=moment))

    def set_current_snapshot(
        self, snapshot_id: int | None = None, ref_name: str | None = None
    ) -> Self:
        """Makes any snapshot, or that of a branch or tag, the current one."""
        if (snapshot_id is None) == (ref_name is None):
            raise InvalidOptionError(
                "set_current_snapshot: expected either snapshot_id or ref_name"
            )
        start = snapshot_id if ref_name is None else _name("ref_name", ref_name)
        wanted = self._snapshot(start)
        return self._edit(partial(references.set_current_snapshot, snapshot_id=wanted))

    def cherry_pick(self, snapshot_id: int) -> Self:
        """Applies the changes of one snapshot to main, such as one that was staged.

        A child of the current snapshot becomes the current snapshot itself; the changes of another
        one, if it is an append or replaces partitions, are committed as a new snapshot.
        """
        self._steps.append(partial(cherry_pick, snapshot_id=_snapshot_id(snapshot_id)))
        return self

    cherrypick = cherry_pick

    def publish_changes(self, wap_id: str) -> Self:
        """Applies to main the snapshot that was staged under an id (write option `wap.id`)."""
        self._steps.append(partial(publish_changes, wap_id=_name("wap_id", wap_id)))
        return self

    def commit(self) -> None:
        """Commits the changes; the table's object then has them.

        Raises:
            NoSuchSnapshotError, AlreadyExistsError, InvalidOptionError: a change does not fit the
                table as another commit has left it, or a snapshot cannot be cherry-picked.
            ValidationError: the partitions that a cherry-picked snapshot replaces have changed.
            CommitConflictError: concurrent commits won every retry.
            CommitStateUnknownError: it is not known whether the commit succeeded.
            StorageError: the storage or the catalog's database failed; nothing was committed.
        """
        with nothing_committed(self._table.name):
            self._table._state = _committed(self._table._current(), self._steps)
        self._steps = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()

    def _move(self, name: str, ref_type: RefType, snapshot: int | str) -> Self:
        wanted = self._snapshot(snapshot)
        return self._edit(
            partial(references.move_reference, name=name, ref_type=ref_type, snapshot_id=wanted)
        )

    def _retain(self, given: str, ref_type: RefType | None, **limit: Any) -> Self:
        name = _name("name", given)

        def edit(metadata: TableMetadata) -> list[SetSnapshotRef]:
            ref = references.reference(metadata, name, ref_type)
            return [SetSnapshotRef(name, replace(ref, **limit))]

        return self._edit(edit)

    def _edit(self, edit: RefEdit) -> Self:
        try:
            self._draft = apply_updates(self._draft, edit(self._draft), now_ms=now_ms())
        except references.OF_REFERENCES as error:
            raise type(error)(f"table {self._table.name}: {error}") from None
        if self._steps and isinstance(self._steps[-1], list):
            self._steps[-1].append(edit)
        else:
            self._steps.append([edit])
        return self

    def _snapshot(self, given: int | str | None) -> int:
        """The id of a snapshot, given by id, branch or tag; the current one for None."""
        if isinstance(given, str):
            try:
                return references.reference(self._draft, given, None).snapshot_id
            except NoSuchSnapshotError as error:
                raise NoSuchSnapshotError(f"table {self._table.name}: {error}") from None
        if given is not None:
            return _snapshot_id(given)
        current = self._draft.current_snapshot_id
        if current is None:
            raise NoSuchSnapshotError(
                f"table {self._table.name}: it has no snapshot yet, which a branch or tag needs; "
                "write rows first, to a branch with the option 'create-branch' = 'true'"
            )
        return current


def _committed(table: LoadedTable, steps: list[list[RefEdit] | _Pick]) -> TableState:
    if len(steps) == 1 and isinstance(steps[0], list):
        return update_references(table, steps[0])

    def run(staged: StagedOperations) -> None:
        for step in steps:
            at = replace(table, operations=staged, state=staged.refresh())
            if isinstance(step, list):
                update_references(at, step)
            else:
                step(at)

    _, state = in_one_commit(table.operations, table.state, run)
    return state


def _in_order(what: str, first: Any, second: Any) -> tuple[str, int | str | None]:
    """A name and a snapshot, given in either order."""
    if isinstance(first, int) and isinstance(second, str):
        first, second = second, first
    return _name(what, first), second


def _name(what: str, given: Any) -> str:
    name = text_argument(what, given)
    if not name:
        raise InvalidOptionError(f"{what} = {given!r}: expected a name")
    return name


def _snapshot_id(given: Any) -> int:
    number = integer_argument("snapshot_id", given)
    if number is None:
        raise InvalidOptionError("snapshot_id = None: expected the id of a snapshot")
    return number
