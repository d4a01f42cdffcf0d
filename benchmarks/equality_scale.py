"""Reads a table of which equality deletes delete 100 million keys, in 1,000 files.

    python benchmarks/equality_scale.py [DIRECTORY] [--files 1000] [--keys 100000]

Every delete file may have keys of every data file. Prints seconds and the most memory of a Python
worker of Spark, whose executors are processes of their own, for values of `delete-cache-bytes`.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
from peak_memory import peak_megabytes, python_processes
from pyspark.sql import SparkSession

from icebergds import NestedField, Schema, Table, load_catalog, register
from icebergds.spec.types import LONG

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
DATA_FILES = 8
ROWS = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", nargs="?", type=Path, default=Path(".cache/bench/keys"))
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=100_000, help="of each file")
    parser.add_argument("--megabytes", type=int, nargs="*", default=[512, 128])
    options = parser.parse_args()
    table = filled(options.directory.absolute(), options.files, options.keys)
    # Only even ids are deleted.
    expected = DATA_FILES * ROWS // 2
    for megabytes in options.megabytes:
        # With new workers: those of before remember the most that they took.
        spark = started()
        allowed = str(megabytes << 20)

        def read(spark: SparkSession = spark, allowed: str = allowed) -> int:
            reader = spark.read.format("icebergpy").option("delete-cache-bytes", allowed)
            return reader.load(table.location()).where("id >= 0").select("id").count()

        assert measured(f"read, {megabytes} MB", read) == expected
        spark.stop()


def started() -> SparkSession:
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def filled(directory: Path, files: int, keys: int) -> Table:
    """The table, made once a directory."""
    catalog = load_catalog("keys", warehouse=str(directory))
    name = f"db.keys_{files}_{keys}"
    if ("db",) not in catalog.list_namespaces():
        catalog.create_namespace("db")
    if catalog.table_exists(name):
        return catalog.load_table(name)
    schema = Schema((NestedField(1, "id", LONG, required=True),))
    table = catalog.create_table(name, schema)
    span = 2 * files * keys
    step = span // (DATA_FILES * ROWS)
    for number in range(DATA_FILES):
        ids = np.arange(number, DATA_FILES * ROWS, DATA_FILES) * (step | 1) % span
        table.append(pa.table({"id": ids}, pa.schema([pa.field("id", pa.int64(), False)])))
    for number in range(files):
        ids = 2 * (np.arange(keys) * files + number)
        table.delete_keys(pa.table({"id": ids}), keys=["id"])
    return table


def measured(what: str, work: Callable[[], int]) -> int:
    with sampled() as peaks:
        start = time.perf_counter()
        found = work()
        seconds = time.perf_counter() - start
    workers = [peak for pid, peak in peaks.items() if pid != os.getpid()]
    print(f"{what:20} {seconds:8.1f} s  worker {max(workers, default=0.0):6.0f} MB", flush=True)
    return found


@contextmanager
def sampled() -> Iterator[dict[int, float]]:
    """The most memory of each Python process that runs in the block, in megabytes."""
    peaks: dict[int, float] = {}
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(0.2):
            for pid in python_processes():
                peaks[pid] = max(peaks.get(pid, 0.0), peak_megabytes(pid))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    main()
