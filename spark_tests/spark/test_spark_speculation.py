"""Writes of which Spark runs a task twice at once: one of the two attempts is in the table."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from effort import IS_NIGHTLY
from spark_reads import run_program

pytestmark = [
    pytest.mark.spark,
    pytest.mark.every_spark,
    pytest.mark.skipif(not IS_NIGHTLY, reason="races that are left to the nightly profile"),
]

Seen = dict[str, Any]
CASES = pytest.mark.parametrize("case", ["first is killed", "second is late", "both end"])


@pytest.fixture(scope="module")
def speculation(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    if sys.platform != "linux":
        pytest.skip("the two hosts of the cluster are loopback addresses, of which Linux has many")
    directory = tmp_path_factory.mktemp("speculation")
    return run_program("speculative_writes.py", str(directory), directory=directory)


@CASES
def test_of_two_attempts_at_once_one_is_in_the_table(speculation: Seen, case: str) -> None:
    assert speculation[case]["attempts"] == 2
    assert speculation[case]["complete"]
    assert speculation[case]["snapshots"] == 1


@CASES
def test_the_file_of_the_losing_attempt_is_not_in_the_table(speculation: Seen, case: str) -> None:
    assert speculation[case]["files"] == 3
    assert speculation[case]["live files"] == 2
