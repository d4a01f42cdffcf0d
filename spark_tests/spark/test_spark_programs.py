"""Spark Connect, and executors in processes of their own; the format is found unregistered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from spark_reads import run_program
from spark_tables import ALL_PEOPLE, DELETED_PEOPLE, LIVE_PEOPLE, people

pytestmark = pytest.mark.spark

Seen = dict[str, Any]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("programs")
    people(directory / "people")
    return directory


@pytest.fixture(scope="module")
def connect(directory: Path) -> Seen:
    table = str(directory / "people")
    return run_program("connect_reads.py", table, "people", directory=directory)


@pytest.fixture(scope="module")
def cluster(directory: Path) -> Seen:
    return run_program("cluster_reads.py", str(directory / "people"), directory=directory)


def test_connect_reads_a_table_with_deletes(connect: Seen) -> None:
    assert connect["session"] == "pyspark.sql.connect.session"
    assert connect["all"] == LIVE_PEOPLE


def test_connect_travels_in_time(connect: Seen) -> None:
    assert connect["first snapshot"] == ALL_PEOPLE


def test_connect_filters_by_option(connect: Seen) -> None:
    assert connect["option filter"] == [1, 5]


def test_connect_keeps_the_filters_of_one_load_apart(connect: Seen) -> None:
    """`all` is read from the same load, later."""
    assert connect["union of filters"] == [1, 5]
    assert connect["all"] == LIVE_PEOPLE


def test_connect_reads_a_temporary_view(connect: Seen) -> None:
    assert connect["view"] == [4, 5, 6, 7, 8, 9]


def test_connect_scans_with_the_time_zone_of_the_session(connect: Seen) -> None:
    assert connect["scan"] == [1, 2]


def test_connect_scans_a_table_named_relative_to_the_client(connect: Seen) -> None:
    assert connect["scan of a relative path"] == LIVE_PEOPLE


def test_connect_leaves_files_without_deletes_to_spark(connect: Seen) -> None:
    native = {"by spark": 2, "first snapshot": ALL_PEOPLE, "current": LIVE_PEOPLE}
    assert connect["native scan"] == native


@pytest.mark.parametrize(
    ("case", "error", "detail"),
    [
        ("missing table", "icebergds.errors.NoSuchTableError", "/nowhere/metadata"),
        ("missing column", "icebergds.errors.InvalidOptionError", "did you mean name"),
        ("bad filter", "icebergds.errors.InvalidFilterError", "nmae"),
    ],
)
def test_connect_reports_our_errors(connect: Seen, case: str, error: str, detail: str) -> None:
    assert error in connect[case]
    assert detail in connect[case]


def test_executors_in_two_processes_share_a_scan(cluster: Seen) -> None:
    assert cluster["tasks"] == 2
    assert cluster["executors"] == 2


def test_executors_in_other_processes_apply_deletes(cluster: Seen) -> None:
    names = {1: "b", 2: "c", 4: "e", 5: "f"}
    assert cluster["rows"] == [[i, names.get(i, "z")] for i in LIVE_PEOPLE]
    assert cluster["deleted"] == DELETED_PEOPLE
