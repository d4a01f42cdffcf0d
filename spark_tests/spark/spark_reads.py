"""Shorthands of the tests that read through Spark."""

from __future__ import annotations

import base64
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import reduce
from pathlib import Path
from typing import Any

from counting import read_log
from counting.read_log import Reads
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.types import StructType
from server_process import QUICK_SPARK, connect_port

import icebergds
from icebergds.spark.datasource import IcebergDataSource
from icebergds.spark.reader import IcebergReader

_COUNTING = Path(read_log.__file__).parent
_PROGRAMS = Path(__file__).parent / "programs"


def load(spark: SparkSession, path: Path | str, **options: Any) -> DataFrame:
    """A load of its own; options that hold a hyphen are passed as `**{"snapshot-id": ...}`."""
    return spark.read.format("icebergpy").options(**options).load(str(path))


def ids(df: DataFrame) -> list[int]:
    """The ids of all rows, in order."""
    return sorted(row[0] for row in df.select("id").collect())


def ids_of_each(frames: Mapping[str, DataFrame]) -> dict[str, list[int]]:
    """The ids of several DataFrames, by one Spark job."""
    named = [df.select("id").withColumn("name", lit(name)) for name, df in frames.items()]
    found: dict[str, list[int]] = {name: [] for name in frames}
    for row in reduce(DataFrame.union, named).collect():
        found[row["name"]].append(row["id"])
    return {name: sorted(rows) for name, rows in found.items()}


def message_of(action: Callable[[], Any]) -> str:
    """What Spark says when an action fails; fails where it does not."""
    try:
        result = action()
    except PySparkException as error:
        return str(error)
    raise AssertionError(f"no error, but {result}")


def planned(options: Mapping[str, str], schema: str | StructType | None = None) -> IcebergReader:
    """The reader of a load, made as Spark makes it, without Spark: what has no rows is quick."""
    source = IcebergDataSource(options)
    if isinstance(schema, str):
        schema = StructType.fromDDL(schema)
    chosen = source.schema() if schema is None else schema
    copied: IcebergDataSource = pickle.loads(pickle.dumps(source))
    return copied.reader(chosen)


@contextmanager
def session_conf(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """A setting of the session, put back at the end."""
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def run_program(
    name: str,
    *arguments: str,
    directory: Path,
    log: Path | None = None,
    timeout: int = 600,
    through_connect: bool = False,
    java_options: str = "",
) -> dict[str, Any]:
    """Runs a program of `programs` in a process of its own; what it printed, read as JSON.

    The module by which Spark discovers the format is on the path, as where it is installed, and so
    are the modules of programs, which executors need as well.

    Args:
        log: what the program's processes open is noted here (`run_counted`).
        timeout: in seconds; many times what the program takes, for the machine may be busy.
        through_connect: it starts a server of Spark Connect.
        java_options: of its JVMs, and of those of executors.
    """
    package = Path(icebergds.__file__).parent
    path = [package / "spark" / "discovery", package.parent, _PROGRAMS, _PROGRAMS.parents[1]]
    counting = {}
    if log is not None:
        path.insert(0, _COUNTING)
        counting = {read_log.LOG: str(log)}
    with connect_port() if through_connect else nullcontext():
        finished = subprocess.run(
            [sys.executable, str(_PROGRAMS / name), *arguments],
            cwd=directory,
            env={
                **os.environ,
                "PYSPARK_PYTHON": sys.executable,
                "PYTHONPATH": os.pathsep.join(map(str, path)),
                "JAVA_TOOL_OPTIONS": f"{QUICK_SPARK} {java_options}",
                **counting,
            },
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    assert finished.returncode == 0, finished.stderr[-4000:]
    seen: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return seen


def run_counted(
    name: str, *arguments: str, directory: Path
) -> tuple[dict[str, Any], dict[str, Reads]]:
    """Runs a program that uses `read_log.step`; what it printed, and what each step read.

    All of its processes count, also those that Spark starts. Tables must be on local disk.
    """
    log = directory / "reads.jsonl"
    seen = run_program(name, *arguments, directory=directory, log=log)
    return seen, read_log.reads_by_step(log.read_text().splitlines())


@contextmanager
def connect_server() -> Iterator[str]:
    """The address of a server of Spark Connect, whose tasks find the package."""
    package = Path(icebergds.__file__).parent
    process = subprocess.Popen(
        [sys.executable, str(_PROGRAMS / "connect_server.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(package.parent),
            "JAVA_TOOL_OPTIONS": QUICK_SPARK,
        },
    )
    # The end of its input ends it.
    with process:
        assert process.stdout is not None
        yield f"sc://localhost:{int(process.stdout.readline())}"


def spellings(secret: bytes) -> Iterator[bytes]:
    """How a secret may stand in a text: as bytes, numbers, and in base64, wherever it begins."""
    yield from (secret, secret.hex().encode(), secret.hex().upper().encode())
    yield repr(secret)[2:-1].encode()
    yield ",".join(map(str, secret)).encode()
    yield ", ".join(str(byte - 256 * (byte > 127)) for byte in secret).encode()
    for before in range(3):
        # Without the characters that also depend on what is around the secret.
        text = base64.b64encode(bytes(before) + secret)
        first = -(-8 * before // 6)
        yield text[first : 8 * (before + len(secret)) // 6]
