"""Splits cover every file once, and what is read of them is right wherever they are cut."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from built.scans import task_groups_of
from built.tables import TableBuilder
from hypothesis import given, strategies as st

from icebergds.api.table import load_table
from icebergds.expr.nodes import TRUE
from icebergds.scan.plan.splits import SplitOptions, pack, split_file
from icebergds.scan.projection import project_columns
from icebergds.scan.read.files import read_scan_tasks
from icebergds.scan.read_plan import ReadPlan
from icebergds.scan.tasks import ScanTaskGroup
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, STRING, NestedField

_SCHEMA = Schema((NestedField(1, "id", LONG, True), NestedField(2, "name", STRING)))
_ROWS = 40


@given(
    st.integers(0, 1000),
    st.integers(1, 1200),
    st.lists(st.integers(-5, 1100), max_size=8),
    st.sampled_from(list(FileFormat)),
)
def test_splits_cover_a_file_exactly_once(
    size: int, split_size: int, offsets: list[int], file_format: FileFormat
) -> None:
    ranges = split_file(_file(size, tuple(offsets), file_format), split_size)
    assert ranges[0][0] == 0
    assert all(start + length == following for (start, length), (following, _) in pairwise(ranges))
    assert sum(ranges[-1]) == size
    assert all(length > 0 for _, length in ranges) or size == 0


@given(st.integers(1, 300), st.sets(st.integers(4, 999), min_size=1, max_size=12))
def test_files_are_cut_at_their_offsets(split_size: int, offsets: set[int]) -> None:
    ordered = sorted(offsets)
    ranges = split_file(_file(1000, tuple(ordered)), split_size)
    boundaries = [0, *ordered[1:], 1000]
    assert {start for start, _ in ranges} <= set(boundaries)
    for start, length in ranges:
        # Longer than asked for only where no offset lies in between.
        within = [b for b in boundaries if start < b < start + length]
        assert length <= split_size or not within


def test_files_without_offsets_are_cut_evenly() -> None:
    assert split_file(_file(100, ()), 40) == [(0, 40), (40, 40), (80, 20)]


@pytest.mark.parametrize("offsets", [(50, 4), (4, 4), (-1, 50), (4, 100)])
def test_offsets_that_cannot_be_right_leave_a_file_whole(offsets: tuple[int, ...]) -> None:
    assert split_file(_file(100, offsets), 10) == [(0, 100)]


def test_formats_that_cannot_be_cut_stay_whole() -> None:
    assert split_file(_file(100, (4, 50), FileFormat.PUFFIN), 10) == [(0, 100)]


@given(
    st.lists(st.integers(0, 30)),
    st.builds(SplitOptions, st.integers(1, 40), st.integers(1, 4), st.just(0)),
)
def test_packing_keeps_every_item_once_and_fills_no_bin_too_much(
    weights: list[int], options: SplitOptions
) -> None:
    items = list(enumerate(weights))
    bins = list(pack(items, lambda item: item[1], options))
    assert sorted(item for packed in bins for item in packed) == items
    for packed in bins:
        assert packed == sorted(packed)
        assert len(packed) == 1 or sum(weight for _, weight in packed) <= options.split_size


def test_packing_fills_open_bins_first() -> None:
    options = SplitOptions(split_size=10, lookback=2, file_open_cost=0)
    assert list(pack([6, 5, 4, 5], lambda item: item, options)) == [[6, 4], [5, 5]]


def test_packing_closes_the_fullest_bin_when_too_many_are_open() -> None:
    options = SplitOptions(split_size=10, lookback=1, file_open_cost=0)
    assert list(pack([6, 7, 3, 4], lambda item: item, options)) == [[7], [6, 3], [4]]


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 200), st.integers(0, 20))
def test_even_bins_are_not_more_nor_fuller(
    sizes: list[int], split_size: int, open_cost: int
) -> None:
    options = SplitOptions(split_size, len(sizes) + 1, open_cost)
    even = options.evened(np.array(sizes, np.int64))

    def weigh(size: int) -> int:
        return max(size, open_cost)

    assert even.split_size <= options.split_size
    assert len(list(pack(sizes, weigh, even))) <= len(list(pack(sizes, weigh, options)))


def test_the_last_even_bin_is_not_nearly_empty() -> None:
    sizes = [4] * 100
    even = SplitOptions(128, file_open_cost=0).evened(np.array(sizes, np.int64))
    assert [len(packed) for packed in pack(sizes, int, even)] == [26, 26, 26, 22]


def test_what_items_of_a_bin_need_alike_has_no_weight() -> None:
    options = SplitOptions(split_size=10, lookback=10, file_open_cost=0)
    needs = {1: {"a": 99}, 2: {"a": 50}, 3: {"b": 1}, 4: {"a": 120}}
    bins = list(pack([1, 2, 3, 4], lambda item: 1, options, needs.__getitem__))
    assert bins == [[1, 2, 4], [3]]


def test_items_of_a_bin_need_no_more_than_it_holds() -> None:
    options = SplitOptions(split_size=10, lookback=10, file_open_cost=0)
    needs = {1: {"a": 4}, 2: {"b": 6}, 3: {"c": 1}, 4: {}}
    bins = list(pack([1, 2, 3, 4], lambda item: 1, options, needs.__getitem__))
    assert bins == [[1, 2, 4], [3]]


@pytest.fixture(scope="module")
def cut_table() -> Iterator[TableBuilder]:
    """A file of many row groups, with positions and keys deleted all over it."""
    with tempfile.TemporaryDirectory() as directory:
        table = TableBuilder(Path(directory) / "t", _SCHEMA, format_version=2)
        rows = [(at, f"name {at % 7}" * (1 + at % 3)) for at in range(_ROWS)]
        data_file = table.data_file(rows, row_group_size=3)
        table.commit(data_file)
        table.commit(
            table.position_deletes({data_file.file_path: [0, 2, 3, 17, _ROWS - 1]}),
            table.equality_deletes(["id"], [(5,), (6,), (30,)]),
        )
        yield table


@given(st.data())
def test_rows_and_positions_are_right_wherever_a_file_is_cut(
    cut_table: TableBuilder, data: st.DataObject
) -> None:
    table = load_table(str(cut_table.location))
    columns = project_columns(table.metadata, _SCHEMA, [("id",), ("_pos",)])
    plan = ReadPlan(
        table.io,
        columns,
        _SCHEMA,
        table.metadata.specs_by_id,
        batch_size=data.draw(st.integers(1, 8)),
    )
    (whole,) = task_groups_of(
        table.io, table.metadata, table.current_snapshot(), _SCHEMA, TRUE, SplitOptions()
    )
    (task,) = whole.tasks
    size = task.file_size_in_bytes
    cuts = [0, *sorted(data.draw(st.sets(st.integers(1, size - 1), max_size=6))), size]
    parts = [replace(task, start=start, length=end - start) for start, end in pairwise(cuts)]
    shuffled = data.draw(st.permutations(parts))
    found = [row for part in shuffled for row in _read(plan, whole, [part])]
    gone = {0, 2, 3, 17, _ROWS - 1, 5, 6, 30}
    assert sorted(found) == [(at, at) for at in range(_ROWS) if at not in gone]


def test_small_split_sizes_make_many_tasks(cut_table: TableBuilder) -> None:
    table = load_table(str(cut_table.location))
    task_groups = task_groups_of(
        table.io,
        table.metadata,
        table.current_snapshot(),
        _SCHEMA,
        TRUE,
        SplitOptions(split_size=300, file_open_cost=0),
    )
    assert len(task_groups) > 3
    plan = ReadPlan(
        table.io,
        project_columns(table.metadata, _SCHEMA, [("id",), ("_pos",)]),
        _SCHEMA,
        table.metadata.specs_by_id,
    )
    found = [row for task_group in task_groups for row in _read(plan, task_group, task_group.tasks)]
    assert len(found) == _ROWS - 8
    assert all(row_id == position for row_id, position in found)


def _read(
    plan: ReadPlan, task_group: ScanTaskGroup, tasks: Sequence[object]
) -> list[tuple[int, int]]:
    task_group = replace(task_group, tasks=tuple(tasks))
    return [
        (row["id"], row["_pos"])
        for batch in read_scan_tasks(plan, task_group)
        for row in batch.to_pylist()
    ]


def _file(
    size: int, offsets: tuple[int, ...], file_format: FileFormat = FileFormat.PARQUET
) -> DataFile:
    return DataFile(FileContent.DATA, "f", file_format, 0, (), 10, size, split_offsets=offsets)
