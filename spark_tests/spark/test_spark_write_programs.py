"""Writes through Spark Connect, and by executors in processes of their own, of which some die."""

from __future__ import annotations

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


def test_connect_creates_and_appends(connect: Seen) -> None:
    assert connect["session"] == "pyspark.sql.connect.session"
    assert connect["appended"] == [0, 1, 2, 3, 4]


def test_connect_appends_from_threads_and_through_tables(connect: Seen) -> None:
    assert connect["appended again"] == [0, 1, 2, 3, 4, 5, 6]
    assert connect["overwritten"] == [9]


def test_connect_reports_our_errors(connect: Seen) -> None:
    assert "icebergds.errors.InvalidDataError" in connect["unknown column"]
    assert "does not hold every value" in connect["null"]


def test_connect_hands_on_catalogs_of_the_session(connect: Seen) -> None:
    assert connect["catalog"] == [0, 1]
    assert connect["batches"] == "2147483647"


@pytest.mark.parametrize("case", ["undisturbed", "retried", "worker", "executor"])
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


def test_failed_job_leaves_no_files_of_tasks_that_were_done(cluster: Seen) -> None:
    assert "column 'id' of table" in cluster["failed"]["error"]
    assert cluster["failed"]["files"] == 0
