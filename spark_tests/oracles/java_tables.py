"""Writes all tables with Java Iceberg and dumps what Java Iceberg reads from them.

Run with the Java interpreter as `python -m oracles.java_tables DIRECTORY [NAME ...]`, the folder
`spark_tests` on PYTHONPATH and the runtime jar in ICEBERGDS_ICEBERG_JAR. DIRECTORY gets the
warehouse, the expected rows and `index.json`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import oracles.tables  # noqa: F401  (registers the tables)
from oracles.expectations import expectations
from oracles.jvm import Iceberg, start_spark
from oracles.registry import TABLES


def main(directory: Path, names: list[str]) -> None:
    """Writes the tables called `names`, all of them if none is given."""
    warehouse, scratch = directory / "warehouse", directory / "scratch"
    for folder in (warehouse, directory / "rows", scratch):
        folder.mkdir(parents=True, exist_ok=True)
    spark = start_spark(warehouse, Path(os.environ["ICEBERGDS_ICEBERG_JAR"]))
    iceberg = Iceberg(spark, warehouse, scratch)
    entries: list[dict[str, Any]] = []
    failed: list[str] = []
    for name in names or TABLES:
        started = time.monotonic()
        case = TABLES[name]
        try:
            entry = expectations(case, case.build(iceberg, name), directory)
        except Exception:
            traceback.print_exc()
            failed.append(name)
            continue
        entries.append(entry)
        seconds = time.monotonic() - started
        notes = "; ".join(entry["notes"])
        print(f"{seconds:6.2f} s  {name}: {entry['row_count']} rows  {notes}", flush=True)
    index = {"tables": entries}
    (directory / "index.json").write_text(json.dumps(index, indent=1, ensure_ascii=False))
    spark.stop()
    shutil.rmtree(scratch)
    if failed:
        sys.exit(f"{len(failed)} tables could not be written: {', '.join(failed)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
