"""What skipping pages inside of row groups saves, against skipping row groups alone.

page_skipping.py [--rows 12000000] [--milliseconds 30]

One file per table, ordered by its key or not, on the local disk and on S3 behind a proxy that
answers late. Each query is timed with and without the page index, in turns; medians of five.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from slow_storage import slow_storage

import icebergds
from icebergds.formats.parquet.page_pruning import PagePruner

sys.path.insert(0, str(Path(__file__).parents[1] / "spark_tests"))
from s3_server import s3_server, storage_properties

_RUNS = 5
_PART = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=12_000_000)
    parser.add_argument("--milliseconds", type=float, default=30)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, s3_server() as server:
        places = {"local": icebergds.load_catalog("local", warehouse=directory)}
        location = server.new_location()
        near = icebergds.load_catalog("near", warehouse=location, **server.properties)
        for name in ("ordered", "unordered"):
            for catalog in (places["local"], near):
                write(catalog, f"db.{name}", arguments.rows, is_ordered=name == "ordered")
        with slow_storage(server.racing_port, arguments.milliseconds / 1000) as far:
            properties = storage_properties(far.port)
            places["far"] = icebergds.load_catalog("far", warehouse=location, **properties)
            for place, catalog in places.items():
                for name in ("ordered", "unordered"):
                    show(place, catalog.load_table(f"db.{name}"), name, arguments.rows)


def write(catalog: icebergds.Catalog, name: str, rows: int, *, is_ordered: bool) -> None:
    random = np.random.default_rng(7)
    keys = np.arange(rows) if is_ordered else random.permutation(rows)

    def batches() -> Iterator[pa.RecordBatch]:
        for first in range(0, rows, _PART):
            part = keys[first : first + _PART]
            columns = {"key": part} | {f"v{i}": random.random(len(part)) for i in range(4)}
            columns["text"] = pc.binary_join_element_wise(
                "customer", pa.array(part).cast("string"), " "
            )
            yield pa.RecordBatch.from_pydict(columns)

    first = next(batches())
    catalog.create_namespace_if_not_exists(name.split(".")[0])
    properties = {"write.target-file-size-bytes": str(2**34)}
    table = catalog.create_table(name, first.schema, properties=properties)
    table.append(pa.RecordBatchReader.from_batches(first.schema, batches()))


def show(place: str, table: icebergds.Table, name: str, rows: int) -> None:
    size = sum(table.inspect.files()["file_size_in_bytes"].to_pylist())
    filters = {
        "one key": f"key = {rows // 2}",
        "a thousandth": f"key >= {rows // 2} AND key < {rows // 2 + rows // 1000}",
        "a hundredth": f"key >= {rows // 2} AND key < {rows // 2 + rows // 100}",
    }
    for what, text in filters.items():
        for columns in (None, ["v0"]):
            ask = partial(rows_of, table, text, columns)
            with_pages, without = in_turns(ask)
            print(
                f"{place:6} {name:9} {size / 1e6:4.0f} MB, {what:12} "
                f"{'all columns' if columns is None else 'one column':11} "
                f"{without * 1000:7.1f} ms by row groups, {with_pages * 1000:7.1f} ms by pages: "
                f"{without / with_pages:5.2f} times",
                flush=True,
            )


def rows_of(table: icebergds.Table, text: str, columns: list[str] | None) -> pa.Table:
    return table.scan(text, columns=columns).to_arrow()


def in_turns(ask: Callable[[], pa.Table]) -> tuple[float, float]:
    times: dict[bool, list[float]] = {True: [], False: []}
    assert ask().num_rows == without_pages(ask).num_rows
    for _ in range(_RUNS):
        for by_pages, found in times.items():
            start = time.perf_counter()
            ask() if by_pages else without_pages(ask)
            found.append(time.perf_counter() - start)
    return statistics.median(times[True]), statistics.median(times[False])


def without_pages(ask: Callable[[], pa.Table]) -> pa.Table:
    with row_groups_alone():
        return ask()


@contextmanager
def row_groups_alone() -> Iterator[None]:
    select = PagePruner.select
    PagePruner.select = lambda self, group: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        PagePruner.select = select  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
