"""Writes of which Spark runs one task twice at once; prints what it saw as JSON.

Spark starts the second attempt on another host alone, so executors are those of a cluster whose
two workers have two names of this machine.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyspark
from built.tables import TableBuilder
from cluster_writes import ROWS, SCHEMA
from pyspark import TaskContext
from pyspark.sql import SparkSession

from icebergds import load_table

# What each of two attempts does when it has its rows: its number, and whether there is a file.
Fate: TypeAlias = Callable[[int, Callable[[str], bool]], None]
_HOSTS = ("127.0.0.1", "127.0.0.2")


def main(directory: str) -> None:
    with cluster(Path(directory)) as master:
        spark = (
            SparkSession.builder.master(master)
            .config("spark.ui.enabled", "false")
            .config("spark.log.level", "OFF")
            .config("spark.driver.host", _HOSTS[0])
            .config("spark.cores.max", "2")
            .config("spark.executor.cores", "1")
            .config("spark.executor.memory", "512m")
            .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
            .config("spark.speculation", "true")
            .config("spark.speculation.interval", "100ms")
            .config("spark.speculation.quantile", "0.5")
            .config("spark.speculation.multiplier", "1.0")
            .config("spark.speculation.minTaskRuntime", "100ms")
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
            .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
            .getOrCreate()
        )
        seen = {
            "first is killed": write(spark, Path(directory, "killed"), first_never_ends),
            "both end": write(spark, Path(directory, "ended"), both_end_at_once),
            "second is late": write(spark, Path(directory, "late"), second_never_ends),
        }
        print(json.dumps(seen), flush=True)
        spark.stop()


def write(spark: SparkSession, path: Path, fate: Fate) -> dict[str, Any]:
    """Writes 2 * ROWS ids in two tasks, of which the second is slow, so that it gets a twin."""
    TableBuilder(path, SCHEMA).commit()
    markers = path.with_suffix(".markers")
    markers.mkdir()

    def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 1:
            # By now the writer has begun its file.
            time.sleep(1)
            attempt = context.attemptNumber()
            (markers / str(attempt)).touch()
            fate(attempt, lambda name: (markers / name).exists())

    rows = spark.range(0, 2 * ROWS, 1, 2).selectExpr("id", "repeat('x', 5000) AS pad")
    slow = rows.mapInArrow(rows_of, "id long, pad string")
    slow.write.format("icebergpy").mode("append").save(str(path))
    (markers / "committed").touch()
    table = load_table(path)
    read = table.scan(columns=["id", "_file"]).to_arrow()
    return {
        "attempts": len([file for file in markers.iterdir() if file.name.isdigit()]),
        "complete": sorted(read["id"].to_pylist()) == list(range(2 * ROWS)),
        "snapshots": len(table.snapshots()) - 1,
        "live files": len(set(read["_file"].to_pylist())),
        "files": len(list(path.rglob("*.parquet"))),
    }


def first_never_ends(attempt: int, exists: Callable[[str], bool]) -> None:
    """The second attempt wins; the first is killed."""
    if attempt == 0:
        time.sleep(600)


def second_never_ends(attempt: int, exists: Callable[[str], bool]) -> None:
    """The first attempt wins when the second has begun its file, which is killed."""
    if attempt == 1:
        time.sleep(600)
    wait_for(lambda: exists("1"))


def both_end_at_once(attempt: int, exists: Callable[[str], bool]) -> None:
    """Both have written all rows when the first of them may commit."""
    wait_for(lambda: exists(str(1 - attempt)))


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)


@contextmanager
def cluster(directory: Path) -> Iterator[str]:
    """The address of a cluster with a worker of one core on each host."""
    with socket.socket() as free:
        free.bind((_HOSTS[0], 0))
        port = free.getsockname()[1]
    address = f"spark://{_HOSTS[0]}:{port}"
    with ExitStack() as stack:
        stack.enter_context(daemon("master.Master", "--host", _HOSTS[0], "--port", str(port)))
        for host in _HOSTS:
            arguments = ("--host", host, "--cores", "1", "--memory", "1g")
            where = ("--work-dir", str(directory / "work"))
            stack.enter_context(daemon("worker.Worker", *arguments, *where, address))
        yield address


@contextmanager
def daemon(name: str, *arguments: str) -> Iterator[None]:
    """A part of a cluster, in a process of its own."""
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    command = [str(program), f"org.apache.spark.deploy.{name}", "--webui-port", "0", *arguments]
    environment = {**os.environ, "SPARK_DAEMON_MEMORY": "256m"}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


if __name__ == "__main__":
    main(*sys.argv[1:])
