"""Commits a transaction: the changes of all its steps in one atomic swap."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from icebergds.commit.operations import Change, TableOperations, TableState
from icebergds.commit.retry import commit_change
from icebergds.commit.staging import StagedOperations, applied, snapshot_ids
from icebergds.errors import CommitStateUnknownError, ValidationError
from icebergds.interrupts import interrupts_held
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.types import NestedField
from icebergds.spec.updates.requirements import AssertRefSnapshotId, TableRequirement
from icebergds.spec.updates.table_updates import SetSnapshotRef, TableUpdate

_T = TypeVar("_T")


def commit_staged(staged: StagedOperations) -> TableState:
    """Commits all steps of a transaction; after a conflict, repeats them on the new state.

    Steps that were computed from rows are repeated only on branches that nobody else has moved. If
    it raises, nothing was committed and the files of the steps are deleted, except on
    CommitStateUnknownError.

    Raises:
        ValidationError: another commit changed what a step was computed from.
        CommitConflictError: all retries lost against other commits.
        CommitStateUnknownError: whether the transaction was committed is not known.
        IcebergError: a step does not fit the table as another commit has left it.
    """
    if not staged.steps:
        return staged.base
    steps = TransactionSteps(staged)
    with interrupts_held():
        try:
            committed = commit_change(staged.operations, steps.produce, steps.is_in, staged.base)
        except CommitStateUnknownError:
            raise
        except (Exception, KeyboardInterrupt):
            staged.abandon()
            raise
        steps.settle(committed)
        return committed


class TransactionSteps:
    """The steps of a transaction on one table, repeated by commit attempts on a newer state."""

    def __init__(self, staged: StagedOperations) -> None:
        self._staged = staged
        self._steps = tuple(staged.steps)
        self._made = [step.change for step in self._steps]
        self._base, self._expected = staged.base, staged.refresh()

    @property
    def adds_snapshots(self) -> bool:
        return bool(snapshot_ids(self._made))

    @property
    def changes_table(self) -> bool:
        """Whether the steps change the table."""
        return self.adds_snapshots or _shape(self._base) != _shape(self._expected)

    def produce(self, state: TableState) -> Change:
        """The change of all steps, which are repeated unless the state is the transaction's.

        Raises ValidationError, and what the steps raise.
        """
        staged = self._staged
        if state is not staged.base:
            _refuse_moved_branches(staged, state)
            self._made, self._base, self._expected = [], state, state
            for step in self._steps:
                change = step.produce(self._expected)
                self._made.append(change)
                self._expected = applied(self._expected, change)
            _refuse_other_ids(staged, self._expected)
        return _merged(self._made)

    def is_in(self, state: TableState) -> bool:
        """Whether a table loaded later has the steps."""
        if added := snapshot_ids(self._made):
            return added[-1] in state.metadata.snapshots_by_id
        return _shape(state) == _shape(self._expected)

    def settle(self, committed: TableState) -> None:
        """Tells each step that it was committed."""
        for step in self._steps:
            step.settle(committed)


def in_one_commit(
    operations: TableOperations, base: TableState, run: Callable[[StagedOperations], _T]
) -> tuple[_T, TableState]:
    """Runs a function that commits several times, as one commit or as part of a transaction.

    Errors are those of `run` and `commit_staged`; nothing is committed or staged then.
    """
    of_transaction = operations if isinstance(operations, StagedOperations) else None
    staged = of_transaction or StagedOperations(operations, base)
    mark = staged.mark()
    try:
        result = run(staged)
    except (Exception, KeyboardInterrupt):
        staged.undo(mark)
        raise
    return result, commit_staged(staged) if of_transaction is None else staged.refresh()


def _merged(changes: list[Change]) -> Change:
    """Merges changes; what a later step requires of an earlier one is not required of the table."""
    requirements: dict[object, TableRequirement] = {}
    updates: list[TableUpdate] = []
    for change in changes:
        for requirement in change.requirements:
            ref = requirement.ref if isinstance(requirement, AssertRefSnapshotId) else None
            requirements.setdefault((type(requirement), ref), requirement)
        updates += change.updates
    return Change(list(requirements.values()), _without_passing(updates))


def _without_passing(updates: list[TableUpdate]) -> list[TableUpdate]:
    """Leaves out positions of branches and tags between steps, which no reader has ever seen.

    The log would record them with the time of the commit, and a snapshot that was written after
    them with the earlier time of its step.
    """
    last = {each.name: at for at, each in enumerate(updates) if isinstance(each, SetSnapshotRef)}
    return [
        each
        for at, each in enumerate(updates)
        if not isinstance(each, SetSnapshotRef) or last[each.name] == at
    ]


def _refuse_moved_branches(staged: StagedOperations, state: TableState) -> None:
    """A step may have read rows of an earlier step, which validation does not see."""
    if not _depends_on_staged_rows(staged):
        return
    before, now = staged.base.metadata, state.metadata
    for name in {*before.refs, *now.refs}:
        if before.refs.get(name) != now.refs.get(name) and _writes_to(staged, name):
            raise ValidationError(
                f"table {staged.name}: another commit moved branch {name!r} during this "
                "transaction, in which rows were changed that depend on it; nothing was committed. "
                "Run the transaction again"
            )


def _depends_on_staged_rows(staged: StagedOperations) -> bool:
    has_snapshot = False
    for step in staged.steps:
        if step.depends_on_rows and has_snapshot:
            return True
        has_snapshot = has_snapshot or bool(snapshot_ids([step.change]))
    return False


def _refuse_other_ids(staged: StagedOperations, state: TableState) -> None:
    """Files contain the ids of columns, specs and orders that their transaction assigned."""
    if not snapshot_ids([step.change for step in staged.steps]):
        return
    before, made, now = staged.base.metadata, staged.refresh().metadata, state.metadata
    columns = [
        field_id for field_id in made.schema().fields_by_id if field_id > before.last_column_id
    ]
    specs = [spec for spec in made.partition_specs if spec not in before.partition_specs]
    orders = [order for order in made.sort_orders if order not in before.sort_orders]
    if (
        all(_column(now, field_id) == _column(made, field_id) for field_id in columns)
        and all(spec in now.partition_specs for spec in specs)
        and all(order in now.sort_orders for order in orders)
    ):
        return
    raise ValidationError(
        f"table {staged.name}: another commit added columns, partition fields or a sort order "
        "during this transaction, which wrote files with its own ones; nothing was committed. Run "
        "the transaction again"
    )


def _column(metadata: TableMetadata, field_id: int) -> tuple[str | None, NestedField | None]:
    schema = metadata.schema()
    return schema.find_name(field_id), schema.find_field(field_id)


def _writes_to(staged: StagedOperations, name: str) -> bool:
    after = staged.refresh().metadata.refs.get(name)
    return after != staged.base.metadata.refs.get(name)


def _shape(state: TableState) -> tuple[object, ...]:
    """What steps without snapshots change."""
    metadata = state.metadata
    return (
        metadata.format_version,
        metadata.schema(),
        metadata.spec(),
        metadata.sort_order(),
        metadata.properties,
        metadata.refs,
        metadata.location,
        metadata.statistics,
        metadata.partition_statistics,
    )
