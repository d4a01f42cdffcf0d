"""The command `fleet maintain`: maintains many tables as a policy says, the most useful first."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from icebergds.cli.answer import Answer, Exit, OutputError, plain
from icebergds.cli.command import end_output, error_data
from icebergds.cli.complete import complete_names
from icebergds.cli.keep import Apply, Jobs
from icebergds.cli.many import NamedTable, OfTable, each_table, in_threads, tables_of
from icebergds.cli.place import Place
from icebergds.cli.spark import quiet_session
from icebergds.display import counted, size_text
from icebergds.errors import InvalidOptionError
from icebergds.suggestions import nearest_of

_Number = TypeVar("_Number", int, float)

if TYPE_CHECKING:
    from icebergds import (
        MaintenancePolicy,
        MaintenanceReport,
        MaintenanceStep,
        Table,
        TableHealth,
    )
    from icebergds.cli.fleet_policy import FleetPolicy, Rule


def maintain(
    at: Place,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="CATALOG|NAMESPACE",
            help="By default the whole catalog.",
            autocompletion=complete_names,
        ),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="A TOML file: which tables get what, and the budget.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only check the policy.")] = False,
    apply: Apply = False,
    jobs: Jobs = 1,
) -> Answer:
    """Maintains many tables, the most useful work first; a line of JSON for each action."""
    from icebergds.cli.fleet_policy import FleetPolicy, read_policy

    chosen = FleetPolicy() if policy is None else read_policy(policy)
    if check:
        if policy is None:
            raise InvalidOptionError("--check: give the policy to check with --policy FILE")
        return Answer({"policy": str(policy), "rules": len(chosen.rules)}, "the policy is right")
    every = tables_of(at, target)
    unmatched = chosen.unmatched(table.name for table in every) if every else []
    if target is None or "." not in target:
        _refuse_idle_skips(policy, unmatched, every)
    tables = [table for table in every if chosen.of_table(table.name) is not None]
    measured = each_table(tables, lambda table: table.health(), jobs)
    run = _Run(chosen, apply, jobs)
    for failed in measured:
        if failed.error is not None:
            run.tell_failure(failed.name, failed.error)
    ordered = _most_useful_first(tables, measured)
    session: AbstractContextManager[object] = nullcontext()
    if ordered and chosen.needs_spark:
        session = quiet_session()
    with session:
        in_threads(run.maintain, ordered, jobs)
    run.left_alone = len(every) - len(tables)
    run.unmatched = [rule.match for rule in unmatched]
    if run.output_error is not None and not isinstance(run.output_error, BrokenPipeError):
        raise OutputError(run.output_error)
    return run.answer(len(tables), len(ordered))


def _refuse_idle_skips(
    policy: Path | None, unmatched: Sequence[Rule], tables: Sequence[NamedTable]
) -> None:
    """Refuses a rule that is to leave one table alone, and leaves none: it may be misspelt."""
    for rule in unmatched:
        if rule.skip and not any(sign in rule.match for sign in "*?["):
            near = nearest_of(rule.match, [table.name for table in tables])
            raise InvalidOptionError(
                f"policy {policy}: match = {rule.match!r} with skip = true matches no table, so "
                f"that it protects none; names begin with that of the catalog; {near}"
            )


@dataclass(slots=True)
class _Run:
    """What has been done, by threads that take turns.

    Attributes:
        idle: how many threads have no table.
        bytes_read: by the tables that are done.
        bytes_allowed: for the tables that are worked on, if there is a budget.
        counts: steps by their state, and failed tables.
        not_begun: the tables that the budget or its windows left out.
        left_alone: how many tables a rule leaves alone.
        unmatched: patterns of rules that match no table.
        output_error: why lines can no longer be printed.
    """

    policy: FleetPolicy
    apply: bool
    idle: int
    began: float = field(default_factory=time.monotonic)
    bytes_read: int = 0
    bytes_allowed: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    not_begun: list[str] = field(default_factory=list)
    left_alone: int = 0
    unmatched: Sequence[str] = ()
    output_error: OSError | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def maintain(self, table: NamedTable) -> None:
        """Maintains a table, within what is left of the budget."""
        policy = self._begun(table.name)
        if policy is None:
            return
        report = None
        try:
            report = _maintained(table.load(), policy, self.apply)
        except Exception as error:
            self.tell_failure(table.name, error)
        with self.lock:
            self.idle += 1
            if self.policy.max_bytes is not None:
                self.bytes_allowed -= policy.max_bytes or 0
            if report is not None:
                self._tell_steps(table.name, report)

    def tell_failure(self, name: str, error: Exception) -> None:
        """Says that a table failed as a whole."""
        with self.lock:
            self._tell({"table": name, "state": "failed", "error": error_data(error)})
            self.counts["tables that failed"] += 1

    def answer(self, tables: int, sick: int) -> Answer:
        """The summary."""
        seconds = time.monotonic() - self.began
        data = {
            "tables": tables,
            "with_something_to_do": sick,
            "counts": dict(self.counts),
            "not_begun": self.not_begun,
            "left_alone": self.left_alone,
            "rules_without_tables": list(self.unmatched),
            "bytes_read": self.bytes_read,
            "seconds": round(seconds, 3),
            "applied": self.apply,
        }
        parts = [f"{number:,} {what}" for what, number in self.counts.items()]
        if self.not_begun:
            parts.append(
                f"{counted(len(self.not_begun), 'table')} not begun, outside of the budget or its "
                "windows"
            )
        if self.left_alone:
            parts.append(f"{counted(self.left_alone, 'table')} left alone by a rule")
        shown = (
            f"{counted(tables, 'table')}, {sick:,} with something to do: "
            f"{', '.join(parts) or 'nothing was worth it'}; {size_text(self.bytes_read)} read, "
            f"{seconds:,.0f} s{'' if self.apply else '; dry run, --apply does it'}"
        )
        if self.unmatched:
            shown += f"\nno table matches {', '.join(map(repr, self.unmatched))}"
        return Answer({"summary": data}, shown, self._status(sick))

    def _status(self, sick: int) -> Exit:
        if self.counts["failed"] or self.counts["tables that failed"]:
            return Exit.FAILED
        is_left = bool(self.not_begun or self.counts["skipped"])
        return Exit.FOUND if is_left or (sick and not self.apply) else Exit.DONE

    def _begun(self, name: str) -> MaintenancePolicy | None:
        """The policy of a table that is begun, within the budget; None if it may not be."""
        own = self.policy.of_table(name)
        assert own is not None
        with self.lock:
            seconds = _left(self.policy.max_seconds, time.monotonic() - self.began)
            nbytes = _left(self.policy.max_bytes, self.bytes_read + self.bytes_allowed)
            is_over = any(left is not None and left <= 0 for left in (seconds, nbytes))
            if is_over or not self.policy.is_open(datetime.now()):
                self.not_begun.append(name)
                return None
            if nbytes is not None:
                # So that what all threads may read together is within the budget.
                nbytes = _least(own.max_bytes, max(nbytes // self.idle, 1))
                self.bytes_allowed += nbytes or 0
            else:
                nbytes = own.max_bytes
            self.idle -= 1
        return replace(own, max_seconds=_least(own.max_seconds, seconds), max_bytes=nbytes)

    def _tell_steps(self, name: str, report: MaintenanceReport) -> None:
        for step in report.steps:
            self._tell({"table": name, **_step(step)})
            self.counts[str(step.state)] += 1
            if self.apply:
                self.bytes_read += step.size_in_bytes
        if not report.steps:
            self.counts["tables with nothing to do"] += 1

    def _tell(self, line: dict[str, Any]) -> None:
        if self.output_error is not None:
            return
        try:
            print(json.dumps(line, ensure_ascii=False), file=sys.stdout, flush=True)
        except OSError as error:
            # What was begun is finished: a log that ends stops no maintenance.
            self.output_error = error
            end_output()


def _most_useful_first(
    tables: Sequence[NamedTable], measured: Sequence[OfTable[TableHealth]]
) -> list[NamedTable]:
    """The tables that maintenance does something for, by what reads of them cost for nothing."""
    sick = [
        (health.deletes.overhead_bytes + health.files.to_rewrite_bytes, table)
        for table, found in zip(tables, measured, strict=True)
        if (health := found.result) is not None and not health.is_healthy
    ]
    return [table for _, table in sorted(sick, key=lambda each: -each[0])]


def _maintained(table: Table, policy: MaintenancePolicy, apply: bool) -> MaintenanceReport:
    from icebergds.errors import MaintenanceError

    try:
        return table.maintain(policy, dry_run=not apply, progress=False)
    except MaintenanceError as error:
        report: MaintenanceReport = error.report
        return report


def _step(step: MaintenanceStep) -> dict[str, Any]:
    return {
        "action": step.action,
        "state": str(step.state),
        "reason": step.reason,
        "note": step.note,
        "size_in_bytes": step.size_in_bytes,
        "seconds": round(step.seconds, 3),
        "result": plain(step.result),
    }


def _left(limit: _Number | None, used: _Number) -> _Number | None:
    return None if limit is None else limit - used


def _least(first: _Number | None, second: _Number | None) -> _Number | None:
    return min((each for each in (first, second) if each is not None), default=None)
