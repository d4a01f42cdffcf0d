"""Files that manifests list without rows."""

from __future__ import annotations

from pathlib import Path

from built.tables import TableBuilder

from icebergds import load_table
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, NestedField

SCHEMA = Schema((NestedField(1, "id", LONG),))


def read(builder: TableBuilder, columns: str) -> list[dict]:
    table = load_table(builder.metadata_location)
    return table.scan(columns=columns).to_arrow().to_pylist()


def test_files_without_rows_need_not_exist(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, SCHEMA)
    empty = builder.data_file([])
    builder.commit(empty, builder.data_file([(1,)]))
    Path(empty.file_path).unlink()
    assert read(builder, "id") == [{"id": 1}]
