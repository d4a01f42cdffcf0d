"""Change feeds of what the methods of `Table` commit, without Spark."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from built.api_tables import DAYS, new_table, rows
from built.contents import head
from built.rows import arrow_table
from effort import examples
from hypothesis import given, strategies as st

from icebergds import Table
from icebergds.errors import InvalidOptionError

_Row = tuple[Any, ...]
_ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 1), st.sampled_from(["a", "b", None])),
    min_size=1,
    max_size=4,
    unique_by=lambda row: row[:2],
)


@pytest.mark.parametrize("version", [2, 3])
def test_upserts_delete_the_old_rows_and_insert_the_new_ones(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version=version)
    table.append(arrow_table(DAYS, [(1, 0, "a"), (2, 0, "b")]))
    start = head(table).snapshot_id
    table.upsert(arrow_table(DAYS, [(2, 0, "B"), (3, 0, "c")]), ["id"])
    assert _feed(table, start) == [("DELETE", 2, "b"), ("INSERT", 2, "B"), ("INSERT", 3, "c")]
    assert _feed(table, start, identifier_columns=["id"]) == [
        ("INSERT", 3, "c"),
        ("UPDATE_AFTER", 2, "B"),
        ("UPDATE_BEFORE", 2, "b"),
    ]


def test_keys_that_are_deleted_delete_their_rows(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="day")
    table.append(arrow_table(DAYS, [(1, 0, "a"), (2, 1, "b"), (3, 1, "c")]))
    start = head(table).snapshot_id
    table.delete_keys(arrow_table(DAYS, [(1, 0, ""), (3, 1, ""), (9, 1, "")]), ["id", "day"])
    assert _feed(table, start) == [("DELETE", 1, "a"), ("DELETE", 3, "c")]


def test_a_stream_of_changes_is_seen_by_its_result(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(arrow_table(DAYS, [(1, 0, "a"), (2, 0, "b")]))
    start = head(table).snapshot_id
    changes = arrow_table(DAYS, [(1, 0, "x"), (1, 0, "y"), (2, 0, "b"), (3, 0, "c")])
    table.delta(changes.append_column("kind", [["+U", "+U", "-D", "+I"]]), "kind", ["id"])
    assert _feed(table, start) == [
        ("DELETE", 1, "a"),
        ("DELETE", 2, "b"),
        ("INSERT", 1, "y"),
        ("INSERT", 3, "c"),
    ]


def test_an_overwrite_with_the_same_rows_changes_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="day")
    table.append(rows(1, 2))
    start = head(table).snapshot_id
    table.overwrite(rows(1, 2, 3))
    assert _feed(table, start) == [("INSERT", 3, "n3")]
    table.dynamic_partition_overwrite(rows(1, 3))
    assert _feed(table, start) == [("DELETE", 2, "n2"), ("INSERT", 3, "n3")]


def test_appends_of_a_branch_are_those_of_its_history(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    start = head(table).snapshot_id
    table.append(rows(2))
    table.append(rows(3))
    appended = table.appends(start).to_arrow()
    assert sorted(appended["id"].to_pylist()) == [2, 3]
    assert appended.column_names == ["id", "day", "name"]
    table.upsert(rows(2), ["id"])
    with pytest.raises(InvalidOptionError, match="is not an append"):
        table.appends(start).to_arrow()
    skipped = table.appends(start, options={"skip-overwrite-snapshots": "true"}).to_arrow()
    assert skipped["id"].to_pylist() == [3]


@given(st.data())
@examples(25)
def test_feeds_of_written_tables_lead_from_snapshot_to_snapshot(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = new_table(
            Path(directory),
            version=data.draw(st.sampled_from([2, 3])),
            partition_by=data.draw(st.sampled_from(["", "day"])),
        )
        for _ in range(data.draw(st.integers(1, 5))):
            given_rows = arrow_table(DAYS, data.draw(_ROWS))
            change = data.draw(st.sampled_from(["append", "upsert", "delete_keys", "overwrite"]))
            if change in ("upsert", "delete_keys"):
                getattr(table, change)(given_rows, ["id", "day"])
            elif change == "overwrite":
                table.dynamic_partition_overwrite(given_rows)
            else:
                table.append(given_rows)
        feed = table.changes().to_arrow().to_pylist()
        state: Counter[_Row] = Counter()
        for snapshot in table.snapshots():
            after = Counter(
                map(_row, table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist())
            )
            steps = Counter(
                (_row(row), row["_change_type"])
                for row in feed
                if row["_commit_snapshot_id"] == snapshot.snapshot_id
            )
            assert steps == _difference(state, after)
            state = after
        net = table.changes(net_changes=True).to_arrow().to_pylist()
        assert Counter((_row(r), r["_change_type"]) for r in net) == _difference(Counter(), state)


def _feed(table: Table, start: int, **options: Any) -> list[_Row]:
    net = {} if "identifier_columns" in options else {"net_changes": True}
    found = table.changes(start, **net, **options).to_arrow().to_pylist()
    return sorted((row["_change_type"], row["id"], row["name"]) for row in found)


def _row(row: dict[str, Any]) -> _Row:
    return (row["id"], row["day"], row["name"])


def _difference(before: Counter[_Row], after: Counter[_Row]) -> Counter[tuple[_Row, str]]:
    return Counter(
        {
            **{(row, "INSERT"): n for row, n in (after - before).items()},
            **{(row, "DELETE"): n for row, n in (before - after).items()},
        }
    )
