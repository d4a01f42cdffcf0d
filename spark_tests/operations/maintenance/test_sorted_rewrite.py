"""Data files that are sorted when they are rewritten, by tasks that exchange blocks of rows."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from built.contents import live_files, unused_files
from built.delta_tables import BY_DATA, DeltaTable
from built.files import ids_in
from effort import examples
from hypothesis import HealthCheck, given, strategies as st
from local_shuffle import LocalShuffle
from strategies.every_type import EVERY_TYPE, SCALARS, rows_of_schema
from test_rewrite_data_files import ALL, Interrupted, add_spec, api, numbers, table_of

from icebergds import RewrittenDataFiles
from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import load_for_write
from icebergds.errors import CorruptFileError
from icebergds.operations.maintenance.rewrite import sorted_rewrite, sorted_task
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.rewrite_data_files import rewrite_data_files
from icebergds.operations.maintenance.rewrite.sorted_rewrite import SortedRewriter
from icebergds.operations.runner import LocalRunner, Runner
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import IdentityTransform
from icebergds.write.rows.arrangement import Curve


def by(field_id: int, direction: SortDirection = SortDirection.ASC) -> SortOrder:
    key = SortField((field_id,), IdentityTransform(), direction, NullOrder.NULLS_FIRST)
    return SortOrder(0, (key,))


BY_ID = by(1)


def rewrite_sorted(
    table: DeltaTable,
    order: SortOrder = BY_ID,
    options: dict[str, str] | None = None,
    *,
    curve: Curve | None = None,
    runner: Runner | None = None,
) -> RewrittenDataFiles:
    loaded = load_for_write(TableAddress(table.table.metadata.location))
    chosen = RewriteOptions.of({**ALL, **(options or {})}, loaded.metadata.properties)
    runner = runner or LocalRunner()
    rewriter = SortedRewriter(runner, LocalShuffle(runner), chosen, order, curve)
    write = WriteOptions.of(loaded.address)
    return rewrite_data_files(loaded, runner, write, chosen, None, rewriter)[0]


def mixed(location: Path, count: int = 4000, **more: Any) -> DeltaTable:
    """So many rows (number, number modulo 3) in four files, each with numbers from all over."""
    rows = [(number * 7919 % count, str(number % 3)) for number in range(count)]
    return table_of(location, *(rows[start::4] for start in range(4)), **more)


def quarter_of(location: Path) -> dict[str, str]:
    size = sum(file.file_size_in_bytes for file in live_files(location)) // 4
    return {"target-file-size-bytes": str(size)}


def rows_in(table: DeltaTable) -> Counter[str]:
    """All rows with their ids, as texts: NaN is not equal to itself."""
    names = [field.name for field in table.schema.fields] + ["_row_id"]
    return Counter(repr([row[name] for name in names]) for row in table.read())


def test_new_files_are_sorted_do_not_overlap_and_are_near_the_target_size(tmp_path: Path) -> None:
    table = mixed(tmp_path)
    before, options = table.rows(), quarter_of(tmp_path)
    rewrite_sorted(table, by(1, SortDirection.DESC), options)
    assert table.rows() == before
    files = [ids_in(file) for file in live_files(tmp_path)]
    files.sort(reverse=True)
    assert len(files) >= 4
    assert [number for ids in files for number in ids] == list(range(3999, -1, -1))
    assert all(len(ids) < 1.3 * 4000 / len(files) for ids in files)


def test_deleted_rows_are_left_out_and_row_ids_stay(tmp_path: Path) -> None:
    table = mixed(tmp_path, 300, version=3)
    table.change_where(lambda row: row["id"] % 10 == 3)
    lineage = ("_row_id", "_last_updated_sequence_number")
    before = {row["id"]: tuple(row[name] for name in lineage) for row in table.read()}
    rewrite_sorted(table)
    found = {row["id"]: tuple(row[name] for name in lineage) for row in table.read()}
    assert found == before
    assert len(found) == 270


@pytest.mark.parametrize("curve", [None, Curve("zorder", (1, 2)), Curve("hilbert", (1, 2))])
def test_rows_of_other_specs_are_sorted_in_each_new_partition(
    tmp_path: Path, curve: Curve | None
) -> None:
    table = mixed(tmp_path, 300)
    add_spec(table, BY_DATA)
    before = table.rows()
    rewrite_sorted(table, BY_ID if curve is None else SortOrder(), curve=curve)
    assert table.rows() == before
    files = live_files(tmp_path)
    assert Counter(file.partition for file in files) == {(text,): 1 for text in "012"}
    if curve is None:
        for file in files:
            ids = ids_in(file)
            assert ids == sorted(ids)


def test_rows_with_one_key_become_several_files(tmp_path: Path) -> None:
    rows = [(7, f"{number:08}" * 4) for number in range(4000)]
    table = table_of(tmp_path, rows, rows)
    before = table.rows()
    rewrite_sorted(table, BY_ID, quarter_of(tmp_path))
    assert table.rows() == before
    assert len(live_files(tmp_path)) >= 3


def test_a_table_whose_rows_are_all_deleted_becomes_empty(tmp_path: Path) -> None:
    table = mixed(tmp_path, 30)
    table.change_where(lambda row: True)
    rewrite_sorted(table)
    assert table.rows() == []
    assert not live_files(tmp_path)


def test_blocks_and_ranges_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_task, "_LARGEST_BLOCK", 1000)
    monkeypatch.setattr(sorted_task, "_SENT_BYTES", 3000)
    monkeypatch.setattr(sorted_task, "_BLOCK_BYTES", 500)
    monkeypatch.setattr(sorted_rewrite, "_RANGE_BYTES", 1000)
    seen: list[tuple[int, int]] = []
    split = sorted_task.split_rows

    def watched(*args: Any) -> Any:
        for blocks in split(*args):
            seen.append((blocks.nbytes, max(map(len, blocks["block"].to_pylist()))))
            yield blocks

    monkeypatch.setattr("local_shuffle.split_rows", watched)
    table = mixed(tmp_path)
    rewrite_sorted(table)
    assert max(nbytes for nbytes, _ in seen) < 8000
    assert max(block for _, block in seen) < 3000
    assert ids_in(live_files(tmp_path)[0]) == list(range(4000))


def test_the_sample_is_of_few_rows_and_of_key_columns_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_task, "_SAMPLED_ROWS", 400)
    sampled: list[Any] = []
    plan = sorted_task.plan_sort

    def watched(*args: Any, **more: Any) -> Any:
        sampled.extend(args[3])
        return plan(*args, **more)

    monkeypatch.setattr(sorted_rewrite, "plan_sort", watched)
    table = mixed(tmp_path)
    rewrite_sorted(table, BY_ID, quarter_of(tmp_path))
    assert 300 < sum(batch.num_rows for batch in sampled) < 500
    assert {tuple(batch.schema.names) for batch in sampled} == {("id",)}
    assert len(live_files(tmp_path)) >= 3


def test_deletes_that_come_while_rows_are_sorted_are_kept(tmp_path: Path) -> None:
    table = mixed(tmp_path, 300)

    def delete(first: int) -> Any:
        return lambda: table.change_where(lambda row: row["id"] in range(first, first + 5))

    rewrite_sorted(table, runner=Interrupted([delete(0), delete(50), delete(100)]))
    assert numbers(table) == [i for i in range(300) if i % 50 > 4 or i >= 150]
    assert not unused_files(api(table))


def test_a_damaged_file_changes_nothing(tmp_path: Path) -> None:
    table = mixed(tmp_path, 300)
    head = table.table.head
    path = Path(live_files(tmp_path)[2].file_path)
    path.write_bytes(path.read_bytes()[:-20] + bytes(20))
    with pytest.raises(CorruptFileError):
        rewrite_sorted(table)
    assert table.table.head == head
    assert not unused_files(api(table))


@examples(30, suppress_health_check=list(HealthCheck))
@given(rows_of_schema(EVERY_TYPE, max_size=8), st.data())
def test_rows_of_every_type_stay(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    location = tmp_path_factory.mktemp("t")
    table = table_of(location, rows[:4], rows[4:], version=3, schema=EVERY_TYPE)
    before = rows_in(table)
    columns = st.lists(st.integers(1, len(SCALARS)), min_size=1, max_size=3, unique=True)
    key = [
        SortField((at,), IdentityTransform(), *data.draw(_DIRECTIONS)) for at in data.draw(columns)
    ]
    curve = data.draw(st.none() | columns.map(lambda ids: Curve("zorder", tuple(ids))))
    order = SortOrder(0, tuple(key) if curve is None else ())
    rewrite_sorted(table, order, {"shuffle-partitions-per-file": "3"}, curve=curve)
    assert rows_in(table) == before
    assert len(live_files(location)) == min(len(rows), 1)


_DIRECTIONS = st.tuples(st.sampled_from(SortDirection), st.sampled_from(NullOrder))


def test_ranges_follow_one_another(tmp_path: Path) -> None:
    table = mixed(tmp_path)
    options = {"shuffle-partitions-per-file": "16", **quarter_of(tmp_path)}
    rewrite_sorted(table, BY_ID, options)
    files = sorted(ids_in(file) for file in live_files(tmp_path))
    assert all(a[-1] < b[0] for a, b in pairwise(files))
    assert [number for ids in files for number in ids] == list(range(4000))
