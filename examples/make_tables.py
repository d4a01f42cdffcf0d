"""Creates the tables in `examples/tables` with Java Iceberg.

    . .ci/java_oracle.sh && python examples/make_tables.py

Java Iceberg writes two tables to a temporary warehouse. Its procedure `rewrite_table_path` then
changes their location to `file:///warehouse/demo/...`, which does not exist, so readers need a
location map. The rows that Java Iceberg reads are stored next to the tables: in `README.md` for
people, and in `expected` for the tests.
"""

from __future__ import annotations

import csv
import datetime as dt
import json
import os
import shutil
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

_ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(_ROOT / "spark_tests"))

if TYPE_CHECKING:
    from oracles.jvm import Iceberg, IcebergTable

LOCATION = "file:///warehouse/demo"
_COLUMNS = [
    ("order_id!", "long"),
    ("customer", "string"),
    ("state", "string"),
    ("amount", "decimal(9,2)"),
    ("ordered_at", "timestamptz"),
]
_PROPERTIES = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}
_CUSTOMERS = ("Ada", "Grace", "Edsger", "Barbara", "Donald")


def main() -> None:
    """Re-creates `examples/tables`."""
    from oracles.java_environment import java_environment

    environment = java_environment()
    if isinstance(environment, str):
        sys.exit(environment)
    target = _ROOT / "examples" / "tables"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    print(environment.run(str(Path(__file__).resolve()), "--with-java", str(target)), end="")


def orders_v2(iceberg: Iceberg, name: str) -> IcebergTable:
    """Format version 2: position deletes and equality deletes."""
    table = iceberg.create(
        name, _COLUMNS, partition=[("ordered_at", "month", "month")], properties=_PROPERTIES
    )
    table.append(_orders(1, 12))
    table.evolve(("renameColumn", "state", "status"))
    table.append(_orders(13, 6, status="status"))
    _tag(table, "second-quarter")
    table.sql("DELETE FROM {t} WHERE order_id IN (2, 5, 16)")
    _upsert(table, {"order_id": 7, "amount": Decimal("700.00")})
    return table


def orders_v3(iceberg: Iceberg, name: str) -> IcebergTable:
    """Format version 3: deletion vectors, equality deletes, a default value."""
    table = iceberg.create(
        name,
        _COLUMNS,
        partition=[("ordered_at", "month", "month")],
        version=3,
        properties=_PROPERTIES,
    )
    table.append(_orders(1, 18))
    _tag(table, "second-quarter")
    table.evolve(("renameColumn", "state", "status"))
    default = iceberg.literal("web", "string")
    table.evolve(("addColumn", "channel", iceberg.type("string"), default))
    table.sql("DELETE FROM {t} WHERE order_id IN (2, 5, 16)")
    _upsert(table, {"order_id": 7, "amount": Decimal("700.00"), "channel": "phone"})
    return table


def _orders(first: int, count: int, status: str = "state") -> list[dict[str, Any]]:
    start = dt.datetime(2026, 4, 1, 9, 30, tzinfo=dt.UTC)
    return [
        {
            "order_id": number,
            "customer": _CUSTOMERS[number % 5],
            status: ("new", "paid", "shipped")[number % 3],
            "amount": Decimal(number * 125) / 10,
            "ordered_at": start + dt.timedelta(days=5 * number),
        }
        for number in range(first, first + count)
    ]


def _tag(table: IcebergTable, name: str) -> None:
    table.java.manageSnapshots().createTag(name, table.snapshot_id()).commit()


def _upsert(table: IcebergTable, changes: dict[str, Any]) -> None:
    """Commits the new row and an equality delete of the old one, as a stream of changes does."""
    number = changes["order_id"]
    row = {**_orders(number, 1, status="status")[0], **changes}
    delete = table.equality_deletes(["order_id"], [{"order_id": number}], partition_of=row)
    table.row_delta(rows=table.write([row]), deletes=[delete])


