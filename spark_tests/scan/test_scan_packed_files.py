"""A plan of many files as columns has what a plan of objects has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built.tables import TableBuilder

from icebergds.expr.bind import bind
from icebergds.expr.nodes import TRUE
from icebergds.expr.sql import parse_filter
from icebergds.scan.plan.files import PlannedFile, plan_files
from icebergds.scan.plan.packed_files import Mask, PackedFiles, plan_packed_files
from icebergds.spec.partition import PartitionField, PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import LONG, NestedField

_SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "day", LONG)))
_BY_DAY = PartitionSpec(0, (PartitionField((2,), 1000, IdentityTransform(), "day"),))


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Two commits of 20 files each of two days, with keys of both days and positions of a file."""
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_DAY)
    for day in (1, 2):
        some = [table.data_file([(i, day)], partition=(day,)) for i in range(20)]
        table.commit(*some)
        table.commit(table.equality_deletes(["id"], [(3,), (5,)], partition=(day,)))
    table.commit(table.position_deletes({some[7].file_path: [0]}, partition=(2,)))
    return table


@pytest.mark.parametrize("filter", [None, "id > 10", "day = 2", "id < 0"])
def test_a_packed_plan_has_the_same_files(
    table: TableBuilder, monkeypatch: pytest.MonkeyPatch, filter: str | None
) -> None:
    """Also if manifests have more files than are objects at a time."""
    monkeypatch.setattr(f"{plan_files.__module__}._FILES_AT_A_TIME", 7)
    assert list(_packed(table, filter)) == _planned(table, filter)


def test_files_that_are_not_chosen_are_left_out(table: TableBuilder) -> None:
    def second_day(files: PackedFiles) -> Mask:
        days = [entry.data_file.partition for entry in files.entries]
        return np.array([day == (2,) for day in days], np.bool_)

    found = _packed(table, chosen=second_day)
    assert list(found) == _planned(table, "day = 2")
    assert len(found.entries.columns.path) == len(found)


def test_numbers_that_depend_on_deletes_are_told_for_each_file(table: TableBuilder) -> None:
    def count(deletes: Any) -> int:
        return 10 * len(deletes.position_deletes) + len(deletes.equality_deletes)

    planned = _planned(table)
    expected = [count(file.deletes) for file in planned]
    assert {0, 1, 10} == set(expected)
    assert _packed(table).by_deletes(count).tolist() == expected


def test_deletes_that_files_share_are_listed_once(table: TableBuilder) -> None:
    with_keys = _packed(table, "id = 3")
    assert len(with_keys) == 2
    assert len(with_keys.applied()) == 2
    assert len(_packed(table).applied()) == 4


def test_parts_keep_the_deletes_of_their_files(table: TableBuilder) -> None:
    planned, packed = _planned(table), _packed(table)
    other = _packed(table, "day = 1")
    rows = np.array([30, 3, 27, 5])
    chosen = packed.take(rows)
    assert list(chosen) == [planned[row] for row in rows]
    assert list(PackedFiles.concat([chosen, packed.take(rows[:1])])) == [
        planned[row] for row in (*rows, 30)
    ]
    assert list(PackedFiles.concat([chosen, other])) == [*chosen, *_planned(table, "day = 1")]
    assert list(PackedFiles.concat([])) == []


def _packed(table: TableBuilder, filter: str | None = None, **options: Any) -> PackedFiles:
    return plan_packed_files(*_given(table, filter), **options)


def _planned(table: TableBuilder, filter: str | None = None) -> Sequence[PlannedFile]:
    return plan_files(*_given(table, filter), with_metrics=False).files


def _given(table: TableBuilder, filter: str | None) -> tuple[Any, ...]:
    schema, snapshot = table.schema, table.metadata.current_snapshot()
    row_filter = TRUE if filter is None else bind(parse_filter(filter), schema)
    return table.io, table.metadata, snapshot, schema, row_filter
