"""Audits a table after each commit, by a model of its rows that knows what was acknowledged."""

from __future__ import annotations

from dataclasses import dataclass, field

from icebergds.api.table import Table
from icebergds.commit.operations import TableOperations, TableState
from icebergds.operations.maintenance.verify import findings as verified
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import RefType, Snapshot
from icebergds.testing.simulation.determinism import drawn
from icebergds.testing.simulation.findings import Finding, FindingKind
from icebergds.testing.simulation.kept_rows import KeptRows
from icebergds.testing.simulation.places import Place
from icebergds.testing.simulation.reachable import files_of, stored_files
from icebergds.testing.simulation.row_checks import changed_ids, core_of, differences, wrong_ids
from icebergds.testing.simulation.rows import (
    GROUP,
    ID,
    VALUE,
    Changed,
    ModelSnapshot,
    as_read,
)
from icebergds.testing.simulation.steps import (
    ACCOUNTS,
    MONEY,
    STEP_PROPERTY,
    Outcome,
    Shared,
    Step,
)

# What concurrent commits may leave, and costs time only.
_ALLOWED = (verified.FindingKind.DANGLING_DELETES,)
_SOURCE = "source-snapshot-id"
_LINEAGE = ("_row_id", "_last_updated_sequence_number")


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """How much is audited.

    Attributes:
        rows: which part of the commits have their rows read.
        feeds: which part have their changes read.
        every_state: whether it sees every state that the table has.
    """

    rows: float = 1.0
    feeds: float = 0.15
    every_state: bool = True


