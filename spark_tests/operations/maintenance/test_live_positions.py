"""Positions of live data files, collected from many delete files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import InvalidMetadataError
from icebergds.formats.deletes.position_deletes import PositionBatch
from icebergds.operations.maintenance.deletes import position_delete_tasks
from icebergds.operations.maintenance.deletes.live_files import LiveFiles, hash_paths
from icebergds.operations.maintenance.deletes.position_delete_tasks import LivePositions

_PATHS = st.sampled_from([f"data/{number}.parquet" for number in range(6)])
_ROWS = st.lists(st.tuples(_PATHS, st.integers(0, 20)), max_size=12)


def _live(files: list[tuple[str, int]]) -> LiveFiles:
    paths = pa.array([path for path, _ in files], pa.string())
    return LiveFiles.of(7, hash_paths(paths, 7), np.array([n for _, n in files], np.int64))


def _batch(rows: list[tuple[str, int]]) -> PositionBatch:
    paths = pa.array([path for path, _ in rows], pa.string())
    return PositionBatch.of(paths, np.array([position for _, position in rows], np.int64))


@given(
    live=st.dictionaries(_PATHS, st.integers(0, 5), max_size=6),
    batches=st.lists(st.tuples(_ROWS, st.integers(0, 5)), max_size=8),
    rows_at_once=st.integers(1, 40),
)
@examples(200)
def test_they_are_those_of_all_batches_that_apply(
    live: dict[str, int], batches: list[tuple[list[tuple[str, int]], int]], rows_at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(position_delete_tasks, "_ROWS_AT_ONCE", rows_at_once)
        collected = LivePositions(_live(list(live.items())))
        for rows, number in batches:
            collected.add(_batch(rows), number)
        found = {path: positions.positions().tolist() for path, positions in collected.result()}
    expected: dict[str, set[int]] = {}
    for rows, number in batches:
        for path, position in rows:
            if path in live and live[path] <= number:
                expected.setdefault(path, set()).add(position)
    assert found == {path: sorted(positions) for path, positions in expected.items()}


def test_deletes_of_the_older_one_of_two_entries_are_refused() -> None:
    collected = LivePositions(_live([("a", 1), ("a", 5)]))
    with pytest.raises(InvalidMetadataError, match="data file a is listed several times"):
        collected.add(_batch([("a", 3)]), 4)


def test_deletes_of_all_entries_of_a_file_apply() -> None:
    collected = LivePositions(_live([("a", 1), ("a", 5)]))
    collected.add(_batch([("a", 3)]), 5)
    assert [(path, positions.positions().tolist()) for path, positions in collected.result()] == [
        ("a", [3])
    ]
