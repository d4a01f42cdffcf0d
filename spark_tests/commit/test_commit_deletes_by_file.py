"""Deletes of many files, of which few differ."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from icebergds.commit.deletes_by_file import DeleteCollector
from icebergds.formats.manifests.packed_entries import PackedEntries
from icebergds.spec.manifest import (
    DataFile,
    FileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
)

_FILES = 8
_additions = st.lists(
    st.lists(st.tuples(st.integers(0, _FILES - 1), st.integers(0, 2)), unique_by=lambda one: one[0])
)


@given(_additions)
def test_each_file_has_what_was_added_to_it(additions: list[list[tuple[int, int]]]) -> None:
    collector = DeleteCollector(_FILES, tuple.__add__)
    expected: dict[int, tuple[DataFile, ...]] = dict.fromkeys(range(_FILES), ())
    for number, added in enumerate(additions):
        deletes = tuple((_file(f"delete-{number}-{which}"),) for which in range(3))
        for row, which in added:
            expected[row] += deletes[which]
        rows, which_of = np.array(added, np.int64).reshape(-1, 2).T
        collector.add(rows, which_of.astype(np.int32), deletes)
    assert {row: collector.of(row) for row in range(_FILES)} == expected
    found = collector.collected(_entries())
    collected = map(found.deletes.__getitem__, found.numbers)
    assert dict(zip(found.files.paths.to_pylist(), collected, strict=True)) == {
        f"data-{row}": deletes for row, deletes in expected.items() if deletes
    }


def test_files_with_the_same_deletes_share_them() -> None:
    collector = DeleteCollector(_FILES, tuple.__add__)
    for number in range(3):
        rows = np.arange(_FILES)
        collector.add(rows, np.zeros(_FILES, np.int32), ((_file(f"delete-{number}"),),))
    assert collector.of(0) is collector.of(_FILES - 1)
    assert len(collector.of(0)) == 3


def _entries() -> PackedEntries:
    return PackedEntries.of(
        ManifestEntry(ManifestEntryStatus.ADDED, 1, 1, 1, _file(f"data-{row}"))
        for row in range(_FILES)
    )


def _file(path: str) -> DataFile:
    return DataFile(
        content=FileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        spec_id=0,
        partition=(),
        record_count=1,
        file_size_in_bytes=1,
    )