def _write_with_java(target: Path) -> None:
    from oracles.expectations import expectations
    from oracles.jvm import Iceberg, start_spark
    from oracles.registry import TableCase

    with tempfile.TemporaryDirectory() as folder:
        warehouse, scratch, dump = (Path(folder) / name for name in ("warehouse", "rows", "dump"))
        for directory in (warehouse, scratch, dump / "rows"):
            directory.mkdir(parents=True)
        spark = start_spark(warehouse, Path(os.environ["ICEBERGDS_ICEBERG_JAR"]))
        iceberg = Iceberg(spark, warehouse, scratch)
        entries, pages = [], []
        for build in (orders_v2, orders_v3):
            name = build.__name__
            table = build(iceberg, name)
            entry = expectations(TableCase(name, (), build, as_of=False, refused=None), table, dump)
            entries.append(_portable(entry, table, name))
            pages.append(_page(build.__doc__ or "", table, name))
            _relocate(table, f"{LOCATION}/{name}", target)
        _keep_expectations(entries, dump, target / "expected")
        (target / "README.md").write_text(_README + "\n".join(pages), encoding="utf-8")
        spark.stop()
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{target}: {size} bytes")


def _relocate(table: IcebergTable, location: str, target: Path) -> None:
    """Copies a table to a directory in `target`; its paths are rewritten to `location`."""
    prefixes = f"source_prefix => '{table.location}', target_prefix => '{location}'"
    (result,) = table.iceberg.sql(
        f"CALL oracle.system.rewrite_table_path(table => 'db.{table.name}', {prefixes})"
    )
    newest = f"/{result['latest_version']}"
    copies = Path(result["file_list_location"].removeprefix("file:"))
    for part in copies.glob("*.csv") if copies.is_dir() else [copies]:
        for source, destination in csv.reader(part.open()):
            if source.endswith(".metadata.json") and not source.endswith(newest):
                continue  # old metadata files: not needed, and most of the bytes
            path = target / destination.removeprefix(f"{LOCATION}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.removeprefix("file:"), path)


def _portable(entry: dict[str, Any], table: IcebergTable, name: str) -> dict[str, Any]:
    """An index entry without paths of the temporary warehouse, and without rows that have them."""
    return {
        **entry,
        "location": f"{LOCATION}/{name}",
        "metadata_file": entry["metadata_file"].replace(table.location, f"{LOCATION}/{name}"),
        "metadata_columns": None,
        "deleted_rows": None,
    }


def _keep_expectations(entries: list[dict[str, Any]], dump: Path, target: Path) -> None:
    used = {part["rows_file"] for entry in entries for part in (entry, *entry["time_travel"])}
    for rows_file in used:
        (target / rows_file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(dump / rows_file, target / rows_file)
    (target / "index.json").write_text(json.dumps({"tables": entries}))


_README = """# Tables of the demo

Java Iceberg wrote these tables, with `examples/make_tables.py`. Both are partitioned by month, have
a column that was renamed after the first files were written, and contain several kinds of deletes.
Their metadata gives `file:///warehouse/demo` as their location; read them with the option
`location-map`.

Below are the rows that Java Iceberg reads, and the snapshots.
"""


def _page(title: str, table: IcebergTable, name: str) -> str:
    rows = table.iceberg.spark.sql(f"SELECT * FROM {table.sql_name} ORDER BY order_id")
    snapshots = table.iceberg.spark.sql(
        "SELECT s.snapshot_id, s.operation, array_join(collect_list(r.name), ', ') AS refs "
        f"FROM {table.sql_name}.snapshots s LEFT JOIN {table.sql_name}.refs r "
        "ON s.snapshot_id = r.snapshot_id GROUP BY ALL ORDER BY min(s.committed_at)"
    )
    parts = [f"\n## {name}\n\n{title}\n", _markdown(rows), _markdown(snapshots)]
    return "\n".join(parts)


def _markdown(frame: Any) -> str:
    lines = [" | ".join(frame.columns), " | ".join("---" for _ in frame.columns)]
    lines += [" | ".join(str(value) for value in row) for row in frame.collect()]
    return "\n".join(f"| {line} |" for line in lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--with-java"]:
        _write_with_java(Path(sys.argv[2]))
    else:
        main()
