"""How often a statement reads metadata: the table is loaded once, each manifest read once."""

from __future__ import annotations

from typing import Any

import pytest
from counting.read_log import Reads
from spark_reads import run_counted

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.every_spark]

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
EVERY = pytest.mark.parametrize(
    ("catalog", "statement", "mode"),
    [
        (catalog, statement, mode)
        for catalog in ("files", "sql")
        for statement in STATEMENTS
        for mode in ("copy-on-write", "merge-on-read")
    ],
)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Reads]]:
    """The rows after each statement, and what it read."""
    directory = tmp_path_factory.mktemp("counted")
    return run_counted("counted_statements.py", str(directory), directory=directory)


@EVERY
def test_a_statement_loads_the_table_once(
    counted: tuple[dict[str, Any], dict[str, Reads]], catalog: str, statement: str, mode: str
) -> None:
    seen, reads = counted
    assert seen[catalog][f"{statement}, {mode}"] == STATEMENTS[statement]
    found = reads[f"{catalog}: {statement}, {mode}"]
    assert len(found.metadata) == 1
    # A commit by location makes sure that the file is still that of the table it has loaded.
    assert found.metadata.total() == (2 if catalog == "files" else 1)
    # The catalog is made once for all statements: one load, one look before the swap, one swap.
    assert found.connections.total() == (0 if catalog == "files" else 3)


@EVERY
def test_a_statement_reads_each_manifest_once(
    counted: tuple[dict[str, Any], dict[str, Reads]], catalog: str, statement: str, mode: str
) -> None:
    _, reads = counted
    found = reads[f"{catalog}: {statement}, {mode}"]
    assert set(found.manifest_lists.values()) <= {1}
    assert set(found.manifests.values()) <= {1}
