"""Data files as other tools write them: without field ids, in folders that name values."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

FORMATS = ("parquet", "orc", "avro")
_AVRO = {pa.int64(): "long", pa.int32(): "int", pa.string(): "string", pa.float64(): "double"}


def write_file(path: Path, rows: pa.Table) -> Path:
    """Writes rows in the format that the file's name ends in; makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix:
        case ".parquet":
            pq.write_table(rows, path)
        case ".orc":
            orc.write_table(rows, path)
        case _:
            fields = [{"name": f.name, "type": ["null", _AVRO[f.type]]} for f in rows.schema]
            schema = {"type": "record", "name": "row", "fields": fields}
            with path.open("wb") as out:
                fastavro.writer(out, schema, rows.to_pylist())
    return path


def folder_of(values: dict[str, Any]) -> str:
    """The folder of a partition as Hive and Spark name it."""
    return "/".join(
        f"{name}={'__HIVE_DEFAULT_PARTITION__' if value is None else quote(str(value), safe='')}"
        for name, value in values.items()
    )
