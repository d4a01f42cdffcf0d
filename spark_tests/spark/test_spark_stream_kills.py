"""Streaming queries that are killed at any moment and start again lose and double nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from spark_reads import QUICK_JVM

import icebergds
from icebergds import NestedField, Schema, load_catalog, load_table
from icebergds.spec.types import LONG

pytestmark = pytest.mark.spark

# `ICEBERGDS_KILLS=50` takes ten minutes.
KILLS = int(os.environ.get("ICEBERGDS_KILLS", "1"))
FILES = KILLS * 6
ROWS = 40


def start(directory: Path, operation: str) -> subprocess.Popen[str]:
    """The query in a session of its own, so that all of its processes can be killed at once."""
    package = Path(icebergds.__file__).parent
    path = [str(package / "spark" / "discovery"), str(package.parent)]
    program = Path(__file__).parent / "programs" / "killed_stream.py"
    return subprocess.Popen(
        [sys.executable, str(program), str(directory), operation],
        cwd=directory,
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(path),
            "JAVA_TOOL_OPTIONS": QUICK_JVM,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    """The driver, its JVM and all Python workers."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("operation", ["append", "upsert"])
def test_killed_query_goes_on_exactly_where_it_was(tmp_path: Path, operation: str) -> None:
    feed = tmp_path / "feed"
    feed.mkdir()
    for number in range(FILES):
        # Each file has all keys of the one before, and new ones.
        ids = range(number * ROWS, (number + 2) * ROWS)
        lines = [json.dumps({"id": i, "version": number}) for i in ids]
        (feed / f"{number:05d}.json").write_text("\n".join(lines))
        os.utime(feed / f"{number:05d}.json", (1_700_000_000 + number,) * 2)
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "version", LONG)))
    table = load_catalog("lake", warehouse=str(tmp_path)).create_table("db.t", schema)

    kills = 0
    while kills < KILLS:
        process = start(tmp_path, operation)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(random.uniform(0, 5))
        if process.poll() is not None:
            break  # All is written.
        kill(process)
        kills += 1
    process = start(tmp_path, operation)
    assert process.wait(300) == 0

    assert rows_of(table.location()) == expected(operation)


def rows_of(location: str) -> Counter[tuple[int, int]]:
    found: pa.Table = load_table(location).scan().to_arrow()
    return Counter(zip(found["id"].to_pylist(), found["version"].to_pylist(), strict=True))


def expected(operation: str) -> Counter[tuple[int, int]]:
    rows = [(i, n) for n in range(FILES) for i in range(n * ROWS, (n + 2) * ROWS)]
    return Counter(rows) if operation == "append" else Counter(dict(rows).items())
