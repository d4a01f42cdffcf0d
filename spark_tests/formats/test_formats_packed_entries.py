"""Entries of data files that are kept as columns, and how they are found by their paths."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icebergds.formats.manifests import packed_entries
from icebergds.formats.manifests.packed_entries import Int64s, PackedEntries, PathIndex
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
)

_NAN = float("nan")


def test_entries_are_the_same_without_their_metrics() -> None:
    entries = [
        _entry(0, first_row_id=0, split_offsets=(4, 1000), key_metadata=b"key"),
        _entry(1, number=3, partition=(None,), file_format=FileFormat.ORC),
        _entry(2, first_row_id=7, sort_order_id=1, spec_id=4, partition=(1, "a")),
        _entry(3, record_count=-1, file_size_in_bytes=2**40),
        *map(_entry, range(4, 3000)),
    ]
    with_metrics = [
        replace(entry, data_file=replace(entry.data_file, value_counts={1: 2})) for entry in entries
    ]
    assert list(PackedEntries.of(with_metrics)) == entries


def test_some_entries_are_taken_in_any_order() -> None:
    packed = PackedEntries.of(map(_entry, range(10)))
    some = packed.take(np.array([7, 2, 5])).take(np.array([2, 0]))
    assert list(some) == [_entry(5), _entry(7)]
    assert some.paths.to_pylist() == [_path(5), _path(7)]


def test_parts_of_several_manifests_are_put_together() -> None:
    entries = [_entry(i, number=i % 3, partition=(i % 4,), spec_id=i % 2) for i in range(20)]
    parts = [PackedEntries.of(entries[:8]), PackedEntries.of(entries[8:])]
    chosen = parts[0].take(np.array([5, 1])), parts[1]
    assert list(PackedEntries.concat(parts)) == entries
    assert list(PackedEntries.concat(chosen)) == [entries[5], entries[1], *entries[8:]]
    assert list(PackedEntries.concat([parts[0].take(np.array([3])), parts[0]])) == [
        entries[3],
        *entries[:8],
    ]
    assert not list(PackedEntries.concat([]))


def test_partitions_are_those_of_the_format() -> None:
    """All NaNs are equal, and -0.0 is not 0.0; equal values of two specs are two partitions."""
    values = [(0.0,), (-0.0,), (_NAN,), (float("nan"),), (None,), (0.0,)]
    packed = PackedEntries.of(
        [
            *(_entry(i, partition=partition) for i, partition in enumerate(values)),
            _entry(6, partition=(0.0,), spec_id=1),
        ]
    )
    numbers = packed.partition_numbers().tolist()
    assert [numbers.index(number) for number in numbers] == [0, 1, 2, 2, 4, 0, 6]
    assert sorted(map(list, packed.by_partition().values())) == [[0, 5], [1], [2, 3], [4], [6]]
    assert [repr(one.partition) for one in packed.partitions()] == [
        "(0.0,)",
        "(-0.0,)",
        "(nan,)",
        "(None,)",
        "(0.0,)",
    ]


@pytest.mark.parametrize("same_hash", [False, True])
def test_paths_are_found_by_their_text(monkeypatch: pytest.MonkeyPatch, same_hash: bool) -> None:
    if same_hash:
        monkeypatch.setattr(packed_entries, "path_hashes", _equal_hashes)
    packed = PackedEntries.of(map(_entry, range(10))).take(np.arange(9, 1, -1))
    asked = [_path(3), "s3://elsewhere", None, _path(9), _path(1), _path(3)]
    expected = [6, -1, -1, 0, -1, 6]
    assert packed.index().find(pa.array(asked, pa.string())).tolist() == expected
    assert packed.index().find_entries(packed.take(np.array([3, 0]))).tolist() == [3, 0]
    parts = [pa.array(map(_path, part), pa.string()) for part in ((9, 8, 7), (), (6, 5, 4, 3, 2))]
    of_parts = PathIndex.of(parts)
    assert of_parts.find(pa.array(asked, pa.string())).tolist() == expected
    assert PathIndex.of([]).find(pa.array(asked, pa.string())).tolist() == [-1] * 6


def test_a_file_takes_little_more_memory_than_its_path() -> None:
    packed = PackedEntries.of(_entry(i, split_offsets=(4, 2**27)) for i in range(1000))
    columns = (getattr(packed.columns, name) for name in packed.columns.__slots__)
    nbytes = sum(column.nbytes for column in columns if not isinstance(column, tuple))
    assert nbytes < 1000 * (len(_path(0)) + 100)
    assert len(packed.kinds) == len(packed.columns.commits) == 1


def _equal_hashes(paths: Iterable[str | None]) -> Int64s:
    return np.array([0 for _ in paths], np.int64)


def _entry(index: int, *, number: int = 1, **fields: Any) -> ManifestEntry:
    given: dict[str, Any] = {
        "content": FileContent.DATA,
        "file_path": _path(index),
        "file_format": FileFormat.PARQUET,
        "spec_id": 0,
        "partition": (1,),
        "record_count": index,
        "file_size_in_bytes": 100 * index,
    }
    file = DataFile(**{**given, **fields})
    return ManifestEntry(ManifestEntryStatus.ADDED, 17 + number, number, number, file)


def _path(index: int) -> str:
    return f"s3://bucket/db/t/data/{index:05}.parquet"
