"""Streaming queries that are killed at any moment and start again lose and double nothing."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from effort import rounds
from server_process import QUICK_SPARK

import icebergds
from icebergds import NestedField, Schema, Table, load_catalog, load_table
from icebergds.spec.types import LONG

# 50 take ten minutes a test.
KILLS = rounds("ICEBERGDS_KILLS", pull=0, nightly=5)
pytestmark = [
    pytest.mark.spark,
    pytest.mark.every_spark,
    pytest.mark.skipif(KILLS == 0, reason="kills that are left to the nightly profile"),
]

FILES = KILLS * 6
ROWS = 40


def start(directory: Path, operation: str, master: str = "local[2]") -> subprocess.Popen[str]:
    """The query in a session of its own, so that all of its processes can be killed at once."""
    package = Path(icebergds.__file__).parent
    path = [str(package / "spark" / "discovery"), str(package.parent)]
    program = Path(__file__).parent / "programs" / "killed_stream.py"
    process = subprocess.Popen(
        [sys.executable, str(program), str(directory), operation, master],
        cwd=directory,
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(path),
            "JAVA_TOOL_OPTIONS": QUICK_SPARK,
        },
        stdout=subprocess.PIPE,
        stderr=(directory / "log").open("a"),
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def said(directory: Path) -> str:
    """The end of what the processes of the query said."""
    return (directory / "log").read_text(errors="replace")[-10_000:]


def kill(process: subprocess.Popen[str]) -> None:
    """The driver, its JVM and all Python workers."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def forget_first_batch(checkpoint: Path) -> None:
    """Deletes a checkpoint whose first batch was never planned.

    Spark refuses one that it was killed in while it wrote the first plan, because of the temporary
    file; no batch has run then.
    """
    offsets = checkpoint / "offsets"
    if offsets.exists() and all(file.name.startswith(".") for file in offsets.iterdir()):
        shutil.rmtree(checkpoint)


def kill_executor(process: subprocess.Popen[str], rng: random.Random) -> None:
    """One of the executors that a query has at the moment, if there is one."""
    command = ["pgrep", "--session", str(process.pid), "--full", "CoarseGrainedExecutorBackend"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    if found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(rng.choice(found)), signal.SIGKILL)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """The table that is filled, and what it is filled with: files, and a table."""
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "version", LONG)))
    followed = load_table(catalog.create_table("db.feed", schema).location())
    feed = tmp_path / "feed"
    feed.mkdir()
    for number in range(FILES):
        # Each file has all keys of the one before, and new ones.
        ids = list(range(number * ROWS, (number + 2) * ROWS))
        lines = [json.dumps({"id": i, "version": number}) for i in ids]
        (feed / f"{number:05d}.json").write_text("\n".join(lines))
        os.utime(feed / f"{number:05d}.json", (1_700_000_000 + number,) * 2)
        followed.append(pa.table({"id": ids, "version": [number] * len(ids)}))
    return load_table(catalog.create_table("db.t", schema).location())


@pytest.mark.parametrize("operation", ["append", "upsert", "follow"])
def test_killed_query_goes_on_exactly_where_it_was(
    tmp_path: Path, rng: random.Random, table: Table, operation: str
) -> None:
    kills = 0
    while kills < KILLS:
        process = start(tmp_path, operation)
        time.sleep(rng.uniform(0, 5))
        if process.poll() is not None:
            break  # All is written.
        kill(process)
        forget_first_batch(tmp_path / "checkpoint")
        kills += 1
    assert kills
    process = start(tmp_path, operation)
    assert process.wait(1800) == 0, said(tmp_path)
    assert rows_of(table.location()) == expected(operation)


@pytest.mark.parametrize("operation", ["append", "upsert"])
def test_killed_executors_lose_and_double_nothing(
    tmp_path: Path, rng: random.Random, table: Table, operation: str
) -> None:
    process = start(tmp_path, operation, "local-cluster[2,1,1024]")
    for _ in range(KILLS):
        time.sleep(rng.uniform(0, 4))
        kill_executor(process, rng)
    assert process.wait(1800) == 0, said(tmp_path)
    assert rows_of(table.location()) == expected(operation)


def rows_of(location: str) -> Counter[tuple[int, int]]:
    found: pa.Table = load_table(location).scan().to_arrow()
    return Counter(zip(found["id"].to_pylist(), found["version"].to_pylist(), strict=True))


def expected(operation: str) -> Counter[tuple[int, int]]:
    rows = [(i, n) for n in range(FILES) for i in range(n * ROWS, (n + 2) * ROWS)]
    return Counter(dict(rows).items()) if operation == "upsert" else Counter(rows)
