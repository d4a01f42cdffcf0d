from __future__ import annotations

import numpy as np
import pytest

from icebergds.errors import InvalidDataError
from icebergds.formats.deletes.key_hash import Hashes
from icebergds.spec.manifest import DataFile, DataFileRef, FileContent, FileFormat
from icebergds.write.changes.deltas import DeltaFiles, KeyHashes, merge_deltas, refuse_shared_keys
from icebergds.write.changes.keyed_delta import ReplacedRows


def _file(path: str) -> DataFile:
    return DataFile(FileContent.DATA, path, FileFormat.PARQUET, 0, (), 1, 1)


def _hashes(*numbers: int) -> Hashes:
    return np.array(numbers, np.uint64)


def test_merged_deltas_hold_all_files_and_add_counts_up() -> None:
    first = DeltaFiles((_file("a"),), (_file("b"),), counts={"inserted": 1, "deleted": 2})
    ref = DataFileRef("d", 0, ())
    second = DeltaFiles((), (_file("c"),), (_file("e"),), (ref,), {"deleted": 3})
    merged = merge_deltas(iter([first, second]))
    assert [file.file_path for file in merged.files] == ["a"]
    assert [file.file_path for file in merged.deletes] == ["b", "c"]
    assert [file.file_path for file in merged.replaced] == ["e"]
    assert merged.referenced == (ref,)
    assert merged.counts == {"inserted": 1, "deleted": 5}


def test_no_deltas_are_an_empty_one() -> None:
    assert merge_deltas([]) == DeltaFiles()


def test_the_keys_of_a_task_are_held_once() -> None:
    assert KeyHashes.of([_hashes(3, 1), _hashes(3, 2)]).hashes.tolist() == [1, 2, 3]
    assert KeyHashes.of([_hashes(1, 1, 2)]).hashes.tolist() == [1, 2]
    assert KeyHashes.of([]).hashes.tolist() == []


@pytest.mark.parametrize("count", [0, 1, 40, 1_000])
def test_rows_are_replaced_under_the_least_id_of_their_key(count: int) -> None:
    draw = np.random.default_rng(count)
    hashes = draw.integers(0, max(count // 2, 1), count).astype(np.uint64)
    row_ids = draw.permutation(count) - count // 10
    least: dict[int, int] = {}
    for key, row_id in zip(hashes.tolist(), row_ids.tolist(), strict=True):
        if row_id >= 0:
            least[key] = min(row_id, least.get(key, row_id))
    # A negative id is none.
    replaced = ReplacedRows.of(hashes, np.maximum(row_ids, -1))
    asked = draw.permutation(np.arange(count + 3))
    expected = [least.get(key) for key in asked.tolist()]
    assert replaced.ids_of(asked.astype(np.uint64)).to_pylist() == expected
    assert len(replaced.hashes) == len(least)


def test_tasks_with_different_keys_are_accepted() -> None:
    refuse_shared_keys([KeyHashes.of([_hashes(1, 2)]), KeyHashes.of([_hashes(3)])], "db.t")
    refuse_shared_keys([], "db.t")


def test_keys_of_several_tasks_are_counted() -> None:
    parts = [KeyHashes.of([_hashes(1, 2, 2**64 - 2)]), KeyHashes.of([_hashes(2, 2**64 - 2)])]
    with pytest.raises(InvalidDataError, match=r"db\.t: 2 keys"):
        refuse_shared_keys(parts, "db.t")
