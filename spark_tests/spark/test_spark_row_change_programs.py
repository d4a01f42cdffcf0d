"""Changes of rows through Spark Connect, and by executors in processes of their own."""

from __future__ import annotations

from typing import Any

import pytest
from spark_reads import run_program

pytestmark = pytest.mark.spark

Seen = dict[str, Any]
MODES = pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    directory = tmp_path_factory.mktemp("connect")
    return run_program("connect_row_changes.py", "tables", directory=directory)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    directory = tmp_path_factory.mktemp("cluster")
    return run_program("cluster_row_changes.py", str(directory), directory=directory)


@MODES
def test_connect_changes_rows(connect: Seen, mode: str) -> None:
    assert connect["session"] == "pyspark.sql.connect.session"
    assert connect[mode]["rows"] == [
        [1, None],
        [3, "n3c"],
        [6, "n6"],
        [7, "N7"],
        [8, "x"],
        [50, "new"],
    ]
    assert connect[mode]["counts"] == [
        [0, 0, 2, 0],
        [0, 0, 1, 0],
        [0, 2, 0, 0],
        [0, 1, 0, 0],
        [1, 1, 2, 0],
        [0, 0, 0, 2],
    ]


def test_connect_applies_a_stream_of_changes_once(connect: Seen) -> None:
    assert connect["streamed"] == [[1, "new"], [2, "n2"], [7, "added"]]


@MODES
def test_connect_reports_our_errors(connect: Seen, mode: str) -> None:
    seen = connect[mode]
    assert seen["unresolved"].startswith("InvalidFilterError: delete: condition")
    assert "not deterministic" in seen["random"]
    assert "row of the source" in seen["twice"]


@MODES
@pytest.mark.parametrize("case", ["undisturbed", "executor lost"])
def test_executors_change_rows_once(cluster: Seen, case: str, mode: str) -> None:
    seen = cluster[f"{case}, {mode}"]
    assert seen["complete"]
    assert seen["counts"] == [100, 200, 0, 0]
    assert seen["snapshots"] == 2


@MODES
def test_failed_job_leaves_nothing(cluster: Seen, mode: str) -> None:
    seen = cluster[f"failed, {mode}"]
    assert "is required" in seen["error"]
    assert (seen["files left"], seen["snapshots"]) == (0, 1)
