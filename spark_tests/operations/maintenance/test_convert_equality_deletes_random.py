"""Random tables, before and after their equality deletes are converted."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from effort import examples
from hypothesis import HealthCheck, assume, given, strategies as st
from strategies.large_keys import perhaps_in_parts
from strategies.random_tables import RandomTable

from icebergds.api.table import Table, load_table
from icebergds.scan.plan.live_deletes import live_deletes
from icebergds.spec.manifest import FileContent
from icebergds.spec.snapshot import RefType

_SETTINGS = examples(60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
_LINEAGE = ["*", "_file", "_pos", "_row_id", "_last_updated_sequence_number"]


@given(st.data())
@_SETTINGS
def test_random_tables_keep_their_rows(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        made = RandomTable(data.draw, Path(directory) / "t", format_versions=(2, 3))
        metadata, granularity = made.builder.metadata, st.sampled_from(["file", "partition"])
        properties = {**metadata.properties, "write.delete.granularity": data.draw(granularity)}
        made.builder.metadata = replace(metadata, properties=properties)
        for _ in range(data.draw(st.integers(3, 10))):
            made.step()
        table = load_table(str(made.builder.location))
        branches = [name for name, ref in table.refs().items() if ref.ref_type is RefType.BRANCH]
        assume(branches)
        before = _rows_of_snapshots(table)
        for branch in branches:
            # Of the current schema, which the head itself may not have.
            columns, found = _columns(table, _head(table, branch)), _equality_deletes(table, branch)
            rows = _rows(table, columns, branch=branch)
            with perhaps_in_parts(data):
                done = table.convert_equality_deletes(branch=branch)
            assert done.converted_equality_delete_files_count == found
            assert done.remaining_equality_delete_files_count == 0
            assert _equality_deletes(table, branch) == 0
            assert _rows(table, columns, branch=branch) == rows
        assert before.items() <= _rows_of_snapshots(table).items()


def _rows_of_snapshots(table: Table) -> dict[int, Counter[str]]:
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    return {found: _rows(table, _columns(table, found), snapshot_id=found) for found in ids}


def _columns(table: Table, snapshot_id: int) -> list[str]:
    # The first commit after an upgrade to version 3 assigns the ids of rows.
    has_ids = table.metadata.snapshots_by_id[snapshot_id].first_row_id is not None
    return _LINEAGE if has_ids else _LINEAGE[:3]


def _rows(table: Table, columns: list[str], **chosen: Any) -> Counter[str]:
    read = table.scan(columns=columns, **chosen).to_arrow()
    columns_of_values = [column.to_pylist() for column in read.columns]
    return Counter(map(repr, zip(*columns_of_values, strict=True)))


def _head(table: Table, branch: str) -> int:
    return table.refs()[branch].snapshot_id


def _equality_deletes(table: Table, branch: str) -> int:
    head = table.metadata.snapshots_by_id[_head(table, branch)]
    entries = live_deletes(table.io, table.metadata, head)
    return sum(e.data_file.content is FileContent.EQUALITY_DELETES for e in entries)
