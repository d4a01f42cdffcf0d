"""Writes through Spark Connect, and by executors in processes of their own, of which some die."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from spark_reads import run_program

pytestmark = pytest.mark.spark

Seen = dict[str, Any]


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    directory = tmp_path_factory.mktemp("connect")
    return run_program("connect_writes.py", str(directory), "t", directory=directory)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    directory = tmp_path_factory.mktemp("cluster")
    return run_program("cluster_writes.py", str(directory), directory=directory)


@pytest.fixture(scope="module")
def speculation(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    if sys.platform != "linux":
        pytest.skip("the two hosts of the cluster are loopback addresses, of which Linux has many")
    directory = tmp_path_factory.mktemp("speculation")
    return run_program("speculative_writes.py", str(directory), directory=directory)


def test_connect_creates_and_appends(connect: Seen) -> None:
    assert connect["session"] == "pyspark.sql.connect.session"
    assert connect["appended"] == [0, 1, 2, 3, 4]


def test_connect_appends_from_threads_and_through_tables(connect: Seen) -> None:
    assert connect["appended again"] == [0, 1, 2, 3, 4, 5, 6]
    assert connect["overwritten"] == [9]


def test_connect_reports_our_errors(connect: Seen) -> None:
    assert "icebergds.errors.InvalidDataError" in connect["unknown column"]
    assert "cannot store every value" in connect["null"]


def test_connect_hands_on_catalogs_of_the_session(connect: Seen) -> None:
    assert connect["catalog"] == [0, 1]
    assert connect["batches"] == "2147483647"


@pytest.mark.parametrize("case", ["undisturbed", "retried", "worker", "executor", "stage"])
def test_rows_are_complete_and_not_doubled(cluster: Seen, case: str) -> None:
    """A task that fails, and one whose Python worker or executor is killed, is tried again."""
    assert cluster[case]["complete"]
    assert cluster[case]["snapshots"] == 1


@pytest.mark.parametrize("case", ["undisturbed", "retried"])
def test_no_file_is_left_behind(cluster: Seen, case: str) -> None:
    assert cluster[case]["files"] == cluster[case]["live files"] == 2


@pytest.mark.parametrize("case", ["worker", "executor"])
def test_files_of_what_was_killed_are_not_in_the_table(cluster: Seen, case: str) -> None:
    assert cluster[case]["files"] == 3
    assert cluster[case]["live files"] == 2


def test_a_stage_is_tried_again_when_its_input_is_lost(cluster: Seen) -> None:
    assert cluster["stage"]["shuffling tasks"] > 2
    assert cluster["stage"]["live files"] == 2
    assert cluster["executor"]["shuffling tasks"] == 0


def test_failed_job_leaves_no_files_of_tasks_that_were_done(cluster: Seen) -> None:
    assert "column 'id' of table" in cluster["failed"]["error"]
    assert cluster["failed"]["files"] == 0


@pytest.mark.parametrize("case", ["first is killed", "second is late", "both end"])
def test_of_two_attempts_at_once_one_is_in_the_table(speculation: Seen, case: str) -> None:
    assert speculation[case]["attempts"] == 2
    assert speculation[case]["complete"]
    assert speculation[case]["snapshots"] == 1


@pytest.mark.parametrize("case", ["first is killed", "second is late", "both end"])
def test_the_file_of_the_losing_attempt_is_not_in_the_table(speculation: Seen, case: str) -> None:
    assert speculation[case]["files"] == 3
    assert speculation[case]["live files"] == 2
