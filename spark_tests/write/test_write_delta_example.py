"""The worked example of merge-on-read: three snapshots, number for number."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from built.delta_tables import DeltaTable, planned_deletes

from icebergds.spec.manifest import FileContent


@pytest.mark.parametrize("version", [2, 3])
def test_the_snapshots_of_the_merge_on_read_example(tmp_path: Path, version: int) -> None:
    table = DeltaTable(tmp_path, version=version)

    table.append((1, "X"), (2, "A"))
    (a,) = table.targets()
    assert table.rows() == [(1, "X"), (2, "A")]

    kinds = {"kind": ["-U", "+U", "+I"]}
    delta = table.keyed(
        "delta", [table.batch((2, "A"), (2, "B"), (3, "Q"), extra=kinds)], kinds="kind"
    )
    (b,), (c,) = delta.deletes, delta.files
    assert b.content is FileContent.EQUALITY_DELETES
    assert (b.equality_ids, b.record_count) == ((1,), 1)
    assert table.rows() == [(1, "X"), (2, "B"), (3, "Q")]
    # b.dat is of the same number as c.dat, and so applies to a.dat alone.
    assert planned_deletes(table.table) == {a: [b.file_path], c.file_path: []}

    (q,) = [row for row in table.read() if row["id"] == 3]
    assert (q["_file"], q["_pos"]) == (c.file_path, 1)
    position = {"_file": [q["_file"], None], "_pos": [q["_pos"], None], "_write": [False, True]}
    delta = table.change([table.batch((3, "Q"), (4, "Y"), extra=position)])
    (d,), (e,) = delta.deletes, delta.files
    assert d.content is FileContent.POSITION_DELETES
    assert table.rows() == [(1, "X"), (2, "B"), (4, "Y")]
    applied = planned_deletes(table.table)
    assert applied == {a: [b.file_path], c.file_path: [d.file_path], e.file_path: []}

    numbers = [table.sequence_number(path) for path in (a, b.file_path, c.file_path)]
    numbers += [table.sequence_number(path) for path in (d.file_path, e.file_path)]
    assert numbers == [1, 2, 2, 3, 3]
    first, second, third = table.table.metadata.snapshots
    assert [s.sequence_number for s in (first, second, third)] == [1, 2, 3]
    assert table.rows(first) == [(1, "X"), (2, "A")]
    assert table.rows(second) == [(1, "X"), (2, "B"), (3, "Q")]
    assert table.rows(third) == [(1, "X"), (2, "B"), (4, "Y")]


def test_rows_without_columns_to_write_are_but_deleted(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path, version=2)
    table.append((1, "X"), (2, "A"))
    (path,) = table.targets()
    names = {"_file": pa.array([path]), "_pos": pa.array([0]), "_write": pa.array([False])}
    delta = table.change([pa.RecordBatch.from_pydict(names)])
    assert table.rows() == [(2, "A")]
    assert delta.counts == {"inserted": 0, "updated": 0, "deleted": 1}
