"""Sets of listed files have each file once, and lose those that are in use, in little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from icebergds.formats.deletes.key_columns import KeyColumn
from icebergds.io.fileio import FileIO
from icebergds.operations.maintenance.unused_files import delete_files, file_set
from icebergds.operations.maintenance.unused_files.file_set import FileSet, Locations
from icebergds.operations.maintenance.unused_files.reachable_files import FileKind, content_by_kind


def _add(files: FileSet, names: Sequence[str]) -> None:
    batch = pa.record_batch({"location": pa.array(names, pa.string())})
    files.add(batch, batch["location"])


def _left(files: FileSet) -> list[str]:
    return [name for batch in files.drain() for name in batch["location"].to_pylist()]


def test_a_file_that_is_added_again_counts_once() -> None:
    files = FileSet()
    _add(files, ["a", "b", "a"])
    _add(files, [])
    _add(files, ["b", "c"])
    assert len(files) == 3
    assert _left(files) == ["a", "b", "c"]


def test_files_of_one_name_are_one_however_their_locations_are_spelled() -> None:
    files = FileSet()
    batch = pa.record_batch({"location": pa.array(["/t//a", "/t/a", "/t/b"])})
    files.add(batch, pa.array(["/t/a", "/t/a", "/t/b"]))
    files.leave_out(pa.array(["/t/b"]))
    assert _left(files) == ["/t//a"]


def test_an_empty_set_has_nothing_to_leave_out() -> None:
    files = FileSet()
    files.leave_out(pa.array(["a"]))
    assert (len(files), _left(files)) == (0, [])


def test_of_files_whose_hashes_are_equal_one_is_left_out_and_all_if_one_is_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What cannot be told apart is not deleted."""

    def first_letter(columns: Sequence[KeyColumn], length: int, seed: int) -> object:
        (column,) = columns
        return np.array([value.as_py()[0] for value in column.text or ()], np.uint64)

    monkeypatch.setattr(file_set, "hash_columns", first_letter)
    files = FileSet()
    _add(files, ["a1", "a2", "b1", "c1"])
    files.leave_out(pa.array(["b2", "d1"]))
    assert _left(files) == ["a1", "c1"]


def test_random_files_are_as_in_a_set_of_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_set, "_FEW_ROWS", 20)
    for seed in range(30):
        draw = Random(seed)
        names = [f"s3://bucket/t/data/day={n % 7}/{'x' * n}{n}.parquet" for n in range(200)]
        files, expected = FileSet(), dict[str, None]()
        for _ in range(draw.randrange(12)):
            some = draw.choices(names, k=draw.randrange(50))
            _add(files, some)
            expected |= dict.fromkeys(some)
        for _ in range(draw.randrange(4)):
            some = draw.choices(names, k=draw.randrange(50))
            files.leave_out(pa.array(some, pa.string()))
            expected = {name: None for name in expected if name not in some}
            assert len(files) == len(expected)
        assert _left(files) == list(expected)


def test_locations_are_a_sequence_of_texts() -> None:
    locations = Locations(pa.chunked_array([["a", "b"], [], ["c"]]))
    assert len(locations) == 3
    assert list(locations) == ["a", "b", "c"]
    assert list(locations[1:3]) == ["b", "c"]
    assert locations[-1] == "c"


_MANY = 100_000


def _many(count: int = _MANY) -> Iterable[pa.RecordBatch]:
    """Batches of data files."""
    for start in range(0, count, 2_000):
        names = [f"s3://bucket/t/data/{n:0100}.parquet" for n in range(start, start + 2_000)]
        content = pa.array([0] * len(names), pa.int8())
        yield pa.record_batch({"location": pa.array(names), "content": content})


def _python_bytes(run: Callable[[], object]) -> int:
    """The most memory that Python and numpy took meanwhile, beside Arrow's."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_files_by_kind_take_few_bytes_next_to_their_locations() -> None:
    def run() -> None:
        files = FileSet()
        for batch in _many():
            files.add(batch, batch["location"])
        assert len(content_by_kind(files)[FileKind.DATA]) == _MANY

    assert _python_bytes(run) < 80 * _MANY


@pytest.mark.parametrize("max_concurrent_deletes", [None, 4])
def test_deleting_many_files_takes_memory_of_few(
    monkeypatch: pytest.MonkeyPatch, max_concurrent_deletes: int | None
) -> None:
    count = 10_000
    deleted: list[int] = []
    monkeypatch.setattr(FileIO, "delete_all", lambda _, batch: deleted.append(len(list(batch))))
    monkeypatch.setattr(FileIO, "delete", lambda _, location: deleted.append(1))
    monkeypatch.setattr(delete_files, "_SUBMITTED", 100)
    files = Locations(pa.chunked_array([batch["location"] for batch in _many(count)]))

    def run() -> None:
        delete_files.delete_files(FileIO(), {FileKind.DATA: files}, max_concurrent_deletes)

    assert _python_bytes(run) < 150 * count
    assert sum(deleted) == count
