"""How often metadata is read: a read plans once, whatever processes take part in it."""

from __future__ import annotations

from typing import Any

import pytest
from counting.read_log import Reads
from spark_reads import run_counted

pytestmark = pytest.mark.spark

CATALOGS = pytest.mark.parametrize("catalog", ["files", "sql"])


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Reads]]:
    """What each step returned, and what it read."""
    directory = tmp_path_factory.mktemp("counted")
    return run_counted("counted_reads.py", str(directory), directory=directory)


@CATALOGS
@pytest.mark.parametrize(
    ("step", "rows"),
    [("scan in Arrow", 39), ("scan", 39), ("filtered scan", 10), ("native scan", 39)],
)
def test_a_scan_of_a_loaded_table_reads_each_manifest_once_and_no_metadata(
    counted: tuple[dict[str, Any], dict[str, Reads]], catalog: str, step: str, rows: int
) -> None:
    seen, reads = counted
    assert seen[catalog][step] == rows
    found = reads[f"{catalog}: {step}"]
    assert found.totals() == {"manifest_lists": 1, "manifests": 5}
    assert set(found.manifests.values()) == {1}


@CATALOGS
def test_a_change_feed_reads_each_manifest_once_and_no_metadata(
    counted: tuple[dict[str, Any], dict[str, Reads]], catalog: str
) -> None:
    seen, reads = counted
    assert seen[catalog]["changes"] == 41
    found = reads[f"{catalog}: changes"]
    assert found.totals() == {"manifest_lists": 5, "manifests": 5}
    assert set(found.manifests.values()) == {1}
