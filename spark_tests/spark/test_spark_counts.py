"""How often metadata is read: reads and statements load and plan once, in whatever processes."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from counting.read_log import Reads
from effort import IS_NIGHTLY
from spark_reads import run_counted

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

NEEDS_SQL = pytest.mark.skipif(find_spec("sqlalchemy") is None, reason="SQLAlchemy is missing")
CATALOGS = pytest.mark.parametrize("catalog", ["files", pytest.param("sql", marks=NEEDS_SQL)])
STATEMENTS = {
    "append of Arrow rows": [1, 2, 3],
    "append": [1, 2, 3, 4, 5, 6],
    "overwrite": [1, 2, 3, 7, 8, 9],
    "overwrite of partitions": [1, 2, 3, 7, 8, 9, 10, 11, 12],
    "upsert of Arrow rows": [1, 2, 3, 7, 8, 9, 10, 11, 12, 13],
    "upsert": [1, 2, 3, 7, 8, 9, 10, 11, 12, 13, 14],
    "delete of rows": [1, 3, 7, 8, 9, 10, 11, 12, 13, 14],
    "delete of files": [1, 3, 10, 11, 12, 13, 14],
    "update": [1, 10, 11, 12, 13, 14, 103],
    "merge": [1, 11, 12, 13, 14, 20, 103],
    "overwrite of rows": [12, 13, 14, 20, 30, 103],
}
MODES = {"files": ["copy-on-write"], "sql": ["merge-on-read"]}
if IS_NIGHTLY:
    MODES = {catalog: ["copy-on-write", "merge-on-read"] for catalog in MODES}
STATEMENT = pytest.mark.parametrize(
    ("catalog", "statement", "mode"),
    [
        (catalog, statement, mode)
        for catalog, modes in MODES.items()
        for statement in STATEMENTS
        for mode in modes
    ],
)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Reads]]:
    """What each step returned, and what it read."""
    directory = tmp_path_factory.mktemp("counted")
    return run_counted(
        "counted.py", str(directory), "all" if IS_NIGHTLY else "some", directory=directory
    )


@CATALOGS
@pytest.mark.parametrize(
    ("step", "rows"),
    [("scan in Arrow", 39), ("scan", 39), ("filtered scan", 10), ("native scan", 39)],
)
def test_a_scan_of_a_loaded_table_reads_each_manifest_once_and_no_metadata(
    counted: tuple[dict[str, Any], dict[str, Reads]], catalog: str, step: str, rows: int
) -> None:
    seen, reads = counted
    assert seen[catalog]["reads"][step] == rows
    found = reads[f"{catalog}: {step}"]
    assert found.totals() == {"manifest_lists": 1, "manifests": 5}
    assert set(found.manifests.values()) == {1}


@CATALOGS
def test_a_change_feed_reads_each_manifest_once_and_no_metadata(
    counted: tuple[dict[str, Any], dict[str, Reads]], catalog: str
) -> None:
    seen, reads = counted
    assert seen[catalog]["reads"]["changes"] == 41
    found = reads[f"{catalog}: changes"]
    assert found.totals() == {"manifest_lists": 5, "manifests": 5}
    assert set(found.manifests.values()) == {1}


@CATALOGS
@pytest.mark.parametrize(
    ("step", "rows"),
    [
        ("load", 39),
        ("load with a schema", 39),
        ("filtered load", 10),
        ("load with pushdown", 10),
        ("load once, read twice", [39, 5]),
    ],
)
def test_a_load_reads_the_metadata_and_each_manifest_once(
    counted: tuple[dict[str, Any], dict[str, Reads]], catalog: str, step: str, rows: Any
) -> None:
    seen, reads = counted
    assert seen[catalog]["reads"][step] == rows
    found = reads[f"{catalog}: {step}"]
    assert found.metadata == {seen[catalog]["reads"]["metadata"]: 1}
    assert found.manifest_lists.total() == 1
    assert sorted(found.manifests.values()) == [1] * 5


@CATALOGS
def test_a_load_of_changes_reads_the_metadata_and_each_manifest_once(
    counted: tuple[dict[str, Any], dict[str, Reads]], catalog: str
) -> None:
    seen, reads = counted
    assert seen[catalog]["reads"]["change feed"] == 41
    found = reads[f"{catalog}: change feed"]
    assert found.metadata == {seen[catalog]["reads"]["metadata"]: 1}
    assert set(found.manifest_lists.values()) == {1}
    assert sorted(found.manifests.values()) == [1] * 5


@NEEDS_SQL
def test_a_load_asks_its_catalog_once(
    counted: tuple[dict[str, Any], dict[str, Reads]],
) -> None:
    """As often as `load_table` does, whatever Spark's processes do with the load."""
    _, reads = counted
    once = reads["sql: load_table"].connections
    assert reads["sql: load"].connections == once
    assert reads["sql: load with a schema"].connections == once


@CATALOGS
def test_a_load_that_spark_plans_again_reads_its_metadata_once(
    counted: tuple[dict[str, Any], dict[str, Reads]], catalog: str
) -> None:
    """With pushdown in the session, Spark plans a load anew for each query with filters."""
    seen, reads = counted
    assert seen[catalog]["reads"]["load once, planned twice"] == [39, 5]
    assert reads[f"{catalog}: load once, planned twice"].metadata.total() == 1


@CATALOGS
@pytest.mark.parametrize(
    ("step", "rows"),
    # Before Spark 4.2 this trigger takes one batch.
    [("stream", ([39],)), ("limited stream", ([9, 10, 10, 10], [10]))],
)
def test_a_stream_reads_each_manifest_once_and_the_metadata_once_a_batch(
    counted: tuple[dict[str, Any], dict[str, Reads]], catalog: str, step: str, rows: Any
) -> None:
    seen, reads = counted
    batches = [batch for batch in seen[catalog]["reads"][step] if batch]
    assert sorted(batches) in rows
    found = reads[f"{catalog}: {step}"]
    # Once to make the query, and once to see that there is nothing more.
    assert found.metadata.total() <= len(batches) + 2
    assert found.manifest_lists.total() == 1
    assert sorted(found.manifests.values()) == [1] * 5


@STATEMENT
def test_a_statement_loads_the_table_once(
    counted: tuple[dict[str, Any], dict[str, Reads]], catalog: str, statement: str, mode: str
) -> None:
    seen, reads = counted
    assert seen[catalog]["statements"][f"{statement}, {mode}"] == STATEMENTS[statement]
    found = reads[f"{catalog}: {statement}, {mode}"]
    assert len(found.metadata) == 1
    # A commit by location makes sure that the file is still that of the table it has loaded.
    assert found.metadata.total() == (2 if catalog == "files" else 1)
    # The catalog is made once for all statements: one load, one look before the swap, one swap.
    assert found.connections.total() == (0 if catalog == "files" else 3)


@STATEMENT
def test_a_statement_reads_each_manifest_once(
    counted: tuple[dict[str, Any], dict[str, Reads]], catalog: str, statement: str, mode: str
) -> None:
    _, reads = counted
    found = reads[f"{catalog}: {statement}, {mode}"]
    assert set(found.manifest_lists.values()) <= {1}
    assert set(found.manifests.values()) <= {1}
