"""How many rows a delete of whole files says that it deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from built.schemas import optional
from built.tables import TableBuilder

from icebergds import Schema, load_table
from icebergds.api.row_level import delete_rows
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.types import INT, LONG


def _builder(tmp_path: Path, version: int) -> TableBuilder:
    columns = Schema((optional(1, "id", LONG), optional(2, "day", INT)))
    return TableBuilder(tmp_path / "t", columns, format_version=version)


def _rows(day: int) -> list[tuple[int, int]]:
    return [(number, day) for number in range(5)]


def test_rows_that_a_deletion_vector_deleted_are_not_counted_again(tmp_path: Path) -> None:
    builder = _builder(tmp_path, 3)
    first, second, other = (builder.data_file(_rows(day)) for day in (1, 1, 2))
    builder.commit(first, second, other)
    builder.commit(*builder.deletion_vectors([(first, [0, 3]), (other, [1])]))
    table = load_table(builder.location)
    assert table.delete("day = 1").deleted == 8
    assert table.delete("day = 2").deleted == 4
    assert table.delete("true").deleted == 0


@pytest.mark.parametrize("kind", ["position", "equality"])
def test_rows_that_other_deletes_deleted_are_counted_again(tmp_path: Path, kind: str) -> None:
    """Delete files may name a row twice, so only reading them tells how many rows are left."""
    builder = _builder(tmp_path, 2)
    data = builder.data_file(_rows(1))
    builder.commit(data)
    if kind == "position":
        deletes = builder.position_deletes({data.file_path: [0, 0, 3]})
    else:
        deletes = builder.equality_deletes(["id"], [(0,), (3,), (77,)])
    builder.commit(deletes)
    table = load_table(builder.location)
    assert table.scan().to_arrow().num_rows == 3
    assert table.delete("day = 1").deleted == 5


def test_a_vector_and_keys_may_delete_the_same_row(tmp_path: Path) -> None:
    builder = _builder(tmp_path, 3)
    data = builder.data_file(_rows(1))
    builder.commit(data)
    builder.commit(*builder.deletion_vectors([(data, [0])]))
    builder.commit(builder.equality_deletes(["id"], [(0,), (3,)]))
    assert load_table(builder.location).delete("day = 1").deleted == 4


def test_a_vector_of_a_concurrent_commit_is_not_known(tmp_path: Path) -> None:
    """Then the rows that were deleted before are counted too."""
    builder = _builder(tmp_path, 3)
    data = builder.data_file(_rows(1))
    builder.commit(data)
    loaded = load_table(builder.location)._current()
    builder.commit(*builder.deletion_vectors([(data, [0])]))
    changed = delete_rows(loaded, "day = 1", WriteOptions(loaded.address), None)
    assert changed.counts.deleted == 5
    assert load_table(builder.location).scan().to_arrow().num_rows == 0
