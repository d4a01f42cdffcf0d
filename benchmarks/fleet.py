"""Times `icebergds fleet scan` of many tables, or `icebergds verify --depth footers` of many files.

    python benchmarks/fleet.py scan [--tables 1000] [--files 100]
    python benchmarks/fleet.py verify [--files 10000]

Prints seconds, and how much memory the command took at most. The aims, on two cores: 1,000 tables
of 100 files within 60 s and 500 MB, and 10,000 files within two minutes.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from maintenance_manifests import create_table

from icebergds import load_catalog

_COMMAND = """
import sys
from icebergds.cli.main import main
from peak_memory import peak_megabytes
try:
    main()
finally:
    print(peak_megabytes(), file=sys.stderr)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["scan", "verify"])
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--files", type=int)
    parser.add_argument("--manifests", type=int, default=4, help="of each table that is scanned")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        start = time.perf_counter()
        if options.what == "scan":
            for number in range(options.tables):
                location = f"{directory}/db{number % 10}/t{number}"
                create_table(location, options.manifests, options.files or 100)
            words = ["fleet", "scan", "--out", f"{directory}/report.html"]
        else:
            _create_with_files(Path(directory), options.files or 10_000)
            words = ["verify", "db.t", "--depth", "footers"]
        print(f"made in {time.perf_counter() - start:,.1f} s")
        _run([*words, "--catalog", "lake", "--warehouse", directory])


def _create_with_files(directory: Path, files: int) -> None:
    """Creates a table of copies of one file."""
    count = 1000
    rows = pa.table(
        {
            "id": pa.array(range(count)),
            "ts": pa.array(range(count), pa.timestamp("us", "UTC")),
            "name": pa.array([f"name {at}" for at in range(count)]),
            "x": pa.array([at / 4 for at in range(count)]),
        }
    )
    table = load_catalog("lake", warehouse=directory).create_table(
        "db.t", "id bigint, ts timestamp, name string, x double"
    )
    data = Path(table.location()) / "data"
    data.mkdir()
    pq.write_table(rows, data / "0.parquet")
    content = (data / "0.parquet").read_bytes()
    for number in range(1, files):
        (data / f"{number}.parquet").write_bytes(content)
    table.add_files([data / f"{number}.parquet" for number in range(files)])


def _run(words: list[str]) -> None:
    """Runs the command, whose status is 2 if something failed."""
    folder = Path(__file__).parent
    start = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-c", _COMMAND, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{folder.parent}{os.pathsep}{folder}"},
    )
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("\n".join(ran.stdout.splitlines()[-6:]))
    *told, megabytes = ran.stderr.splitlines()
    print("\n".join(told))
    print(
        f"icebergds {' '.join(words[:2])}: status {ran.returncode}, {seconds:,.1f} s, "
        f"{used.ru_utime + used.ru_stime:,.1f} s of processors, {float(megabytes):,.0f} MB at most"
    )


if __name__ == "__main__":
    main()
