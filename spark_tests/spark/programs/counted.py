"""Changes and reads tables in steps, each of which `read_log` counts the reads of.

    counted.py DIRECTORY MODES

`MODES` says in which modes rows are changed: `all`, or `some` for one mode in each catalog. It
prints what each step returned as a line of JSON, by catalog.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec

import counted_reads
import counted_statements
from counted_statements import MODES
from pyspark.sql import SparkSession

from icebergds import load_catalog, register


def main(directory: str, modes: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    register(spark, reader=False, native_scans=False)
    catalogs: dict[str, dict[str, str]] = {
        "files": {"warehouse": f"{directory}/files"},
        "sql": {
            "type": "sql",
            "uri": f"sqlite:///{directory}/catalog.db",
            "warehouse": f"{directory}/sql",
        },
    }
    if find_spec("sqlalchemy") is None:
        del catalogs["sql"]
    seen = {}
    for number, (name, properties) in enumerate(catalogs.items()):
        catalog = load_catalog(name, **properties)
        catalog.create_namespace("db")
        seen[name] = {
            "statements": counted_statements.see(
                spark, catalog, MODES if modes == "all" else MODES[number : number + 1]
            ),
            "reads": counted_reads.see(spark, catalog, properties, directory),
        }
    print(json.dumps(seen), flush=True)
    spark.stop()


main(*sys.argv[1:])
