"""How many bytes of blocks Spark sends to a Python task at once."""

from __future__ import annotations

import pyarrow as pa

from icebergds.spark.block_shuffle import _rows_besides


def test_large_blocks_have_rows_besides_them_so_that_fewer_are_sent_at_once() -> None:
    blocks = pa.record_batch(
        {
            "task": pa.array([0, 0, 1], pa.int32()),
            "place": pa.array([4, 5, 9], pa.int32()),
            "block": pa.array([b"x" * 100, b"x" * 9, b"x" * 20], pa.binary()),
        }
    )
    (added,) = _rows_besides(blocks, 10)
    assert added.schema == blocks.schema
    assert added.to_pydict() == {
        "task": [0] * 10 + [1] * 2,
        "place": [4] * 10 + [9] * 2,
        "block": [None] * 12,
    }
    assert not list(_rows_besides(blocks, 101))
