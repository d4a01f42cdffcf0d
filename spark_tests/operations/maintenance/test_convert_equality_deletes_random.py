"""Random tables, before and after their equality deletes are converted."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from effort import examples
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from strategies.random_tables import RandomTable

from icebergds.api.load import load_table
from icebergds.api.table import Table
from icebergds.io.fileio import FileIO
from icebergds.scan.plan.live_deletes import live_deletes
from icebergds.spec.manifest import FileContent
from icebergds.spec.snapshot import RefType

_SETTINGS = examples(120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
_LINEAGE = ["*", "_file", "_pos", "_row_id", "_last_updated_sequence_number"]


@given(st.data())
@_SETTINGS
def test_random_tables_keep_their_rows(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        made = RandomTable(data.draw, Path(directory) / "t", format_versions=(2, 3))
        for _ in range(data.draw(st.integers(3, 10))):
            made.step()
        table = load_table(str(made.builder.location))
        branches = [name for name, ref in table.refs().items() if ref.ref_type is RefType.BRANCH]
        assume(branches)
        before, heads = _rows_of_snapshots(table), {b: _rows(table, branch=b) for b in branches}
        granularity = data.draw(st.sampled_from(["file", "partition"]))
        made.builder.metadata.properties["write.delete.granularity"] = granularity
        for branch in branches:
            found = _equality_deletes(table, branch)
            done = table.convert_equality_deletes(branch=branch)
            assert done.converted_equality_delete_files_count == found
            assert done.remaining_equality_delete_files_count == 0
            assert _equality_deletes(table, branch) == 0
        assert {b: _rows(table, branch=b) for b in branches} == heads
        assert before.items() <= _rows_of_snapshots(table).items()


def _rows_of_snapshots(table: Table) -> dict[int, Counter[str]]:
    return {s.snapshot_id: _rows(table, s.snapshot_id) for s in table.snapshots()}


def _rows(table: Table, snapshot_id: int | None = None, **chosen: Any) -> Counter[str]:
    columns = _LINEAGE if table.metadata.format_version >= 3 else _LINEAGE[:3]
    read = table.scan(columns=columns, snapshot_id=snapshot_id, **chosen).to_arrow()
    columns_of_values = [column.to_pylist() for column in read.columns]
    return Counter(map(repr, zip(*columns_of_values, strict=True)))


def _equality_deletes(table: Table, branch: str) -> int:
    head = table.metadata.snapshot_by_ref(branch)
    assert head is not None
    entries = live_deletes(FileIO(), table.metadata, head)
    return sum(e.data_file.content is FileContent.EQUALITY_DELETES for e in entries)
