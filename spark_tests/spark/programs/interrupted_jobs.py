"""Jobs that Ctrl-C ends; prints what it saw as a line of JSON.

    interrupted_jobs.py DIRECTORY [ADDRESS]

The address is that of a server of Spark Connect; without it, Spark is in this process.

Each job writes a file for as long as it runs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from icebergds import load_table
from icebergds.interrupts import stop, stoppable
from icebergds.operations.runner import TaskAttempt
from icebergds.spark.runner import SparkRunner
from icebergds.spark.save_job import CLEAN_UP

_PATIENCE = 60.0


def main(directory: Path, address: str | None = None) -> None:
    spark = session(address)
    table = directory / "db" / "t"
    spark.range(3).write.format("icebergpy").mode("append").option("create", "true").save(
        str(table)
    )
    files = {path for path in directory.rglob("*") if path.is_file()}
    seen = {}
    for name, run in (("task", run_task), ("threads", run_in_threads), ("append", run_append)):
        mark = directory / name
        seen[name] = interrupted(partial(run, spark, mark, table), mark)
        # Classic Spark has a new thread for this one now, which knows no session yet.
        spark.createDataFrame([], "a int")
    left = {path for path in directory.rglob("*") if path.is_file()} - files
    print(json.dumps({**seen, "left": sorted(map(str, left))}), flush=True)
    spark.stop()


def session(address: str | None) -> SparkSession:
    # What starts this may ignore Ctrl-C, as shells do for jobs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    builder = SparkSession.builder
    if address is not None:
        return builder.remote(address).getOrCreate()
    builder = builder.master("local[2]").config("spark.ui.enabled", "false")
    return builder.config("spark.log.level", "OFF").getOrCreate()


def run_task(spark: SparkSession, mark: Path, table: Path) -> None:
    """Runs a task of maintenance."""

    def task(item: str, attempt: TaskAttempt) -> None:
        go_on(Path(item))

    def discard() -> int:
        is_there = mark.exists()
        mark.unlink(missing_ok=True)
        return int(is_there)

    SparkRunner(spark).run(task, [str(mark)], discard)


def run_in_threads(spark: SparkSession, mark: Path, table: Path) -> None:
    """Runs it in a thread, as groups of files are rewritten."""
    with stoppable(), ThreadPoolExecutor(1) as pool:
        running = pool.submit(copy_context().run, run_task, spark, mark, table)
        try:
            running.result()
        except BaseException:
            stop()
            raise


def run_append(spark: SparkSession, mark: Path, table: Path) -> None:
    """Appends rows, of which some come late."""

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        go_on(mark)

    load_table(table).append(spark.range(2).mapInArrow(slow, "id long"))


def go_on(mark: Path) -> None:
    """Writes the time to a file, again and again."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        mark.write_text(str(time.time()))
        time.sleep(0.02)


def interrupted(run: Callable[[], None], mark: Path) -> dict[str, Any]:
    """Runs something, and interrupts it once there is a file; how it ended."""

    def press() -> None:
        while not mark.exists():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        run()
        return {"ended": "as if nothing was"}
    except BaseException as error:
        seen = {
            "ended": type(error).__name__,
            "before its tasks": any(each.name == CLEAN_UP for each in threading.enumerate()),
            "notes": getattr(error, "__notes__", []),
        }
    finally:
        thread.join()
    for cleaning in threading.enumerate():
        if cleaning.name == CLEAN_UP:
            cleaning.join(_PATIENCE)
    return {**seen, "goes on": goes_on(mark)}


def goes_on(mark: Path) -> bool:
    """Whether a task still writes a file, which is deleted."""
    mark.unlink(missing_ok=True)
    time.sleep(0.5)
    return mark.exists()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
