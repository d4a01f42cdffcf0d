"""Which files a compaction removes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from built.commit_tables import CommitTable, create_table
from built.files import ids_in

from icebergds.commit.compact_files import AppliedDeletes, CompactFiles
from icebergds.commit.data_files import Append
from icebergds.commit.file_selection import FilesGoneError
from icebergds.formats.manifests import packed_entries
from icebergds.formats.manifests.packed_entries import Int64s, PackedEntries


def test_no_other_file_is_removed_if_all_paths_have_the_same_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def equal_hashes(paths: Iterable[str | None]) -> Int64s:
        return np.array([0 for _ in paths], np.int64)

    monkeypatch.setattr(packed_entries, "path_hashes", equal_hashes)
    table = _of_four_files(tmp_path)
    table.commit(_compaction(table, [1, 2]))
    assert table.ids() == [0, 1, 2, 3]
    assert len(table.paths()) == 3


def test_a_file_that_is_not_there_any_more_is_named(tmp_path: Path) -> None:
    table = _of_four_files(tmp_path)
    stale = _compaction(table, [1, 2])
    table.commit(_compaction(table, [2, 3]))
    gone = [entry.data_file.file_path for entry in stale.replaced][1:]
    with pytest.raises(FilesGoneError, match="1 of the files to replace are not in") as caught:
        table.commit(stale)
    assert list(caught.value.paths) == gone
    assert table.ids() == [0, 1, 2, 3]


def test_a_file_that_was_added_again_is_not_the_one_that_was_read(tmp_path: Path) -> None:
    table = _of_four_files(tmp_path)
    known = _compaction(table, [1, 2])
    entries = list(known.replaced)
    older = [entries[0], replace(entries[1], data_sequence_number=0)]
    with pytest.raises(FilesGoneError, match="added again, or their rows got ids"):
        table.commit(replace(known, replaced=PackedEntries.of(older)))


def _of_four_files(location: Path) -> CommitTable:
    table = create_table(location / "t")
    table.commit(Append(tuple(table.file([i], i % 2) for i in range(4))))
    return table


def _compaction(table: CommitTable, ids: list[int]) -> CompactFiles:
    """Replaces the files of some rows, one each, by one file."""
    of_day = {i: i % 2 for i in ids}
    planned = table.files()
    chosen = [file.entry for file in planned if ids_in(file.entry.data_file)[0] in of_day]
    return CompactFiles(
        PackedEntries.of(chosen),
        (table.file(ids, None),),
        (),
        len(ids),
        AppliedDeletes(frozenset(), frozenset()),
        table.head.snapshot_id,
        table.head.sequence_number,
    )
