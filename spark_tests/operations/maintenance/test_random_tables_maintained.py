"""Random tables of all types, formats and kinds of deletes, before and after maintenance."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from strategies.maintenance_steps import PROPERTIES, maintain
from strategies.random_tables import RandomTable

from icebergds.api.table import Table, load_table
from icebergds.spec.snapshot import RefType, Snapshot

_SETTINGS = examples(80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
_LINEAGE = ["_row_id", "_last_updated_sequence_number"]


@given(st.data())
@_SETTINGS
def test_random_tables_keep_their_rows(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        made = RandomTable(data.draw, Path(directory) / "t", is_wide=True)
        for _ in range(data.draw(st.integers(3, 10))):
            made.step()
        made.builder.set_properties({**made.builder.metadata.properties, **data.draw(PROPERTIES)})
        table = load_table(str(made.builder.location))
        snapshots = _rows_of_snapshots(table)
        for _ in range(data.draw(st.integers(1, 3))):
            heads = _heads(table)
            branches = _rows_of_branches(table, heads)
            maintain(data.draw, table)
            assert _rows_of_branches(table, heads) == branches
        kept = _rows_of_snapshots(table)
        assert {i: rows for i, rows in snapshots.items() if i in kept} == {
            i: rows for i, rows in kept.items() if i in snapshots
        }


def _heads(table: Table) -> dict[str, Snapshot]:
    return {
        name: table.metadata.snapshots_by_id[ref.snapshot_id]
        for name, ref in table.refs().items()
        if ref.ref_type is RefType.BRANCH
    }


def _rows_of_branches(table: Table, heads: dict[str, Snapshot]) -> dict[str, Counter[str]]:
    """The rows of branches, with the columns that they had with some heads."""
    return {name: _rows(table, _columns(head), branch=name) for name, head in heads.items()}


def _rows_of_snapshots(table: Table) -> dict[int, Counter[str]]:
    return {
        snapshot.snapshot_id: _rows(table, _columns(snapshot), snapshot_id=snapshot.snapshot_id)
        for snapshot in table.snapshots()
    }


def _columns(snapshot: Snapshot) -> list[str]:
    # The first commit after an upgrade to version 3 assigns the ids of rows.
    return ["*"] if snapshot.first_row_id is None else ["*", *_LINEAGE]


def _rows(table: Table, columns: list[str], **chosen: Any) -> Counter[str]:
    read = table.scan(columns=columns, **chosen).to_arrow()
    return Counter(map(repr, zip(*(column.to_pylist() for column in read.columns), strict=True)))
