"""Rows that match a condition are deleted and replaced without Spark."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from built.api_tables import ids_of, new_table, rows
from built.contents import data_files, head
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from strategies.random_tables import RandomTable
from strategies.small_values import filters

from icebergds import Table, load_table
from icebergds.errors import (
    InvalidDataError,
    InvalidFilterError,
    InvalidOptionError,
    UnsupportedFeatureError,
    ValidationError,
)
from icebergds.expr.nodes import TRUE
from icebergds.expr.sql import parse_filter
from icebergds.expr.sql_text import sql_text
from icebergds.operations.write.matching_rows import delete_matching
from icebergds.operations.write.options import WriteOptions

MODES = [
    (1, "copy-on-write"),
    *((v, m) for v in (2, 3) for m in ("copy-on-write", "merge-on-read")),
]


def made(path: Path, version: int, mode: str) -> Table:
    return new_table(path, version=version, properties={"write.delete.mode": mode})


def counted(table: Table, condition: str | None = None) -> Counter[str]:
    """The rows that match a condition, and how often they are there."""
    ids = () if table.metadata.format_version < 3 else ("_row_id",)
    scan = table.scan(condition, selected_fields=("*", *ids))
    return Counter(map(repr, scan.to_arrow().to_pylist()))


@pytest.mark.parametrize(("version", "mode"), MODES)
def test_a_delete_removes_the_rows_that_match(tmp_path: Path, version: int, mode: str) -> None:
    table = made(tmp_path, version, mode)
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5, 6))
    changed = table.delete("id IN (2, 3, 4) OR id = 2", snapshot_properties={"why": "asked"})
    assert changed.deleted == 3
    assert changed.snapshot_id == head(table).snapshot_id
    assert ids_of(table) == [1, 5, 6]
    assert head(table).summary["why"] == "asked"
    assert table.delete("id = 5").deleted == 1
    before = head(table).snapshot_id
    assert table.delete("id = 77").deleted == 0
    assert head(table).snapshot_id == before
    assert ids_of(load_table(table.location())) == [1, 6]


@pytest.mark.parametrize(("version", "mode"), MODES)
def test_an_overwrite_replaces_the_rows_that_match(tmp_path: Path, version: int, mode: str) -> None:
    table = made(tmp_path, version, mode)
    table.append(rows(1, 2, 3))
    changed = table.overwrite(rows(7, 8), "id > 1 AND id < 3")
    assert (changed.inserted, changed.deleted) == (2, 1)
    assert ids_of(table) == [1, 3, 7, 8]
    assert len(table.snapshots()) == 2


def test_a_delete_on_a_branch_leaves_the_others(tmp_path: Path) -> None:
    table = made(tmp_path, 2, "merge-on-read")
    table.append(rows(1, 2))
    table.manage_snapshots().create_branch("audit").commit()
    table.delete("id = 1", branch="audit")
    assert ids_of(table) == [1, 2]
    assert table.scan(branch="audit").to_arrow()["id"].to_pylist() == [2]


def test_rows_that_a_concurrent_commit_deletes_are_not_brought_back(tmp_path: Path) -> None:
    table = made(tmp_path, 2, "copy-on-write")
    table.append(rows(1, 2, 3))
    other = load_table(table.location())
    stale = table._current()
    other.delete("id = 3")
    files = set(data_files(table.location()))
    with pytest.raises(ValidationError):
        delete_matching(stale, parse_filter("id = 1"), WriteOptions(stale.address))
    assert ids_of(table.refresh()) == [1, 2]
    assert set(data_files(table.location())) == files


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda t: t.delete("upper(day) = 'X'"), InvalidFilterError, "no SparkSession is active"),
        (lambda t: t.delete("name = '${x}'"), InvalidFilterError, "only Spark can evaluate"),
        (lambda t: t.delete("nothing = 1"), InvalidFilterError, "nothing"),
        (lambda t: t.overwrite(rows(3), "upper(day) = 'X'"), InvalidFilterError, "upper"),
        (
            lambda t: t.overwrite(rows(3), "id = 1", options={"merge-schema": "true"}),
            InvalidOptionError,
            "merge-schema",
        ),
        (
            lambda t: t.overwrite(rows(3).append_column("_pos", pa.array([1])), "id = 1"),
            InvalidDataError,
            "no column _pos: the rows were read with metadata columns",
        ),
        (
            lambda t: t.overwrite(pa.table({"id": ["x"]}), "id = 1"),
            InvalidDataError,
            "id",
        ),
    ],
)
def test_what_cannot_be_done_changes_nothing(
    tmp_path: Path, change: Callable[[Table], Any], error: type[Exception], message: str
) -> None:
    table = made(tmp_path, 2, "copy-on-write")
    table.append(rows(1, 2))
    files = set(data_files(table.location()))
    with pytest.raises(error, match=message):
        change(table)
    assert ids_of(table.refresh()) == [1, 2]
    assert set(data_files(table.location())) == files


def test_version_1_has_no_delete_files(tmp_path: Path) -> None:
    table = made(tmp_path, 1, "merge-on-read")
    table.append(rows(1, 2))
    with pytest.raises(UnsupportedFeatureError, match="version 1"):
        table.delete("id = 1")
    table.delete("id > 0")
    assert ids_of(table) == []


def test_pyspark_is_not_imported(tmp_path: Path) -> None:
    table = made(tmp_path, 2, "merge-on-read")
    table.append(rows(1, 2))
    program = f"""
import sys
from icebergds import load_table
load_table({table.location()!r}).delete("id = 1")
assert "pyspark" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert ids_of(table.refresh()) == [2]


@given(st.data())
@examples(40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_all_rows_but_those_that_a_scan_finds_are_kept(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        random = RandomTable(data.draw, Path(directory) / "t", is_wide=data.draw(st.booleans()))
        for _ in range(data.draw(st.integers(1, 8))):
            random.step()
        table = load_table(str(random.builder.location))
        condition = data.draw(filters(table.schema()).filter(lambda found: found != TRUE))
        text = sql_text(condition, table.schema())
        matching = counted(table, text)
        expected = counted(table) - matching
        modes = sorted(
            {mode for version, mode in MODES if version == table.metadata.format_version}
        )
        table.set_properties({"write.delete.mode": data.draw(st.sampled_from(modes))})
        changed = table.delete(text)
        assert counted(table) == expected
        assert not changed.is_exact or changed.deleted == matching.total()
