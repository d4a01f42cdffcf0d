"""`maintain` does what health advises, in order and within its budget, and tells what failed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from built.api_tables import new_table, rows
from built.contents import live_files
from built.delta_tables import BY_DATA, DeltaTable
from commit.interleaving import InterleavedOperations

from icebergds import (
    CommitStateUnknownError,
    InvalidOptionError,
    MaintenanceError,
    MaintenancePolicy,
    MaintenanceReport,
    NoSuchSnapshotError,
    Table,
    load_table,
)
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable, load_for_write
from icebergds.display import WIDTH
from icebergds.errors import CommitConflictError, StorageError
from icebergds.operations.maintenance import maintain as module
from icebergds.operations.maintenance.health.advice import Advice, Gain
from icebergds.operations.maintenance.maintain import MaintenanceRequest, maintain
from icebergds.operations.maintenance.report import MaintenanceStep, StepState
from icebergds.operations.maintenance.rewrite.groups import rewrite_group
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.runner import LocalRunner
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.snapshot import RefType, SnapshotRef
from icebergds.spec.updates.table_updates import SetProperties, SetSnapshotRef
from icebergds.testing.faults import Fault, Faults, FaultyOperations, When

_ILL = {"commit.manifest-merge.enabled": "false", "history.expire.max-snapshot-age-ms": "-1000"}
_ONLY_EXPIRY = MaintenancePolicy(
    convert_equality_deletes=False, rewrite_data_files=False, remove_dangling_deletes=False
)
_ORDER = [
    "convert_equality_deletes",
    "rewrite_data_files",
    "remove_dangling_deletes",
    "expire_snapshots",
]


def ill(location: Path, **more: Any) -> DeltaTable:
    """A table with advice of many kinds: five files of ten rows (number, number modulo 2)."""
    table = DeltaTable(location, **{"version": 2, "properties": _ILL, **more})
    for start in range(0, 50, 10):
        table.append(*((i, str(i % 2)) for i in range(start, start + 10)))
    table.keyed("upsert", [table.batch((3, "1"))])
    table.keyed("upsert", [table.batch((1000, "0"))])
    return table


def small_files(location: Path, *counts: int) -> DeltaTable:
    """A table of so many files of one row in each partition ("0", "1", ...)."""
    kept = {"commit.manifest.min-count-to-merge": "2"}
    table = DeltaTable(location, version=2, spec=BY_DATA, properties=kept)
    for partition, count in enumerate(counts):
        for number in range(count):
            table.append((100 * partition + number, str(partition)))
    return table


def api(table: DeltaTable) -> Table:
    return load_table(table.table.metadata.location)


def loaded(table: DeltaTable) -> LoadedTable:
    return load_for_write(TableAddress(table.table.metadata.location))


def run(
    table: LoadedTable, clock: Callable[[], float] | None = None, **policy: Any
) -> MaintenanceReport:
    """Maintains a table, and returns the report even if steps have failed."""
    chosen = MaintenancePolicy(**policy)
    options = RewriteOptions.of({}, table.metadata.properties)
    write = WriteOptions.of(table.address)
    request = MaintenanceRequest(chosen, write, options, LocalRunner())
    return maintain(table, request, *([] if clock is None else [clock]))[0]


def actions(report: MaintenanceReport, state: str | None = None) -> list[str]:
    return [step.action for step in report.steps if state is None or step.state == state]


def notes(report: MaintenanceReport) -> str:
    return "; ".join(step.note for step in report.steps)


def contents(location: Path) -> dict[str, bytes]:
    paths = [path for path in location.rglob("*") if path.is_file()]
    return {str(path): path.read_bytes() for path in paths}


def test_advice_is_followed_in_order_until_the_table_is_healthy(tmp_path: Path) -> None:
    table = ill(tmp_path)
    before = table.rows()
    report = api(table).maintain()
    assert actions(report, "done") == actions(report) == _ORDER
    assert [advice.action for advice in report.before.advice] == _ORDER
    assert report.after.is_healthy
    assert (report.after.files.count, report.after.deletes.count) == (1, 0)
    assert len(api(table).snapshots()) == 1
    assert table.rows() == before
    assert report.steps[0].result.converted_equality_delete_files_count == 2
    assert report.steps[1].size_in_bytes == report.steps[1].result.rewritten_bytes_count > 0


def test_what_a_step_gives_rise_to_is_done_too(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path, version=2)
    table.append(*((i, "a") for i in range(10)))
    table.keyed("delete", [table.batch(*((i, "a") for i in range(5)))])
    assert [advice.action for advice in api(table).health().advice] == ["convert_equality_deletes"]
    report = api(table).maintain()
    # Half of the rows are deleted by position then.
    assert actions(report) == _ORDER[:3]
    assert report.after.is_healthy


def test_manifests_are_rewritten(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path, version=2, spec=BY_DATA, properties=_ILL)
    for number in range(9):
        table.append((number, str(number)))
    report = api(table).maintain(expire_snapshots=False)
    assert actions(report, "done") == ["rewrite_manifests"]
    assert report.after.manifests.count == 1


def test_a_healthy_table_stays_as_it_is(tmp_path: Path) -> None:
    table = small_files(tmp_path, 2)
    before = contents(tmp_path)
    report = api(table).maintain()
    assert (report.steps, report.after) == ((), report.before)
    assert "nothing was worth it" in str(report)
    assert contents(tmp_path) == before


def test_the_table_knows_its_new_state(tmp_path: Path) -> None:
    table = api(ill(tmp_path))
    table.maintain()
    assert table.health().is_healthy


def test_a_dry_run_changes_nothing_and_tells_what_would_be_done(tmp_path: Path) -> None:
    table = ill(tmp_path)
    before = contents(tmp_path)
    report = api(table).maintain(dry_run=True, remove_orphan_files=True)
    assert contents(tmp_path) == before
    assert actions(report, "would be done") == [*_ORDER, "remove_orphan_files"]
    gains = [step.gain for step in report.steps[:-1]]
    assert gains == [advice.gain for advice in report.before.advice]
    assert "dry run" in str(report)


def test_a_dry_run_tells_what_the_budget_would_leave(tmp_path: Path) -> None:
    table = small_files(tmp_path, 5, 6)
    size = max(file.file_size_in_bytes for file in live_files(tmp_path))
    before = contents(tmp_path)
    report = api(table).maintain(dry_run=True, max_bytes=7 * size)
    assert contents(tmp_path) == before
    done = api(table).maintain(max_bytes=7 * size)
    assert report.steps[0].size_in_bytes == done.steps[0].size_in_bytes > 0
    assert report.steps[0].note == done.steps[0].note


@pytest.mark.parametrize("left_out", _ORDER)
def test_actions_that_the_policy_leaves_out_are_not_taken(tmp_path: Path, left_out: str) -> None:
    report = api(ill(tmp_path)).maintain(**{left_out: False})
    assert left_out not in actions(report)
    assert actions(report)


def test_a_policy_is_given_whole_and_by_its_fields(tmp_path: Path) -> None:
    policy = MaintenancePolicy(expire_snapshots=False, rewrite_data_files=False)
    report = api(ill(tmp_path)).maintain(policy, dry_run=True, rewrite_data_files=True)
    assert [name for name in _ORDER if name not in actions(report)] == ["expire_snapshots"]


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"expire_older_than": timedelta(0)}, 1),
        ({"expire_older_than": 4_000_000_000_000, "retain_last": 4}, 4),
        ({"expire_older_than": timedelta(hours=1)}, 7),
        ({}, 7),
    ],
)
def test_snapshots_expire_as_the_policy_says(
    tmp_path: Path, given: dict[str, Any], left: int
) -> None:
    table = api(ill(tmp_path, properties={}))
    report = table.maintain(_ONLY_EXPIRY, **given)
    assert len(table.snapshots()) == left
    assert actions(report) == ([] if left == 7 else ["expire_snapshots"])
    if "retain_last" in given:
        call = "table.expire_snapshots(older_than='2096-10-02T07:06:40Z', retain_last=4)"
        assert report.steps[0].advice.call == call
        assert report.steps[0].reason == "3 of 7 snapshots are older than is to be kept"


@pytest.mark.parametrize("ahead_ms", [0, 10**15])
def test_the_call_of_an_expiry_does_the_same(tmp_path: Path, ahead_ms: int) -> None:
    """Now, and after the year 9999."""
    table = api(ill(tmp_path, properties={}))
    at = table.metadata.last_updated_ms + 1 + ahead_ms
    (step,) = table.maintain(_ONLY_EXPIRY, expire_older_than=at, dry_run=True).steps
    expired = table.expire_snapshots(**step.advice.arguments)
    assert len(expired.expired_snapshot_ids) == 6


def test_the_most_useful_groups_that_fit_are_rewritten(tmp_path: Path) -> None:
    table = small_files(tmp_path, 5, 9, 5)
    sizes = {f.partition: f.file_size_in_bytes for f in live_files(tmp_path)}
    report = api(table).maintain(max_bytes=10 * max(sizes.values()))
    assert report.steps[0].result.rewritten_data_files_count == 9
    assert "left for the next time" in report.steps[0].note
    counts = [f.partition for f in live_files(tmp_path)]
    assert [counts.count((str(partition),)) for partition in range(3)] == [5, 1, 5]


def test_a_partition_that_is_larger_than_the_budget_is_rewritten_in_parts(tmp_path: Path) -> None:
    table = small_files(tmp_path, 14)
    before = table.rows()
    size = max(file.file_size_in_bytes for file in live_files(tmp_path))
    report = api(table).maintain(max_bytes=10 * size)
    assert 5 <= report.steps[0].result.rewritten_data_files_count <= 11
    assert report.steps[0].size_in_bytes <= 10 * size
    assert table.rows() == before


def test_a_budget_that_is_too_small_does_nothing_and_says_so(tmp_path: Path) -> None:
    table = ill(tmp_path)
    report = api(table).maintain(max_bytes=10)
    assert actions(report, "skipped") == ["convert_equality_deletes", "rewrite_data_files"]
    assert "max_bytes leaves 10 bytes" in notes(report)
    # Others read metadata alone.
    assert actions(report, "done") == _ORDER[2:]
    assert [advice.action for advice in report.after.advice] == _ORDER[:2]


def test_maintenance_within_a_budget_comes_to_an_end(tmp_path: Path) -> None:
    table = small_files(tmp_path, 5, 6, 7)
    before = table.rows()
    size = max(file.file_size_in_bytes for file in live_files(tmp_path))
    reports = [api(table).maintain(max_bytes=8 * size) for _ in range(3)]
    assert reports[-1].after.is_healthy
    assert len(live_files(tmp_path)) == 3
    assert table.rows() == before


def clock_of(*times: float) -> Callable[[], float]:
    """A clock that shows these times, one at each look, and then the last one."""
    left: Iterator[float] = iter(times)
    return lambda: next(left, times[-1])


def test_no_action_is_begun_when_the_time_is_over(tmp_path: Path) -> None:
    report = run(loaded(ill(tmp_path)), clock_of(0, 0, 0, 0, 100), max_seconds=10)
    assert actions(report, "done") == ["convert_equality_deletes"]
    assert actions(report, "skipped") == ["rewrite_data_files", "expire_snapshots"]
    assert "max_seconds = 10 is over" in notes(report)


def test_no_group_is_begun_when_the_time_is_over_and_those_done_are_committed(
    tmp_path: Path,
) -> None:
    table = small_files(tmp_path, 5, 5, 5)
    before = table.rows()
    target = loaded(table)
    policy = MaintenancePolicy(max_seconds=10)
    options = RewriteOptions.of({}, target.metadata.properties)
    begun = [0]

    def clock() -> float:
        return 100.0 if begun[0] >= 2 else 0.0

    def rewriter(*given: Any) -> Any:
        begun[0] += 1
        return rewrite_group(LocalRunner(), *given)

    one = replace(options, max_concurrent_groups=1)
    write = WriteOptions.of(target.address)
    request = MaintenanceRequest(policy, write, one, LocalRunner(), rewriter)
    report, _ = maintain(target, request, clock)
    assert report.steps[0].state == "done"
    assert report.steps[0].result.rewritten_data_files_count == 10
    assert report.steps[0].result.failed_data_files_count == 0
    assert "left for the next time" in report.steps[0].note
    assert table.rows() == before


def test_a_damaged_file_spoils_its_group_alone_and_is_reported(tmp_path: Path) -> None:
    table = small_files(tmp_path, 6, 6)
    damaged = next(Path(f.file_path) for f in live_files(tmp_path) if f.partition == ("1",))
    damaged.write_bytes(b"damaged")
    with pytest.raises(MaintenanceError, match=damaged.name) as raised:
        api(table).maintain()
    report = raised.value.report
    assert actions(report, "failed") == ["rewrite_data_files"]
    assert report.steps[0].result.rewritten_data_files_count == 6
    assert "6 data files not rewritten" in report.steps[0].note
    assert len(live_files(tmp_path)) == 7


def test_others_are_done_if_a_step_fails_and_its_error_is_raised_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = CommitConflictError("others won")

    def fail(*_: Any, **__: Any) -> Any:
        raise lost

    monkeypatch.setattr(module, "convert_part", fail)
    table = api(ill(tmp_path))
    with pytest.raises(MaintenanceError, match="convert_equality_deletes: others won") as raised:
        table.maintain()
    assert raised.value.__cause__ is lost
    assert raised.value.retryable
    assert not raised.value.outcome_unknown
    report = raised.value.report
    assert actions(report, "failed") == ["convert_equality_deletes"]
    assert actions(report, "done") == _ORDER[1:]
    assert report.steps[0].error is lost
    assert table.health().files.count == 1


def test_an_error_of_another_process_has_no_report() -> None:
    error = MaintenanceError("table db.t: 1 of 2 steps of maintenance failed")
    assert str(error) == "table db.t: 1 of 2 steps of maintenance failed"
    assert (error.report, error.retryable, error.outcome_unknown) == (None, False, False)


def test_a_commit_of_unknown_outcome_ends_the_maintenance(tmp_path: Path) -> None:
    table = ill(tmp_path)
    target = loaded(table)
    # The commit is made, and nobody answers any more.
    answers = [Fault(0, When.AFTER, OSError("no answer"), lasting=True)]
    lost = Faults(answers, ["commit", "refresh"])
    report = run(replace(target, operations=FaultyOperations(target.operations, lost)))
    assert actions(report, "failed") == ["convert_equality_deletes"]
    assert actions(report, "skipped") == _ORDER[1:]
    assert isinstance(report.steps[0].error, CommitStateUnknownError)
    assert api(table).health().deletes.equality_delete_files == 0
    with pytest.raises(MaintenanceError) as raised:
        report.raise_failures()
    assert raised.value.outcome_unknown


def test_a_table_that_cannot_be_read_any_more_is_reported(tmp_path: Path) -> None:
    target = loaded(ill(tmp_path))
    broken = Faults([Fault(0, When.BEFORE, StorageError("gone"), lasting=True)], ["refresh"])
    report = run(replace(target, operations=FaultyOperations(target.operations, broken)))
    assert actions(report, "done") == ["convert_equality_deletes"]
    assert actions(report, "failed") == ["health"]
    assert actions(report, "skipped") == _ORDER[1:]


def test_a_table_that_was_created_again_is_left_alone(tmp_path: Path) -> None:
    target = loaded(ill(tmp_path / "a"))
    other = ill(tmp_path / "b").table.state

    class Replaced(InterleavedOperations):
        def refresh(self) -> Any:
            return other

    report = run(replace(target, operations=Replaced(target.operations, [])))
    assert actions(report, "failed") == ["health"]
    assert "dropped and re-created" in notes(report)


def test_what_others_commit_between_the_steps_stays_and_is_maintained(tmp_path: Path) -> None:
    table = ill(tmp_path)
    expected = table.rows()
    others = [lambda at=at: table.append((2000 + at, "0")) for at in range(6)]
    target = loaded(table)
    operations = InterleavedOperations(target.operations, others)
    report = run(replace(target, operations=operations))
    assert not report.failed
    assert sorted(table.rows()) == sorted([*expected, *((2000 + at, "0") for at in range(6))])


def test_an_action_is_taken_once_more_if_others_make_it_worth_it_meanwhile(
    tmp_path: Path,
) -> None:
    table = ill(tmp_path)
    target = loaded(table)
    others = [lambda: table.keyed("upsert", [table.batch((5, "1"))])]

    def rewriter(*given: Any) -> Any:
        done = rewrite_group(LocalRunner(), *given)
        if others:
            others.pop()()
        return done

    options = RewriteOptions.of({}, target.metadata.properties)
    write = WriteOptions.of(target.address)
    policy = MaintenancePolicy()
    request = MaintenanceRequest(policy, write, options, LocalRunner(), rewriter)
    report, _ = maintain(target, request)
    assert actions(report, "done").count("convert_equality_deletes") == 2
    assert report.after.deletes.equality_delete_files == 0
    assert sorted(table.rows()) == sorted([*((i, str(i % 2)) for i in range(50)), (1000, "0")])


def test_what_others_commit_after_a_step_is_seen_by_the_next_one(tmp_path: Path) -> None:
    table = ill(tmp_path)
    target = loaded(table)

    class Busy(InterleavedOperations):
        def commit(self, *given: Any) -> Any:
            committed = super().commit(*given)
            table.append((2000, "0"))
            return committed

    report = run(replace(target, operations=Busy(target.operations, [])))
    assert report.after.files.rows == len(table.rows())
    assert report.after.metadata.snapshots == len(table.table.metadata.snapshots)


def test_only_the_branch_is_maintained(tmp_path: Path) -> None:
    table = small_files(tmp_path, 6)
    head = table.table.head.snapshot_id
    table.table.change(SetSnapshotRef("audit", SnapshotRef(head, RefType.BRANCH)))
    report = api(table).maintain(branch="audit")
    assert report.branch == "audit"
    assert report.steps[0].advice.call == "table.rewrite_data_files(branch='audit')"
    assert api(table).health("audit").files.count == 1
    assert api(table).health().files.count == 6


def test_snapshots_have_the_summary_entries_that_are_given(tmp_path: Path) -> None:
    table = ill(tmp_path, properties={"commit.manifest-merge.enabled": "false"})
    known = {snapshot.snapshot_id for snapshot in api(table).snapshots()}
    api(table).maintain(snapshot_properties={"job": "nightly"})
    new = [s for s in api(table).snapshots() if s.snapshot_id not in known]
    assert len(new) == 3
    assert {snapshot.summary["job"] for snapshot in new} == {"nightly"}


def test_orphan_files_are_removed_only_if_the_policy_says_so(tmp_path: Path) -> None:
    table = api(small_files(tmp_path, 2))
    orphan = tmp_path / "data" / "orphan.parquet"
    orphan.write_bytes(b"orphan")
    week_ago = orphan.stat().st_mtime - 7 * 24 * 3600
    os.utime(orphan, (week_ago, week_ago))
    assert table.maintain().steps == ()
    kept = table.maintain(remove_orphan_files=True, orphans_older_than=timedelta(days=8))
    assert kept.steps[0].result.deleted_files_count == 0
    planned = table.maintain(remove_orphan_files=True, dry_run=True)
    assert planned.steps[0].result.orphan_files_count == 1
    assert orphan.exists()
    assert table.maintain(remove_orphan_files=True).steps[0].result.deleted_files_count == 1
    assert not orphan.exists()


def test_tables_that_keep_their_files_are_maintained_without_expiry(tmp_path: Path) -> None:
    table = ill(tmp_path)
    table.table.change(SetProperties({"gc.enabled": "false"}))
    report = api(table).maintain()
    assert actions(report, "done") == actions(report) == _ORDER[:-1]


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_expiry_that_the_table_does_not_allow_is_explained(
    tmp_path: Path, dry_run: bool
) -> None:
    table = ill(tmp_path)
    table.table.change(SetProperties({"gc.enabled": "false"}))
    report = api(table).maintain(expire_older_than="2026-01-31T00:00:00Z", dry_run=dry_run)
    (skipped,) = report.skipped
    call = "table.expire_snapshots(older_than='2026-01-31T00:00:00Z')"
    assert skipped.advice.call == call
    assert "gc.enabled is false" in skipped.note
    assert f"{call}: skipped" in str(report)
    assert not api(table).maintain(expire_older_than=timedelta(0), expire_snapshots=False).skipped


def test_an_error_ends_with_one_full_stop(tmp_path: Path) -> None:
    advice = Advice("rewrite_data_files", "small files", Gain())
    step = MaintenanceStep(advice, StepState.FAILED, "2 files failed. Write them again.")
    health = api(ill(tmp_path)).health()
    report = MaintenanceReport("db.t", "main", False, (step,), health, health, 1.0)
    with pytest.raises(MaintenanceError, match=r"Write them again\. The error's report"):
        report.raise_failures()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_byte": 5}, "unknown argument 'max_byte'; did you mean 'max_bytes'"),
        ({"policy": "all"}, "expected a MaintenancePolicy"),
        ({"dry_run": "yes"}, "dry_run = 'yes': expected True or False"),
        ({"expire_snapshots": 5}, "expire_snapshots = 5: expected True or False"),
        ({"max_bytes": 0}, "max_bytes = 0"),
        ({"max_bytes": "1 GB"}, "max_bytes = '1 GB'"),
        ({"max_seconds": 0}, "max_seconds = 0"),
        ({"max_seconds": "60"}, "max_seconds = '60'"),
        ({"max_seconds": timedelta(minutes=1)}, "timedelta, expected a number of seconds$"),
        ({"max_seconds": float("nan")}, "max_seconds = nan"),
        ({"retain_last": 0}, "retain_last = 0"),
        ({"retain_last": True}, "retain_last = True"),
        ({"expire_older_than": "7 days"}, r"expire_older_than = '7 days': .* timedelta\(days=7\)"),
        ({"expire_older_than": 7}, "expire_older_than = 7: a number means milliseconds"),
        ({"expire_older_than": timedelta(days=-1)}, "expected an age of 0 or more"),
        (
            {"remove_orphan_files": True, "orphans_older_than": timedelta(hours=1)},
            r"orphans_older_than = datetime\.timedelta\(seconds=3600\) is less than 24 hours ago",
        ),
        ({"strategy": "sorted"}, r"strategy = 'sorted': expected one of .*; did you mean 'sort'\?"),
        ({"branch": 1}, "branch = 1"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_done(
    tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    table = new_table(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(InvalidOptionError, match=message):
        table.maintain(**given)
    assert contents(tmp_path) == before


def test_a_policy_with_an_unknown_strategy_cannot_be_made() -> None:
    with pytest.raises(InvalidOptionError, match=r"'zorderr': .*; did you mean 'zorder'\?"):
        MaintenancePolicy(strategy="zorderr")


def test_an_unknown_branch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoSuchSnapshotError, match="no branch 'audit'"):
        new_table(tmp_path).maintain(branch="audit")


def test_a_table_without_a_snapshot_is_healthy_already(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    assert table.maintain().steps == ()
    table.append(rows(1))
    assert table.maintain().steps == ()


def test_a_report_fits_a_screen(tmp_path: Path) -> None:
    table = api(ill(tmp_path))
    reports: Sequence[MaintenanceReport] = (table.maintain(dry_run=True), table.maintain())
    for report in reports:
        lines = str(report).splitlines()
        assert repr(report) == str(report)
        assert max(map(len, lines)) <= WIDTH
        assert len(lines) < 40
        for step in report.steps:
            assert step.advice.call in str(report)
            assert step.action in report._repr_html_()
    assert "rewrite_data_files(): would be done, " in str(reports[0])
    assert "rewrite_data_files(): done in " in str(reports[1])
    assert "rewritten data files count 7" in str(reports[1])
