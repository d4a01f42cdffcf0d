"""Does the maintenance that a table's health calls for, in the right order and within a budget."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, TypeAlias

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.commit.retention import ExpiryRequest
from icebergds.display import counted, size_text
from icebergds.errors import IcebergError, ValidationError
from icebergds.operations.maintenance.deletes.convert_equality_deletes import (
    ConvertedPart,
    conversion_options,
    convert_part,
)
from icebergds.operations.maintenance.deletes.remove_dangling_deletes import remove_dangling_deletes
from icebergds.operations.maintenance.deletes.rewrite_position_deletes import (
    rewrite_position_deletes,
)
from icebergds.operations.maintenance.health.advice import (
    Advice,
    Gain,
    expiry_arguments,
)
from icebergds.operations.maintenance.health.health import TableHealth, examine
from icebergds.operations.maintenance.policy import MaintenancePolicy
from icebergds.operations.maintenance.purge.kept_files import KeptFiles, kept_files
from icebergds.operations.maintenance.purge.stored_rows import unreferenced_files
from icebergds.operations.maintenance.report import (
    MaintenanceReport,
    MaintenanceStep,
    StepState,
)
from icebergds.operations.maintenance.rewrite.groups import GroupRewriter
from icebergds.operations.maintenance.rewrite.limits import RewriteLimits
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.plan import FileGroup
from icebergds.operations.maintenance.rewrite.rewrite_data_files import (
    RewrittenDataFiles,
    rewrite_data_files,
)
from icebergds.operations.maintenance.rewrite_manifests import rewrite_manifests
from icebergds.operations.maintenance.unused_files.expire_snapshots import expire_snapshots
from icebergds.operations.maintenance.unused_files.orphan_files import (
    OrphanFiles,
    OrphanOptions,
    parse_orphan_options,
)
from icebergds.operations.maintenance.unused_files.reachable_files import (
    require_garbage_collection,
)
from icebergds.operations.maintenance.unused_files.remove_orphan_files import remove_orphan_files
from icebergds.operations.options.moments import moment_or_age
from icebergds.operations.runner import Runner
from icebergds.operations.write.options import WriteOptions
from icebergds.reporting import stage
from icebergds.spec.table_properties import GC_ENABLED
from icebergds.spec.values.dates import now_ms

_LOG = logging.getLogger(__name__)

# An action that has been done may be worth it once more because of what others have left.
_MOST_RUNS = 2
# A rewrite is committed about each time that so many bytes are rewritten.
_COMMIT_BYTES = 10 << 30
_MOST_COMMITS = 10
_EXPIRY = "expire_snapshots"

_Key: TypeAlias = tuple[str, tuple[tuple[str, Any], ...]]


@dataclass(frozen=True, slots=True)
class MaintenanceRequest:
    """What is asked of `maintain`.

    Attributes:
        write: the branch, entries of the snapshot summaries, and the time zone.
        rewrite: options of a rewrite of data files; its commits are chosen by its size.
        runner: runs the tasks.
        rewriter: rewrites each group of data files; by default, rows keep their order.
    """

    policy: MaintenancePolicy
    write: WriteOptions
    rewrite: RewriteOptions
    runner: Runner
    rewriter: GroupRewriter | None = None
    dry_run: bool = False


def maintain(
    table: LoadedTable,
    request: MaintenanceRequest,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[MaintenanceReport, TableState]:
    """Does what the health of a branch advises and the policy allows, best first.

    After each step the table is loaded and its health is measured again, since a step may give rise
    to others. A step that fails is reported, and the others are done all the same. No step follows
    if it is not known whether one was committed, or if the table cannot be read any more.

    Args:
        clock: the time in seconds.

    Returns:
        What was done, or would be done, and the table's last known state.

    Raises:
        InvalidOptionError: an argument does not fit the table, or a table property is malformed.
        NoSuchSnapshotError: the table has no such branch.
        CorruptFileError, MissingFileError: the health of the table cannot be measured.
    """
    return _Maintenance(table, request, clock).run()


class _Maintenance:
    """The maintenance of a table, step by step."""

    def __init__(
        self, table: LoadedTable, request: MaintenanceRequest, clock: Callable[[], float]
    ) -> None:
        policy = request.policy
        self._table = table
        self._request = request
        self._clock = clock
        self._started = clock()
        self._bytes_left = policy.max_bytes
        self._expire_before = moment_or_age("expire_older_than", policy.expire_older_than)
        self._orphans = _orphan_options(request)
        self._purges = policy.purge_deleted
        self._groups: list[FileGroup] = []
        self._steps: list[MaintenanceStep] = []
        self._is_safe = True

    def run(self) -> tuple[MaintenanceReport, TableState]:
        if self._purges:
            require_garbage_collection(self._table.state, "purge no deleted rows")
        before = after = self._examine()
        if self._request.dry_run:
            for advice in self._wanted(before):
                self._step(advice)
        else:
            after = self._follow(before)
        self._explain_missing_expiry()
        if self._orphans is not None:
            reason = "writes that fail leave files that nothing refers to"
            self._step(Advice("remove_orphan_files", reason, Gain()))
        kept, unreferenced = self._purged()
        report = MaintenanceReport(
            self._table.name,
            self._request.write.branch,
            self._request.dry_run,
            tuple(self._steps),
            before,
            after,
            self._clock() - self._started,
            self._purges,
            kept,
            unreferenced,
        )
        return report, self._table.state

    def _purged(self) -> tuple[tuple[KeptFiles, ...], OrphanFiles | None]:
        """What keeps files that may hold deleted rows, and files that no snapshot refers to."""
        if not self._purges or not self._is_safe:
            return (), None
        try:
            kept = kept_files(self._table.state, self._request.write.branch, self._expiry())
        except IcebergError as error:
            looking = Advice("find_stored_rows", "says what keeps deleted rows", Gain())
            self._add(looking, StepState.FAILED, str(error), error=error)
            return (), None
        unreferenced, unknown = unreferenced_files(self._table)
        return kept, None if unknown else unreferenced

    def _explain_missing_expiry(self) -> None:
        """Adds a step that says why snapshots do not expire that the policy asks to expire."""
        arguments, properties = expiry_arguments(self._expiry()), self._table.metadata.properties
        keeps_files = not GC_ENABLED.of(properties)
        if keeps_files and arguments and self._request.policy.expire_snapshots:
            reason = "the policy says how long snapshots are to be kept"
            note = (
                f"not begun: the table property {GC_ENABLED.name} is false, because other tables "
                "may share its files"
            )
            self._add(Advice(_EXPIRY, reason, Gain(), arguments), StepState.SKIPPED, note)

    def _follow(self, health: TableHealth) -> TableHealth:
        """Follows advice until there is none; returns the table's health after that."""
        while (advice := self._next(health)) is not None:
            self._step(advice)
            if self._steps[-1].state is StepState.SKIPPED or not self._is_safe:
                continue
            try:
                self._table = self._table.at(_reloaded(self._table))
                health = self._examine()
            except Exception as error:
                self._is_safe = False
                looking = Advice("health", "says what else is worth it", Gain())
                self._add(looking, StepState.FAILED, str(error), error=error)
        return health

    def _examine(self) -> TableHealth:
        request = self._request
        health, self._groups = examine(
            self._table.state,
            request.write.branch,
            request.rewrite,
            self._expiry(),
            purges=self._purges,
        )
        return health

    def _expiry(self) -> ExpiryRequest:
        now = now_ms()
        if self._purges:
            # The clocks of other writers may be ahead.
            latest = max((s.timestamp_ms for s in self._table.metadata.snapshots), default=now)
            return ExpiryRequest(now, max(now, latest) + 1, 1)
        return ExpiryRequest(now, self._expire_before, self._request.policy.retain_last)

    def _wanted(self, health: TableHealth) -> list[Advice]:
        return [a for a in health.advice if self._request.policy.takes(a.action)]

    def _next(self, health: TableHealth) -> Advice | None:
        """The first advice that was not followed since other steps may have given rise to it."""
        return next((advice for advice in self._wanted(health) if self._is_new(advice)), None)

    def _is_new(self, advice: Advice) -> bool:
        runs = [at for at, step in enumerate(self._steps) if _key(step.advice) == _key(advice)]
        if not runs:
            return True
        last, since = self._steps[runs[-1]], self._steps[runs[-1] + 1 :]
        is_whole = last.state is StepState.DONE and not last.note
        others = any(step.state is StepState.DONE for step in since)
        return is_whole and others and len(runs) < _MOST_RUNS

    def _step(self, advice: Advice) -> None:
        """Takes an action, unless the budget or an earlier step forbids it."""
        size = self._size(advice)
        if (objection := self._objection(advice, size)) is not None:
            self._add(advice, StepState.SKIPPED, objection)
            return
        # The plan of a large table takes memory that the action needs.
        if not self._request.dry_run:
            self._groups = []
        began = self._clock()
        try:
            with stage(advice.action):
                result = self._do(advice, size)
        except Exception as error:
            if isinstance(error, IcebergError) and error.outcome_unknown:
                self._is_safe = False
            _LOG.warning("table %s: %s failed: %s", self._table.name, advice.action, error)
            self._spend(size)
            took = self._clock() - began
            self._add(advice, StepState.FAILED, str(error), size, took, error=error)
            return
        took = self._clock() - began
        state, note = StepState.DONE, ""
        if self._request.dry_run:
            state, note = StepState.PLANNED, _left_over(size, advice.read_bytes)
        elif isinstance(result, ConvertedPart):
            if not result.has_begun and result.left_bytes:
                self._add(advice, StepState.SKIPPED, self._too_little(result.left_bytes))
                return
            size, total = result.read_bytes, result.read_bytes + result.left_bytes
            result, note = result.done, _left_over(size, total)
        elif isinstance(result, RewrittenDataFiles):
            state, note = _outcome(result, advice)
            if state is StepState.DONE:
                size = result.rewritten_bytes_count
        self._spend(size)
        self._add(advice, state, note, size, took, result)

    def _size(self, advice: Advice) -> int:
        """How many bytes of data and delete files an action may read within the budget."""
        if advice.action == "rewrite_data_files":
            chosen = self._limits().affordable(self._groups, self._request.rewrite)
            return sum(group.nbytes for group in chosen)
        left = advice.read_bytes if self._bytes_left is None else self._bytes_left
        if advice.action == "convert_equality_deletes":
            return min(advice.read_bytes, left)
        return advice.read_bytes if advice.read_bytes <= left else 0

    def _objection(self, advice: Advice, size: int) -> str | None:
        """Why a step that may read `size` bytes is not begun."""
        if not self._is_safe:
            return "not begun: after the failure before it is not known what is safe"
        if not self._is_in_time():
            return f"not begun: max_seconds = {self._request.policy.max_seconds:g} is over"
        if self._bytes_left is not None and advice.read_bytes and not size:
            return self._too_little(advice.read_bytes)
        return None

    def _too_little(self, read: int) -> str:
        left = size_text(self._bytes_left or 0)
        return f"not begun: max_bytes leaves {left}, which is too little for its {size_text(read)}"

    def _limits(self) -> RewriteLimits:
        group_bytes = self._request.policy.group_bytes(self._request.rewrite.target_file_size)
        return RewriteLimits(self._bytes_left, group_bytes, self._is_in_time)

    def _is_in_time(self) -> bool:
        limit = self._request.policy.max_seconds
        return limit is None or self._clock() - self._started < limit

    def _spend(self, size: int) -> None:
        if self._bytes_left is not None:
            self._bytes_left = max(self._bytes_left - size, 0)

    def _add(
        self,
        advice: Advice,
        state: StepState,
        note: str,
        size: int = 0,
        seconds: float = 0.0,
        result: Any = None,
        error: Exception | None = None,
    ) -> None:
        self._steps.append(MaintenanceStep(advice, state, note, size, seconds, result, error))

    def _do(self, advice: Advice, size: int) -> Any:
        """Takes an action; returns its result, None in a dry run that needs none."""
        if self._orphans is not None and advice.action == "remove_orphan_files":
            return remove_orphan_files(self._table, self._orphans)
        if self._request.dry_run:
            return None
        result, state = self._act(advice, size)
        self._table = self._table.at(state)
        return result

    def _act(self, advice: Advice, size: int) -> tuple[Any, TableState]:
        table, write, runner = self._table, self._request.write, self._request.runner
        branch, properties = write.branch, write.snapshot_properties
        match advice.action:
            case "convert_equality_deletes":
                conversion = conversion_options(
                    table.address,
                    {},
                    where=None,
                    branch=branch,
                    snapshot_properties=properties,
                    time_zone=write.time_zone,
                )
                state, converted = convert_part(table, conversion, runner, self._bytes_left)
                return converted, state
            case "rewrite_data_files":
                commits = min(max(ceil(size / _COMMIT_BYTES), 1), _MOST_COMMITS)
                # A file that cannot be read does not keep others from being rewritten.
                options = replace(
                    self._request.rewrite,
                    partial_progress=True,
                    max_commits=commits,
                    max_failed_commits=commits,
                )
                rewriter, limits = self._request.rewriter, self._limits()
                return rewrite_data_files(table, runner, write, options, None, rewriter, limits)
            case "rewrite_position_delete_files":
                return rewrite_position_deletes(table, None, {}, write, runner)
            case "remove_dangling_deletes":
                return remove_dangling_deletes(table, branch=branch, snapshot_properties=properties)
            case "rewrite_manifests":
                spec_id = advice.arguments.get("spec_id")
                return rewrite_manifests(
                    table,
                    spec_id,
                    branch=branch,
                    snapshot_properties=properties,
                    drop_removed=self._purges,
                )
            case "expire_snapshots":
                state, expired = expire_snapshots(table, self._expiry())
                return expired, state
        raise AssertionError(f"unknown advice {advice.action}")


