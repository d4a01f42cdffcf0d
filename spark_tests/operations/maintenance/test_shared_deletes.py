"""Rows that delete files of several data files delete: as many of each, for all that is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from built.api_tables import ids_of
from built.delta_tables import SCHEMA
from built.tables import TableBuilder

from icebergds import Table, load_table


def _table(tmp_path: Path, deleted: int) -> Table:
    """Two files of ten rows, of which one delete file deletes some."""
    builder = TableBuilder(tmp_path / "t", SCHEMA)
    files = [builder.data_file([(10 * n + i, "a") for i in range(10)]) for n in range(2)]
    builder.commit(*files)
    positions = {file.file_path: list(range(deleted // 2)) for file in files}
    builder.commit(builder.position_deletes(positions))
    return load_table(str(builder.location))


@pytest.mark.parametrize(("deleted", "rewritten"), [(4, 0), (6, 2), (20, 2)])
def test_files_are_rewritten_by_their_share_of_all_rows(
    tmp_path: Path, deleted: int, rewritten: int
) -> None:
    table = _table(tmp_path, deleted)
    before = ids_of(table)
    assert table.health().files.to_rewrite == rewritten
    assert table.rewrite_data_files().rewritten_data_files_count == rewritten
    assert ids_of(table) == before


def test_the_least_share_is_that_of_the_option(tmp_path: Path) -> None:
    table = _table(tmp_path, 6)
    kept = table.rewrite_data_files(options={"delete-ratio-threshold": "0.31"})
    assert kept.rewritten_data_files_count == 0
    done = table.rewrite_data_files(options={"delete-ratio-threshold": "0.3"})
    assert done.rewritten_data_files_count == 2


def test_deletes_that_are_older_than_a_file_do_not_count(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t", SCHEMA)
    written = (builder.data_file([(i, "a")]) for i in range(3))
    first, second, third = files = sorted(written, key=lambda file: file.file_path)
    builder.commit(first, third)
    builder.commit(builder.position_deletes({first.file_path: [0], third.file_path: [0]}))
    builder.commit(second, removed=files[::2], data_sequence_numbers={second.file_path: 1})
    table = load_table(str(builder.location))
    assert table.health().files.to_rewrite == 0
    assert table.rewrite_data_files().rewritten_data_files_count == 0


def test_what_was_rewritten_is_not_rewritten_again(tmp_path: Path) -> None:
    table = _table(tmp_path, 10)
    before = ids_of(table)
    table.maintain()
    assert ids_of(table) == before
    health = table.health()
    assert (health.deletes.count, health.deletes.deleted_rows, health.is_healthy) == (0, 0, True)
    assert table.rewrite_data_files().rewritten_data_files_count == 0
