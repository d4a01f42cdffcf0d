"""New files that are kept in little memory."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, strategies as st

from icebergds.commit.compared_files import CompressedFiles
from icebergds.spec.manifest import DataFile, FileContent, FileFormat


def _vector(number: int) -> DataFile:
    return DataFile(
        content=FileContent.POSITION_DELETES,
        file_path="s3://bucket/t/data/deletes.puffin",
        file_format=FileFormat.PUFFIN,
        spec_id=0,
        partition=(number % 3,),
        record_count=number,
        file_size_in_bytes=1 << 20,
        lower_bounds={1: bytes([number % 256])},
        referenced_data_file=f"s3://bucket/t/data/{number}.parquet",
        content_offset=4 + 40 * number,
        content_size_in_bytes=40,
    )


@given(st.integers(0, 3000))
def test_files_stay_as_they_are(count: int) -> None:
    files = [_vector(number) for number in range(count)]
    packed = CompressedFiles.of(iter(files))
    assert len(packed) == count
    assert list(packed) == files
    # Once more.
    assert list(packed) == files


@given(st.lists(st.integers(0, 1500), max_size=4), st.integers())
def test_files_are_chosen_by_a_mask(counts: list[int], seed: int) -> None:
    parts = [[_vector(number) for number in range(count)] for count in counts]
    files = [file for part in parts for file in part]
    packed = CompressedFiles.concat(map(CompressedFiles.of, parts))
    random = Random(seed)
    mask = np.array([random.random() < 0.99 for _ in files], np.bool_)
    chosen = packed.filter(mask)
    assert list(chosen) == [file for file, is_chosen in zip(files, mask, strict=True) if is_chosen]
    assert len(chosen) == mask.sum()


def test_many_vectors_of_one_file_take_little_memory() -> None:
    packed = CompressedFiles.of(map(_vector, range(10_000)))
    assert sum(len(part.data) for part in packed._parts) < 100 * 10_000
