#!/usr/bin/env bash
# PyIceberg 0.12 writes a null list of structs, or a null map with struct values, as an empty one:
# append() stores it so in the data file, and nothing is raised. Lists of numbers keep their nulls.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "pyiceberg[sql-sqlite,pyarrow]==0.12.0" pyarrow==26.0.1

"$folder/venv/bin/python" - "$folder" <<'PY' | tee "$folder/seen"
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg
from pyiceberg.catalog.sql import SqlCatalog

folder = sys.argv[1]
point = pa.struct([("x", pa.int64())])
rows = pa.table(
    {
        "numbers": pa.array([[1], None, []], pa.list_(pa.int64())),
        "points": pa.array([[{"x": 1}], None, []], pa.list_(point)),
        "named": pa.array([[("a", {"x": 1})], None, []], pa.map_(pa.string(), point)),
    }
)
catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/lake.db", warehouse=f"file://{folder}")
catalog.create_namespace("db")
table = catalog.create_table("db.t", rows.schema)
table.append(rows)
print("PyIceberg", pyiceberg.__version__, "pyarrow", pa.__version__)
(task,) = table.scan().plan_files()
stored = pq.read_table(task.file.file_path.removeprefix("file://"))
for name in rows.column_names:
    print(f"{name}: written {rows[name].null_count} null, stored {stored[name].null_count},", end=" ")
    print("read", table.scan().to_arrow()[name].to_pylist())
PY

diff "$folder/seen" - <<'SEEN'
PyIceberg 0.12.0 pyarrow 26.0.1
numbers: written 1 null, stored 1, read [[1], None, []]
points: written 1 null, stored 0, read [[{'x': 1}], [], []]
named: written 1 null, stored 0, read [[('a', {'x': 1})], [], []]
SEEN
echo "as seen before"