def _reloaded(table: LoadedTable) -> TableState:
    """The table as it is now.

    Raises:
        ValidationError: its name belongs to another table now.
    """
    state = table.operations.refresh()
    if state.metadata.table_uuid != table.metadata.table_uuid:
        raise ValidationError(
            f"table {table.name} was dropped and re-created while it was maintained"
        )
    return state


def _key(advice: Advice) -> _Key:
    return advice.action, tuple(sorted(advice.arguments.items()))


def _outcome(result: RewrittenDataFiles, advice: Advice) -> tuple[StepState, str]:
    """The outcome of a rewrite of data files, and a note about what it has left."""
    failed = counted(result.failed_data_files_count, "data file")
    if result.failure is not None:
        return StepState.FAILED, f"{failed} not rewritten: {result.failure}"
    if result.failed_data_files_count:
        return StepState.DONE, f"{failed} not rewritten, since others changed them meanwhile"
    return StepState.DONE, _left_over(result.rewritten_bytes_count, advice.read_bytes)


def _left_over(size: int, advised: int) -> str:
    if size >= advised:
        return ""
    return f"{size_text(advised - size)} of {size_text(advised)} left for the next time"


def _orphan_options(request: MaintenanceRequest) -> OrphanOptions | None:
    policy = request.policy
    if not policy.remove_orphan_files:
        return None
    return parse_orphan_options(
        older_than=policy.orphans_older_than,
        location=None,
        dry_run=request.dry_run,
        max_concurrent_deletes=None,
        file_list=None,
        equal_schemes=None,
        equal_authorities=None,
        prefix_mismatch_mode="error",
        options=None,
        older_than_name="orphans_older_than",
    )
