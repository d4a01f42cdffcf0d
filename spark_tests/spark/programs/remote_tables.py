"""The tables that `remote_reads.py` reads."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from icebergds import Table, load_catalog


def create_tables(location: str, properties: dict[str, str]) -> None:
    """Creates them in the namespace `db`; there is an active session of Spark."""
    catalog = load_catalog("remote", warehouse=location, **properties)
    catalog.create_namespace("db")

    def created(name: str, rows: pa.Table, appends: int) -> Table:
        table = catalog.create_table(f"db.{name}", rows.schema, partition_spec="day")
        for _ in range(appends):
            table.append(rows)
        return table

    rows = pa.table({"id": [1, 2, 3, 4], "name": ["a", "b", None, "d"], "day": [1, 1, 2, 2]})
    people = created("people", rows, 1)
    with people.update_schema() as update:
        update.rename_column("name", "first name")
        update.add_column("name", "string")
    created("deleted", rows, 1).delete("id in (1, 4)")
    created("changed", rows, 1)
    keyed = created("keyed", rows, 1)
    keyed.upsert(pa.table({"id": [2], "name": ["z"], "day": [1]}), ["id", "day"])
    created("small", rows.slice(0, 1), 9)
    grown = created("grown", pa.concat_tables([rows] * 50), 1)
    for task in grown.scan().plan_files():
        path, file = task.file.file_path, pa.BufferOutputStream()
        written = pq.read_table(pa.BufferReader(grown.io.read_bytes(path)))
        pq.write_table(written, file, row_group_size=10, compression="none")
        grown.io.write(path, file.getvalue().to_pybytes())
