"""Times equality deletes: building and probing key sets, compared with a hash join in Arrow.

    python benchmarks/equality_keys.py [CASE ...] [--keys N ...] [--hits SHARE] [--commits N]

For each case (dense, int, string, pair): CPU seconds to build the set from batches, peak memory
while it is built and memory that the set keeps, CPU seconds to probe all rows in batches of 65,536,
and their ratio to an Arrow semi join of whole columns, which does not match nulls.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.acero as acero
from peak_memory import peak_megabytes

from icebergds.scan.read.key_set import EqualityKeySet, EqualityKeySetBuilder
from icebergds.spec.types import INT, LONG, STRING, IcebergType, NestedField

BATCH = 65_536
OLDEST_DELETE = 10
Columns = list[pa.Array]


def spread_ints(ids: np.ndarray) -> Columns:
    return [pa.array((ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64))]


def dense_ints(ids: np.ndarray) -> Columns:
    return [pa.array(ids)]


def strings(ids: np.ndarray) -> Columns:
    return [pa.array(ids * 7919).cast(pa.string())]


def pairs(ids: np.ndarray) -> Columns:
    numbers = pa.array((ids % 1000).astype(np.int32), mask=ids % 17 == 0)
    return [numbers, pa.array(ids).cast(pa.string())]


CASES: dict[str, tuple[tuple[IcebergType, ...], Callable[[np.ndarray], Columns]]] = {
    "dense": ((LONG,), dense_ints),
    "int": ((LONG,), spread_ints),
    "string": ((STRING,), strings),
    "pair": ((INT, STRING), pairs),
}


def key_ids(count: int) -> Iterator[np.ndarray]:
    """Ids of deleted rows: every tenth number, unordered."""
    for start in range(0, count, BATCH):
        index = np.arange(start, min(start + BATCH, count))
        yield index * 7_368_787 % count * 10


def row_ids(rows: int, keys: int, hits: float) -> Iterator[np.ndarray]:
    """Ids of probed rows, a million at a time, of which a share are deleted."""
    rng = np.random.default_rng(1)
    for start in range(0, rows, 1_000_000):
        count = min(1_000_000, rows - start)
        ids = rng.integers(0, keys, count) * 10
        yield ids + np.where(rng.random(count) < hits, 0, rng.integers(1, 10, count))


def build(case: str, keys: int, commits: int) -> EqualityKeySet:
    types, columns_of = CASES[case]
    builder = EqualityKeySetBuilder(
        [NestedField(i + 1, f"c{i}", field_type) for i, field_type in enumerate(types)]
    )
    for number, ids in enumerate(key_ids(keys)):
        builder.add(columns_of(ids), OLDEST_DELETE + number % commits)
    return builder.build()


def semi_join(case: str, keys: int, probed: list[Columns]) -> float:
    columns_of = CASES[case][1]
    names = [f"c{i}" for i in range(len(probed[0]))]
    right = pa.Table.from_batches(
        [pa.RecordBatch.from_arrays(columns_of(ids), names) for ids in key_ids(keys)]
    )
    left = pa.Table.from_batches([pa.RecordBatch.from_arrays(columns, names) for columns in probed])
    start = time.process_time()
    acero.Declaration(
        "hashjoin",
        acero.HashJoinNodeOptions("left semi", names, names),
        [
            acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
            for table in (left, right)
        ],
    ).to_table(use_threads=False)
    return time.process_time() - start


def run(case: str, rows: int, keys: int, hits: float, commits: int) -> None:
    columns_of = CASES[case][1]
    # The data file is older than all deletes, or newer than the first commit's.
    data_sequence_number = OLDEST_DELETE - (commits == 1)
    build(case, 1000, 1).contains(columns_of(np.arange(1000)), data_sequence_number)
    before = peak_megabytes()
    start = time.process_time()
    key_set = build(case, keys, commits)
    built = time.process_time() - start
    height = peak_megabytes() - before
    probed = [columns_of(ids) for ids in row_ids(rows, keys, hits)]
    times = []
    for _ in range(3):
        start = time.process_time()
        for columns in probed:
            for offset in range(0, len(columns[0]), BATCH):
                batch = [column.slice(offset, BATCH) for column in columns]
                key_set.contains(batch, data_sequence_number)
        times.append(time.process_time() - start)
    probe = sorted(times)[1]
    print(
        f"{case:7} {keys:>10,} keys: build {built:6.2f} s, {height:5.0f} MB peak, "
        f"{key_set.nbytes / 2**20:5.0f} MB kept; probe {probe:6.3f} s, "
        f"{probe / semi_join(case, keys, probed):.2f} of a join",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, nargs="*", default=[10_000, 1_000_000, 10_000_000])
    parser.add_argument("--hits", type=float, default=0.1, help="fraction of rows that are deleted")
    parser.add_argument("--commits", type=int, default=1, help="number of commits with deletes")
    options = parser.parse_args()
    cases = options.cases or list(CASES)
    if len(cases) == 1 and len(options.keys) == 1:
        run(cases[0], options.rows, options.keys[0], options.hits, options.commits)
        return
    # One process per case: peak memory is measured per process.
    for case in cases:
        for keys in options.keys:
            arguments = [case, "--rows", options.rows, "--keys", keys, "--hits", options.hits]
            arguments += ["--commits", options.commits]
            subprocess.run([sys.executable, __file__, *map(str, arguments)], check=True)


if __name__ == "__main__":
    main()
