"""Times planning, commits and the table `files` of tables with more and more files.

    python benchmarks/scale.py [DIRECTORY] [--files 100000 1000000 10000000]

Writes the manifests of each table once (10 million files take about 20 minutes). Files do not
exist; each day has a thousand. Prints seconds and how much memory each step added.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from maintenance_manifests import FIRST_DAY, create_table
from peak_memory import peak_megabytes

from icebergds import Table, load_table

_PER_DAY = 1000
_PER_MANIFEST = 50_000
_COLUMNS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", nargs="?", type=Path, default=Path(".cache/bench/scale"))
    parser.add_argument("--files", type=int, nargs="*", default=[10**5, 10**6, 10**7])
    parser.add_argument("--step", nargs=2, help="measure one step on a table, in this process")
    options = parser.parse_args()
    if options.step is not None:
        _measure(*options.step)
        return
    print(f"{'files':>12} " + " ".join(f"{name:>20}" for name in _STEPS))
    for files in options.files:
        location = options.directory.absolute() / str(files)
        if not (location / "metadata" / "version-hint.text").exists():
            manifests = files // _PER_MANIFEST
            create_table(str(location), manifests, files, _COLUMNS, files_per_day=_PER_DAY)
        found = [_in_process(name, location) for name in _STEPS]
        print(f"{files:12,} " + " ".join(f"{text:>20}" for text in found), flush=True)


def _in_process(name: str, location: Path) -> str:
    """Measures a step in a process of its own, whose memory says what it needs."""
    command = [sys.executable, __file__, "--step", name, str(location)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    seconds, megabytes = json.loads(done.stdout)
    return f"{seconds:.2f} s {megabytes:.0f} MB"


def _measure(name: str, location: str) -> None:
    before, start = peak_megabytes(), time.perf_counter()
    _STEPS[name](load_table(location))
    print(json.dumps([time.perf_counter() - start, peak_megabytes() - before]))


def _plan(table: Table) -> None:
    """A day's files."""
    planned = table.scan(_day(5)).plan_files()
    assert len(planned) == _PER_DAY


def _append(table: Table) -> None:
    """A file of one row."""
    columns = {field.name: [1] for field in table.schema().fields[1:]}
    rows = {"ts": pa.array([datetime.now(UTC).replace(tzinfo=None)], pa.timestamp("us")), **columns}
    table.append(pa.table(rows))


def _delete(table: Table) -> None:
    """The files of the first day that is left, which are not read."""
    day = next(number for number in range(_PER_DAY) if table.scan(_day(number)).plan_files())
    table.delete(_day(day))


def _files(table: Table) -> None:
    """Rows and bytes of all files, from the metadata table `files`."""
    found = table.inspect.files(columns=["record_count", "file_size_in_bytes"])
    assert pc.sum(found.column("record_count")).as_py() >= found.num_rows >= _PER_DAY


def _files_of_a_day(table: Table) -> None:
    """Their paths, from the metadata table `files`."""
    day = date(1970, 1, 1) + timedelta(FIRST_DAY + 5)
    found = table.inspect.files(filter=f"partition.ts_day = DATE '{day}'", columns=["file_path"])
    assert found.num_rows == _PER_DAY


def _day(number: int) -> str:
    first = date(1970, 1, 1) + timedelta(FIRST_DAY + number)
    return f"ts >= timestamp'{first} 00:00:00' and ts < timestamp'{first + timedelta(1)} 00:00:00'"


_STEPS: dict[str, Callable[[Table], None]] = {
    "plan a day": _plan,
    "append a row": _append,
    "delete a day": _delete,
    "files": _files,
    "files of a day": _files_of_a_day,
}


if __name__ == "__main__":
    main()