@dataclass(slots=True)
class Auditor:
    """Compares each state of the table with what the steps have done.

    Attributes:
        steps: those that work on the table.
        findings: of this table, or of all that have this list.
        commits: how many states of the table were seen.
        reads: how often the rows of a snapshot were compared.
    """

    place: Place
    shared: Shared
    steps: dict[int, Step]
    options: AuditOptions
    findings: list[Finding] = field(default_factory=list)
    commits: int = 0
    reads: int = 0
    _operations: TableOperations | None = None
    _seen: TableState | None = None
    _rows: KeptRows = field(default_factory=KeptRows)

    def add(self, step: Step) -> None:
        """Makes a step known, before it may commit."""
        self.steps[step.number] = step

    def observe(self, number: int) -> None:
        """Looks whether the table has changed; called whenever a step may have changed it."""
        if self._operations is None:
            self._operations = self.place.operations()
        try:
            state = self._operations.refresh()
        except Exception as error:
            self.tell(FindingKind.UNREADABLE, number, f"the table cannot be loaded: {error!r}")
            return
        before = self._seen
        if before is not None and before.metadata_location == state.metadata_location:
            return
        self._seen = state
        self.commits += 1
        self._check_metadata(number, before, state)
        self._check_snapshots(number, state, self._take_snapshots(number, state))
        self._check_references(number, before, state.metadata)
        self.shared.heads.clear()
        self.shared.heads |= {
            name: ref.snapshot_id
            for name, ref in state.metadata.refs.items()
            if ref.ref_type is RefType.BRANCH and ref.snapshot_id in self.shared.model.snapshots
        }

    def ended(self, step: Step, snapshot_id: int | None) -> None:
        """Checks what a step, or the process that ran it, says of its commit.

        Args:
            snapshot_id: that it says it has committed.
        """
        self.observe(step.number)
        number, found = step.number, step.committed
        if step.outcome is Outcome.DONE:
            if snapshot_id is not None and snapshot_id not in found:
                self.tell(
                    FindingKind.LOST_COMMIT,
                    number,
                    f"{step}, but the table never had its snapshot {snapshot_id}",
                )
            elif step.snapshots and len(found) < step.least and step.effect is not None:
                self.tell(FindingKind.COMMITTED_IN_PART, number, f"{step} with snapshots {found}")
        elif step.outcome is Outcome.NOTHING and step.batch is not None:
            self._check_batch(step)
        self._check_failed(step)

    def check_all(self, number: int, *, alone: bool) -> None:
        """Checks every kept snapshot, the files, and what `Table.verify` finds.

        Args:
            alone: whether no process runs, and the orphan files were removed.
        """
        self.observe(number)
        state = self._seen
        if state is None:
            return
        model, self._rows = self.shared.model.snapshots, KeptRows()
        for snapshot in state.metadata.snapshots:
            if snapshot.snapshot_id in model:
                self._check_rows(number, state, snapshot, with_feed=False)
        try:
            self._check_files(number, state, alone=alone)
            found = self._table(state).verify("rows", progress=False)
        except Exception as error:
            self.tell(FindingKind.UNREADABLE, number, f"the table cannot be verified: {error!r}")
            return
        wrong = [str(each) for each in found.findings if each.kind not in _ALLOWED]
        if wrong:
            text = f"{len(wrong)} findings of verify: {'; '.join(wrong[:3])}"
            self.tell(FindingKind.VERIFICATION, number, text)
        if alone:
            self.shared.model.forget_rows({s.snapshot_id for s in state.metadata.snapshots})

    # Metadata.

    def _check_metadata(self, number: int, before: TableState | None, state: TableState) -> None:
        metadata = state.metadata
        known = {snapshot.snapshot_id for snapshot in metadata.snapshots}
        for name, ref in metadata.refs.items():
            if ref.snapshot_id not in known:
                text = f"{name} is at snapshot {ref.snapshot_id}, which the table does not have"
                self.tell(FindingKind.UNREADABLE, number, text)
        if before is None:
            return
        old = before.metadata
        log = [entry.metadata_file for entry in metadata.metadata_log]
        if self.options.every_state and before.metadata_location not in log:
            text = f"{state.metadata_location} does not follow {before.metadata_location}: {log}"
            self.tell(FindingKind.METADATA_LOG, number, text)
        if metadata.last_sequence_number < old.last_sequence_number:
            text = f"the last sequence number fell from {old.last_sequence_number} to "
            text += str(metadata.last_sequence_number)
            self.tell(FindingKind.SEQUENCE_NUMBERS, number, text)
        if metadata.next_row_id < old.next_row_id:
            text = f"the next row id fell from {old.next_row_id} to {metadata.next_row_id}"
            self.tell(FindingKind.ROW_IDS, number, text)

    def _take_snapshots(self, number: int, state: TableState) -> list[Snapshot]:
        """Adds new snapshots to the model."""
        model, metadata = self.shared.model, state.metadata
        new = [s for s in metadata.snapshots if s.snapshot_id not in model.snapshots]
        for snapshot in new:
            parent = snapshot.parent_snapshot_id
            if parent is not None and parent not in model.snapshots:
                text = f"the parent of snapshot {snapshot.snapshot_id} was never seen"
                self.tell(FindingKind.UNKNOWN_SNAPSHOT, number, text)
                parent = None
            step = self.steps.get(self._step_of(snapshot))
            if step is None or step.effect is None:
                text = f"snapshot {snapshot.snapshot_id}: {dict(snapshot.summary)}"
                self.tell(FindingKind.UNKNOWN_SNAPSHOT, number, text)
                model.snapshots[snapshot.snapshot_id] = ModelSnapshot(
                    snapshot.snapshot_id, parent, -1, model.rows_of(parent)
                )
                continue
            self._take_snapshot(number, state, snapshot, parent, step)
        return new

    def _step_of(self, snapshot: Snapshot) -> int:
        """The step that committed a snapshot, or that staged what it publishes."""
        source = self.shared.model.snapshots.get(int(snapshot.summary.get(_SOURCE, 0)))
        if source is not None:
            return source.step
        return int(snapshot.summary.get(STEP_PROPERTY, -1))

    def _take_snapshot(
        self,
        number: int,
        state: TableState,
        snapshot: Snapshot,
        parent: int | None,
        step: Step,
    ) -> None:
        model, snapshot_id, metadata = self.shared.model, snapshot.snapshot_id, state.metadata
        if step.snapshots is not None and len(step.committed) >= step.snapshots:
            text = f"{step}: snapshot {snapshot_id} after {step.committed}"
            self.tell(FindingKind.COMMITTED_TWICE, number, text)
            changed_rows, written = model.rows_of(parent), frozenset[int]()
        else:
            assert step.effect is not None, "the caller has checked it"
            changed = step.effect(model.rows_of(parent))
            if step.in_parts and self._goes_on(step, snapshot_id, metadata):
                changed = self._part_of(changed, number, state, snapshot, parent)
            changed_rows, written = changed.rows, changed.written
        for other in model.lineage(parent) if step.batch or step.staged else ():
            again = self.steps.get(other.step)
            if again is not None and (again.batch, again.staged) == (step.batch, step.staged):
                text = f"{step}: snapshot {snapshot_id} after {other.snapshot_id}"
                self.tell(FindingKind.COMMITTED_TWICE, number, text)
        step.committed.append(snapshot_id)
        model.snapshots[snapshot_id] = ModelSnapshot(
            snapshot_id, parent, step.number, changed_rows, written
        )
        last = None if parent is None else metadata.snapshot_by_id(parent)
        if last is not None and 0 < snapshot.sequence_number <= last.sequence_number:
            text = f"snapshot {snapshot_id} has {snapshot.sequence_number}, its parent "
            self.tell(FindingKind.SEQUENCE_NUMBERS, number, text + str(last.sequence_number))
        self._check_failed(step)

    def _goes_on(self, step: Step, snapshot_id: int, metadata: TableMetadata) -> bool:
        """Whether the next snapshot is of the same commit."""
        return any(
            other.parent_snapshot_id == snapshot_id and self._step_of(other) == step.number
            for other in metadata.snapshots
        )

    def _part_of(
        self,
        changed: Changed,
        number: int,
        state: TableState,
        snapshot: Snapshot,
        parent: int | None,
    ) -> Changed:
        """The part of an effect that a snapshot has: it may only remove rows that it may remove."""
        rows = self.shared.model.rows_of(parent)
        try:
            read = self._rows.read(self._table(state), [ID], snapshot.snapshot_id)
        except Exception as error:
            text = f"snapshot {snapshot.snapshot_id} cannot be read: {error!r}"
            self.tell(FindingKind.UNREADABLE, number, text)
            return Changed(rows)
        gone = rows.keys() - {key for (key,) in read}
        if wrong := sorted(key for key in gone if changed.rows.get(key) is rows[key]):
            text = f"snapshot {snapshot.snapshot_id} lacks the rows {wrong[:5]}"
            self.tell(FindingKind.WRONG_ROWS, number, text)
        return Changed({key: row for key, row in rows.items() if key not in gone})

    def _check_references(
        self, number: int, before: TableState | None, metadata: TableMetadata
    ) -> None:
        """Branches move to descendants of their heads, unless the step moves them otherwise."""
        step = self.steps.get(number)
        if before is None or (step is not None and step.moves_references):
            return
        for name, ref in before.metadata.refs.items():
            after = metadata.refs.get(name)
            if after is None:
                self.tell(FindingKind.LOST_COMMIT, number, f"{ref.ref_type} {name} is gone")
            elif after.snapshot_id == ref.snapshot_id:
                continue
            elif ref.ref_type is RefType.TAG or not self.shared.model.is_ancestor(
                ref.snapshot_id, after.snapshot_id
            ):
                text = f"{ref.ref_type} {name} went from snapshot {ref.snapshot_id} to "
                text += f"{after.snapshot_id}, which does not descend from it"
                self.tell(FindingKind.LOST_COMMIT, number, text)
        heads = [ref.snapshot_id for ref in metadata.refs.values()]
        kept = {s.snapshot_id for s in before.metadata.snapshots}
        for snapshot in metadata.snapshots:
            is_new = snapshot.snapshot_id not in kept
            model = self.shared.model
            if is_new and not (
                self._is_staged(snapshot)
                or any(model.is_ancestor(snapshot.snapshot_id, head) for head in heads)
            ):
                text = f"snapshot {snapshot.snapshot_id} is on no branch"
                self.tell(FindingKind.LOST_COMMIT, number, text)

    def _is_staged(self, snapshot: Snapshot) -> bool:
        step = self.steps.get(self.shared.model.snapshots[snapshot.snapshot_id].step)
        return step is not None and step.staged != "" and len(step.committed) == 1

    def _check_failed(self, step: Step) -> None:
        has_none = step.outcome in (Outcome.FAILED, Outcome.REFUSED)
        if has_none and step.committed and step.snapshots is not None:
            text = f"{step}, but there is snapshot {step.committed}"
            self.tell(FindingKind.COMMITTED_AFTER_FAILURE, step.number, text)

    def _check_batch(self, step: Step) -> None:
        """An idempotent write that had nothing to commit was committed before."""
        assert step.batch is not None, "the caller has checked it"
        name, version = step.batch
        for other in self.shared.model.lineage(self.shared.heads.get(step.branch)):
            batch = self.steps[other.step].batch if other.step >= 0 else None
            if batch is not None and batch[0] == name and batch[1] >= version:
                return
        # Rolled back: the table still tells that it was committed by a later one, or by none.
        for other in self.shared.model.snapshots.values():
            batch = self.steps[other.step].batch if other.step >= 0 else None
            if batch is not None and batch[0] == name and batch[1] >= version:
                return
        text = f"{step}: the table has no batch {version} of {name}"
        self.tell(FindingKind.LOST_COMMIT, step.number, text)

    # Rows.

    def _check_snapshots(self, number: int, state: TableState, new: list[Snapshot]) -> None:
        for snapshot in new:
            chance = drawn(self.shared.seed, 6, number, len(self.shared.model.snapshots))
            if chance.random() < self.options.rows:
                feed = chance.random() < self.options.feeds
                self._check_rows(number, state, snapshot, with_feed=feed)

    def _check_rows(
        self, number: int, state: TableState, snapshot: Snapshot, *, with_feed: bool
    ) -> None:
        try:
            self._compare_rows(number, state, snapshot)
            parent = snapshot.parent_snapshot_id
            if with_feed and parent is not None and state.metadata.snapshot_by_id(parent):
                self._compare_feed(number, state, snapshot)
        except Exception as error:
            text = f"snapshot {snapshot.snapshot_id} cannot be read: {error!r}"
            self.tell(FindingKind.UNREADABLE, number, text)

    def _compare_rows(self, number: int, state: TableState, snapshot: Snapshot) -> None:
        self.reads += 1
        metadata, table = state.metadata, self._table(state)
        model = self.shared.model.snapshots[snapshot.snapshot_id]
        schema = metadata.schema()
        if snapshot.schema_id is not None:
            schema = metadata.schemas_by_id[snapshot.schema_id]
        has_ids = metadata.format_version >= 3 and snapshot.first_row_id is not None
        names = [column.name for column in schema.fields]
        columns = [*names, *(_LINEAGE if has_ids else ())]
        at = names.index(ID)
        found = sorted(
            self._rows.read(table, columns, snapshot.snapshot_id),
            key=lambda row: (row[at], str(row)),
        )
        width = len(names)
        wanted = as_read(model.rows, schema)
        given = [row[:width] for row in found]
        accounts = [row[names.index(VALUE)] for row in given if row[at] in ACCOUNTS]
        if accounts and sum(accounts) != MONEY:
            text = f"the accounts of snapshot {snapshot.snapshot_id} have {sum(accounts)}"
            self.tell(FindingKind.WRONG_SUM, number, f"{text}, not {MONEY}")
        if given != wanted:
            text = f"snapshot {snapshot.snapshot_id} of {self.steps.get(model.step)}: "
            self.tell(FindingKind.WRONG_ROWS, number, text + differences(given, wanted, names))
            return
        if has_ids:
            lineage = {row[at]: (row[width], row[width + 1]) for row in found}
            self._check_lineage(number, metadata, snapshot, lineage)

    def _check_lineage(
        self,
        number: int,
        metadata: TableMetadata,
        snapshot: Snapshot,
        lineage: dict[int, tuple[int, int]],
    ) -> None:
        """Row ids are unique, new ones are new, and rows that were not written keep theirs."""
        model = self.shared.model.snapshots[snapshot.snapshot_id]
        where = f"snapshot {snapshot.snapshot_id} of {self.steps.get(model.step)}"
        wrong = list(wrong_ids(metadata, snapshot, lineage))
        if model.parent_id is not None:
            before = self.shared.model.snapshots[model.parent_id].lineage
            step = self.steps.get(model.step)
            keeps = step is not None and step.keeps_ids
            if before is not None:
                wrong += changed_ids(snapshot, model, before, lineage, keeps=keeps)
        if model.lineage is not None and model.lineage != lineage:
            wrong.append("they are not what they were")
        model.lineage = lineage
        if wrong:
            self.tell(FindingKind.ROW_IDS, number, f"{where}: {'; '.join(wrong[:5])}")

    def _compare_feed(self, number: int, state: TableState, snapshot: Snapshot) -> None:
        """The changes of a commit make of the rows of its parent those that it has."""
        model = self.shared.model
        heads = {name: ref.snapshot_id for name, ref in state.metadata.refs.items()}
        branch = next((n for n, head in heads.items() if head == snapshot.snapshot_id), None)
        if branch is None or state.metadata.refs[branch].ref_type is not RefType.BRANCH:
            return
        parent = snapshot.parent_snapshot_id
        read = self._table(state).changes(
            parent,
            snapshot.snapshot_id,
            columns=[ID, GROUP, VALUE, "_change_type"],
            branch=branch,
        )
        rows = sorted(core_of(model.rows_of(parent)))
        changes = [tuple(row.values()) for row in read.to_arrow().to_pylist()]
        try:
            for *row, kind in changes:
                if kind in ("DELETE", "UPDATE_BEFORE"):
                    rows.remove(tuple(row))
        except ValueError:
            text = f"snapshot {snapshot.snapshot_id} deletes a row that was not there: {changes}"
            self.tell(FindingKind.CHANGE_FEED, number, text)
            return
        rows += [tuple(row) for *row, kind in changes if kind in ("INSERT", "UPDATE_AFTER")]
        if sorted(rows) != sorted(core_of(model.rows_of(snapshot.snapshot_id))):
            text = f"the changes of snapshot {snapshot.snapshot_id} are not what it did: {changes}"
            self.tell(FindingKind.CHANGE_FEED, number, text)

    # Files.

    def _check_files(self, number: int, state: TableState, *, alone: bool) -> None:
        needed = files_of(state)
        stored = stored_files(state)
        if missing := sorted(needed - stored):
            text = f"{len(missing)} files that snapshots have are missing: {missing[:3]}"
            self.tell(FindingKind.MISSING_FILE, number, text)
        if alone and (left := sorted(stored - needed)):
            text = f"{len(left)} files that nothing has: {left[:3]}"
            self.tell(FindingKind.LEFT_OVER_FILE, number, text)

    def _table(self, state: TableState) -> Table:
        assert self._operations is not None, "the table was observed"
        table = self.place.table(self._operations)
        table._state = state
        return table

    def tell(self, kind: FindingKind, step: int, message: str) -> None:
        """Adds a finding of the table."""
        self.findings.append(Finding(kind, step, f"{self.place.name}: {message}"))
