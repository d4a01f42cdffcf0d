"""Times reads, a commit and an upload on S3 whose answers come late, beside Arrow's reader.

A server on this machine (S3Mock, which `.ci/servers.sh` fetches) is reached through a proxy that
answers each request 30 ms later. Reads run in this process; `local` is the same without a proxy.

    python benchmarks/storage.py [--runs 3] [--milliseconds 30] [--rows 850000]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
from slow_storage import SlowStorage, slow_storage

import icebergds
from icebergds.io.fileio import FileIO

sys.path.append(str(Path(__file__).parents[1] / "spark_tests"))
from s3_server import S3Server, s3_server, storage_properties

FILES = 7
SMALL_FILES = 30
MANIFESTS = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--milliseconds", type=int, default=30)
    parser.add_argument("--rows", type=int, default=850_000, help="of each of the large files")
    arguments = parser.parse_args()
    with s3_server() as server:
        location = server.new_location()
        fill(location, server, arguments.rows)
        # The one port serves requests side by side, the other lets commits be exclusive.
        with (
            slow_storage(server.racing_port, arguments.milliseconds / 1000) as reads,
            slow_storage(server.atomic_port, arguments.milliseconds / 1000) as commits,
        ):
            for what, (through, work) in work_of(location, server, reads, commits).items():
                report(what, through, work, arguments.runs)


def fill(location: str, server: S3Server, rows: int) -> None:
    """Makes the tables: large files, small files, and one of many manifests."""
    catalog = catalog_at(location, server.atomic_port, "fill")
    catalog.create_namespace("db")
    chance = np.random.default_rng(7)
    data = pa.table(
        {
            "id": np.arange(rows),
            "a": chance.random(rows),
            "b": chance.integers(0, 1000, rows),
            "s": [f"text {i % 977}" for i in range(rows)],
        }
    )
    kept = {"commit.manifest-merge.enabled": "false"}
    for name, files, of_each in (
        ("large", FILES, data),
        ("small", SMALL_FILES, data.slice(0, 1000)),
        ("manifests", MANIFESTS, data.slice(0, 1)),
    ):
        table = catalog.create_table(f"db.{name}", data.schema, properties=kept)
        for _ in range(files):
            table.append(of_each)


def work_of(
    location: str, server: S3Server, reads: SlowStorage, commits: SlowStorage
) -> dict[str, tuple[SlowStorage | None, Callable[[], object]]]:
    """What is timed, and the proxy that it goes through."""
    slow = catalog_at(location, reads.port, "slow")
    near = catalog_at(location, server.racing_port, "near")
    large, small = slow.load_table("db.large"), slow.load_table("db.small")
    many = slow.load_table("db.manifests")
    near_large, near_small = near.load_table("db.large"), near.load_table("db.small")
    written = catalog_at(location, commits.port, "commits").load_table("db.small")
    row = pa.table({"id": [1]})
    # Without a dictionary or compression that helps: some 64 MB, in four parts.
    noise = pa.table({"a": np.random.default_rng(8).random(8_000_000)})
    uploads = catalog_at(location, reads.port, "uploads").load_table("db.large").io
    file = f"{location}/upload.parquet"
    return {
        "one column of 7 files": (reads, lambda: large.scan(columns=["a"]).to_arrow()),
        "- Arrow's data set": (reads, lambda: by_arrow(location, reads.port, ["a"])),
        "- local": (None, lambda: near_large.scan(columns=["a"]).to_arrow()),
        "all columns of 7 files": (reads, lambda: large.scan().to_arrow()),
        "- Arrow's data set ": (reads, lambda: by_arrow(location, reads.port, None)),
        "- local ": (None, lambda: near_large.scan().to_arrow()),
        "30 small files": (reads, lambda: small.scan().to_arrow()),
        "- local  ": (None, lambda: near_small.scan().to_arrow()),
        "planning of 100 manifests": (reads, lambda: many.scan("id = 5").plan_files()),
        "append of a row": (commits, lambda: written.append(row)),
        "data file of 64 MB": (reads, lambda: write_file(uploads, file, noise)),
    }


def write_file(io: FileIO, location: str, rows: pa.Table) -> None:
    with io.open_output(location) as stream:
        pq.write_table(rows, stream, use_dictionary=False, compression="none")


def by_arrow(location: str, port: int, columns: list[str] | None) -> pa.Table:
    storage = pyarrow.fs.S3FileSystem(
        access_key="tester",
        secret_key="secret",
        region="us-east-1",
        endpoint_override=f"http://127.0.0.1:{port}",
    )
    path = f"{location.removeprefix('s3://')}/db/large/data"
    return ds.dataset(path, format="parquet", filesystem=storage).to_table(columns)


def catalog_at(location: str, port: int, name: str) -> icebergds.Catalog:
    return icebergds.load_catalog(name, warehouse=location, **storage_properties(port))


def report(what: str, through: SlowStorage | None, work: Callable[[], object], runs: int) -> None:
    taken = []
    for _ in range(runs + 1):
        if through is not None:
            through.reset()
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    # The first run connects.
    seconds = statistics.median(taken[1:])
    asked = ""
    if through is not None:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(through.requests.items()))
        asked = f"  {counts}; at most {through.most_at_once} at once"
    print(f"{what:28}{seconds:6.2f} s{asked}", flush=True)


if __name__ == "__main__":
    main()
