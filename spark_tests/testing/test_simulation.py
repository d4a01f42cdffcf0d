"""Simulations of concurrent writers find nothing, and find what is broken on purpose."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from effort import IS_NIGHTLY, given_seed, rounds, some

from icebergds.api import table
from icebergds.api.table import Table
from icebergds.catalog.pointer.pointer import applied
from icebergds.catalog.sql import catalog as sql_catalog, pointer
from icebergds.catalog.sql.pointer import SqlPointer
from icebergds.commit import retry, summary, transaction, validation
from icebergds.commit.idempotent_writes import IdempotentWrite
from icebergds.commit.operations import TableState
from icebergds.commit.staging import StagedOperations
from icebergds.encryption.table_keys import TableKeys
from icebergds.errors import InvalidMetadataError, InvalidOptionError, StorageError
from icebergds.operations.write.key_resolver import KeyResolver
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.snapshot import MetadataLogEntry, Snapshot
from icebergds.spec.updates import apply_updates
from icebergds.testing import simulate as command
from icebergds.testing.simulation import killing
from icebergds.testing.simulation.auditor import AuditOptions
from icebergds.testing.simulation.findings import FindingKind
from icebergds.testing.simulation.killing import KillOptions, run_killed
from icebergds.testing.simulation.places import Place, SimulatedOperations
from icebergds.testing.simulation.rows import unchanged
from icebergds.testing.simulation.shrinking import command_of, shrink, simulate_apart
from icebergds.testing.simulation.steps import Outcome, Step
from icebergds.testing.simulation.tables import TOGETHER
from icebergds.testing.simulation.world import SimulationOptions, SimulationResult, simulate

_OF_VERSION_3 = 31
_BY_KEY = frozenset({"append", "changelog", "delete keys", "upsert"})
# Upserts took the ids of rows that a concurrent commit had deleted by key.
_ROW_IDS = SimulationOptions(31, 25, actors=_BY_KEY, faults=0, at_once=4, tables=1)
# Upserts did not heed validate-from-snapshot-id.
_TRANSFERS = SimulationOptions(
    33, 25, actors=frozenset({"transfer"}), faults=0, at_once=4, tables=1
)
_FOUND = [_ROW_IDS, _TRANSFERS]
_SEEDS = [
    SimulationOptions(11, 25),
    SimulationOptions(12, 25, catalog="filesystem"),
    SimulationOptions(13, 25, storage="memory", catalog="filesystem"),
    SimulationOptions(14, 30, tables=5, at_once=8),
]


@pytest.mark.parametrize(
    "options", some(_FOUND + _SEEDS, 6), ids=lambda options: f"seed {options.seed}"
)
def test_nothing_is_found(options: SimulationOptions) -> None:
    _check_sound(simulate(options))


@pytest.mark.skipif(not IS_NIGHTLY, reason="nightly")
@pytest.mark.parametrize("catalog", ["sql", "filesystem"])
def test_nothing_is_found_from_new_seeds(catalog: str) -> None:
    first = given_seed() or 0
    for number in range(rounds("ICEBERGDS_SIMULATIONS", pull=0, nightly=8)):
        _check_sound(simulate(SimulationOptions(first + number, 300, catalog=catalog)))


def test_encrypted_tables_are_simulated() -> None:
    lost = InvalidMetadataError("a key is lost")
    with mock.patch.object(TableKeys, "list_key", side_effect=lost):
        assert _found(12, 1, "append", catalog="filesystem")


def test_the_same_seed_gives_the_same_run() -> None:
    one, other = (simulate_apart(SimulationOptions(21, 8, faults=0.5)) for _ in range(2))
    assert one.trace == other.trace
    assert (one.calls, one.switches, one.faults) == (other.calls, other.switches, other.faults)
    assert one.faults


def test_a_seed_can_be_repeated_where_its_files_are(tmp_path: Path) -> None:
    options = SimulationOptions(31, 4, actors=_BY_KEY, faults=0, tables=1, storage=str(tmp_path))
    for _ in range(2):
        result = simulate_apart(options)
        _check_sound(result)
        assert result.commits > 1
    assert len(list(tmp_path.iterdir())) == 2


def test_processes_that_are_killed_leave_a_sound_table() -> None:
    seconds = rounds("ICEBERGDS_KILL_SECONDS", pull=3, nightly=60)
    for catalog in ("sql", "filesystem"):
        result = run_killed(KillOptions(given_seed() or 41, seconds, catalog=catalog))
        assert [str(finding) for finding in result.findings] == []
        assert result.kills > 2


def test_what_a_killed_process_was_told_and_is_gone_is_found() -> None:
    step = Step(7, "append", random.Random(0), effect=unchanged, outcome=Outcome.DONE)

    def write_journal(_: KillOptions, __: Place, directory: Path) -> int:
        (directory / "000-000000.jsonl").touch()
        return 1

    with (
        mock.patch.object(killing, "_kill_writers", write_journal),
        mock.patch.object(killing, "_steps_in", return_value=[(step, 12345)]),
    ):
        result = run_killed(KillOptions(42, 0))
    assert [finding.kind for finding in result.findings] == [FindingKind.LOST_COMMIT]


# What is broken on purpose is found.


def test_a_commit_that_was_acknowledged_and_lost_is_found() -> None:
    with mock.patch.object(SqlPointer, "swap", return_value=applied()):
        assert FindingKind.LOST_COMMIT in _found(31, 3, "append")


def test_a_batch_that_is_committed_twice_is_found() -> None:
    with (
        mock.patch.object(IdempotentWrite, "validate"),
        mock.patch.object(IdempotentWrite, "is_committed", return_value=False),
    ):
        assert FindingKind.COMMITTED_TWICE in _found(31, 40, "stream", faults=0.8)


def test_a_commit_that_is_said_to_have_failed_is_found() -> None:
    error = StorageError("nothing was committed")
    with mock.patch.object(retry, "_check_status", side_effect=error):
        assert FindingKind.COMMITTED_AFTER_FAILURE in _found(31, 60, "append", faults=0.8)


def test_a_half_of_a_transaction_is_found() -> None:
    whole = transaction.commit_staged

    def half(staged: StagedOperations) -> TableState:
        del staged.steps[1:]
        return whole(staged)

    with mock.patch.object(table, "commit_staged", half):
        assert FindingKind.COMMITTED_IN_PART in _found(34, 30, "transaction")


def test_a_transaction_that_commits_to_some_of_its_tables_is_found() -> None:
    whole = pointer.commit_tables

    def first_only(rows: Any, commits: Any) -> list[TableState]:
        return [*whole(rows, commits[:1]), *(each.base for _, each in commits[1:])]

    with mock.patch.object(sql_catalog, "commit_tables", first_only):
        assert FindingKind.COMMITTED_IN_PART in _found(34, 3, TOGETHER, tables=2)


def test_a_transaction_on_several_tables_needs_several() -> None:
    for more in ({"tables": 1}, {"catalog": "filesystem"}):
        with pytest.raises(InvalidOptionError, match="needs two tables"):
            _found(34, 3, TOGETHER, **more)


def test_a_lost_update_is_found() -> None:
    """Without validation, statements overwrite what others have committed since they read."""
    with mock.patch.object(validation, "history_since", return_value=[]):
        found = _found(31, 60, "transfer")
    assert FindingKind.WRONG_ROWS in found
    assert FindingKind.WRONG_SUM in found


def test_rows_with_the_ids_of_others_are_found() -> None:
    with mock.patch.object(KeyResolver, "has_rows", return_value=True):
        found = {finding.kind for finding in simulate(_ROW_IDS).findings}
    assert FindingKind.ROW_IDS in found


def test_a_snapshot_of_nobody_is_found() -> None:
    with mock.patch.object(Step, "summary", {}):
        assert FindingKind.UNKNOWN_SNAPSHOT in _found(31, 1, "append")


def test_a_metadata_log_with_a_gap_is_found() -> None:
    def elsewhere(timestamp_ms: int, _: str) -> MetadataLogEntry:
        return MetadataLogEntry(timestamp_ms, "file:/elsewhere.metadata.json")

    with mock.patch.object(apply_updates, "MetadataLogEntry", elsewhere):
        assert FindingKind.METADATA_LOG in _found(31, 1, "append")


def test_a_change_feed_without_a_commit_is_found() -> None:
    with mock.patch.object(Snapshot, "may_change_rows", False):
        assert FindingKind.CHANGE_FEED in _found(31, 3, "append", audit=AuditOptions(feeds=1))


def test_a_table_whose_files_are_gone_is_found() -> None:
    def delete_files(table: Table, **_: Any) -> None:
        table.io.delete_all(table.inspect.files()["file_path"].to_pylist())

    with mock.patch.object(Table, "rewrite_manifests", delete_files):
        found = _found(31, 1, "manifests", stops_at_finding=False)
    assert {FindingKind.UNREADABLE, FindingKind.MISSING_FILE} <= found


def test_a_file_that_is_gone_is_found_at_the_next_commit() -> None:
    """Its rows are known, and not read again."""

    def delete_files(table: Table, **_: Any) -> None:
        table.io.delete_all(table.inspect.files()["file_path"].to_pylist())

    actors = frozenset({"append", "manifests"})
    options = SimulationOptions(34, 8, actors=actors, faults=0, at_once=1, tables=1)
    with mock.patch.object(Table, "rewrite_manifests", delete_files):
        first, *_ = simulate(options).findings
    assert first.kind is FindingKind.UNREADABLE
    assert first.step <= options.steps


def test_files_that_are_left_over_are_found() -> None:
    with mock.patch.object(Table, "remove_orphan_files"):
        assert FindingKind.LEFT_OVER_FILE in _found(31, 6, "append", faults=0.9)


def test_wrong_totals_are_found() -> None:
    with mock.patch.dict(summary._TOTALS, {"total-records": ("added-records", "-")}):
        assert FindingKind.VERIFICATION in _found(31, 6, "append", "compaction")


def test_an_error_of_nobody_is_found() -> None:
    for error in (KeyError("key"), StorageError("without a fault")):
        with mock.patch.object(Table, "upsert", side_effect=error):
            assert FindingKind.UNEXPECTED_ERROR in _found(31, 1, "upsert")


@pytest.mark.parametrize(
    ("doctored", "kind"),
    [
        (lambda m: replace(m, last_sequence_number=0), FindingKind.SEQUENCE_NUMBERS),
        (lambda m: replace(m, next_row_id=0), FindingKind.ROW_IDS),
        (lambda m: replace(m, refs={}), FindingKind.LOST_COMMIT),
    ],
)
def test_metadata_that_goes_back_is_found(
    doctored: Callable[[TableMetadata], TableMetadata], kind: FindingKind
) -> None:
    """The auditor is shown other metadata than the table has."""
    plain = SimulatedOperations.refresh
    seen = 0

    def refresh(operations: SimulatedOperations) -> TableState:
        nonlocal seen
        state = plain(operations)
        seen += operations.faults is None
        is_shown = operations.faults is None and seen > 6
        return replace(state, metadata=doctored(state.metadata)) if is_shown else state

    with mock.patch.object(SimulatedOperations, "refresh", refresh):
        assert kind in _found(_OF_VERSION_3, 4, "append")


def test_a_simulation_is_shrunk_to_few_steps() -> None:
    actors = frozenset({"append", "upsert"})
    options = SimulationOptions(31, 12, actors=actors, at_once=1, tables=2)
    with mock.patch.object(Table, "upsert", side_effect=KeyError("key")):
        smaller = shrink(options)
    assert smaller.steps == 1
    assert [finding.kind for finding in smaller.findings] == [FindingKind.UNEXPECTED_ERROR]
    assert f"--only {next(iter(smaller.options.only or ()))}" in command_of(smaller.options)


def test_the_command_tells_figures_and_findings(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--seed", "31", "--steps", "4", "--actor", "append", "--faults", "0"]
    assert command.main([*arguments, "--tables", "2"]) == 0
    shown = capsys.readouterr().out
    assert "findings  0" in shown
    assert "tables    2" in shown
    assert "commits   6" in shown
    with mock.patch.object(Table, "upsert", side_effect=KeyError("key")):
        assert command.main([*arguments[:4], "--actor", "upsert"]) == 1
    assert "found     unexpected error at step 1" in capsys.readouterr().out
    assert command.main([*arguments, "--catalog", "nothing"]) == 2
    assert "unknown type 'nothing'" in capsys.readouterr().err


def _found(
    seed: int, steps: int, *actors: str, faults: float = 0.0, **more: Any
) -> set[FindingKind]:
    """What a simulation with some actors finds."""
    given = {"faults": faults, "at_once": 4, "tables": 2 if TOGETHER in actors else 1, **more}
    options = SimulationOptions(seed, steps, actors=frozenset(actors) or None, **given)
    return {finding.kind for finding in simulate(options).findings}


def _check_sound(result: SimulationResult) -> None:
    assert [str(finding) for finding in result.findings] == [], result.options
