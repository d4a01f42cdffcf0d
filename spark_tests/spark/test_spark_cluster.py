"""Reads, writes and changes of rows by executors in processes of their own, of which some die."""

from __future__ import annotations

from typing import Any

import pytest
from effort import IS_NIGHTLY
from spark_reads import run_program
from spark_tables import DELETED_PEOPLE, LIVE_PEOPLE, people

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

Seen = dict[str, Any]
MODES = ["merge-on-read", "copy-on-write"]
KILLED = ["worker", "executor", "stage"] if IS_NIGHTLY else ["executor"]
LOSING = MODES if IS_NIGHTLY else ["copy-on-write"]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    directory = tmp_path_factory.mktemp("cluster")
    people(directory / "people")
    table, kills = str(directory / "people"), "all" if IS_NIGHTLY else "few"
    return run_program("cluster.py", str(directory), table, kills, directory=directory)


@pytest.fixture
def reads(seen: Seen) -> Seen:
    part: Seen = seen["reads"]
    return part


@pytest.fixture
def changes(seen: Seen) -> Seen:
    part: Seen = seen["row changes"]
    return part


@pytest.fixture
def writes(seen: Seen) -> Seen:
    part: Seen = seen["writes"]
    return part


def test_executors_in_two_processes_share_a_scan(reads: Seen) -> None:
    assert reads["tasks"] == 2
    assert reads["executors"] == 2


def test_executors_in_other_processes_apply_deletes(reads: Seen) -> None:
    names = {1: "b", 2: "c", 4: "e", 5: "f"}
    assert reads["rows"] == [[i, names.get(i, "z")] for i in LIVE_PEOPLE]
    assert reads["deleted"] == DELETED_PEOPLE


@pytest.mark.parametrize("case", ["undisturbed", "retried", *KILLED])
def test_rows_are_complete_and_not_doubled(writes: Seen, case: str) -> None:
    """A task that fails, and one whose Python worker or executor is killed, is tried again."""
    assert writes[case]["complete"]
    assert writes[case]["snapshots"] == 1


@pytest.mark.parametrize("case", ["undisturbed", "retried"])
def test_no_file_is_left_behind(writes: Seen, case: str) -> None:
    assert writes[case]["files"] == writes[case]["live files"] == 2


@pytest.mark.parametrize("case", KILLED[:2])
def test_files_of_what_was_killed_are_not_in_the_table(writes: Seen, case: str) -> None:
    assert writes[case]["files"] == 3
    assert writes[case]["live files"] == 2


@pytest.mark.skipif(not IS_NIGHTLY, reason="kills that are left to the nightly profile")
def test_a_stage_is_tried_again_when_its_input_is_lost(writes: Seen) -> None:
    assert writes["stage"]["shuffling tasks"] > 2
    assert writes["stage"]["live files"] == 2
    assert writes["executor"]["shuffling tasks"] == 0


def test_failed_job_leaves_no_files_of_tasks_that_were_done(writes: Seen) -> None:
    assert "column 'id' of table" in writes["failed"]["error"]
    assert writes["failed"]["files"] == 0


@pytest.mark.parametrize(
    ("case", "mode"),
    [
        *[("undisturbed", mode) for mode in MODES],
        *[("executor lost", mode) for mode in LOSING],
    ],
)
def test_executors_change_rows_once(changes: Seen, case: str, mode: str) -> None:
    seen = changes[f"{case}, {mode}"]
    assert seen["complete"]
    assert seen["counts"] == [100, 200, 0, 0]
    assert seen["snapshots"] == 2


@pytest.mark.parametrize("mode", MODES)
def test_failed_job_leaves_nothing(changes: Seen, mode: str) -> None:
    seen = changes[f"failed, {mode}"]
    assert "is required" in seen["error"]
    assert (seen["files left"], seen["snapshots"]) == (0, 1)
