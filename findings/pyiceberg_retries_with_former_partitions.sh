#!/usr/bin/env bash
# PyIceberg 0.12 commits data files again after a conflict with the partition spec that the table has
# by then, and with the partition values that the files have in the former one. If another writer has
# replaced a partition field meanwhile, the files get wrong partitions, and nothing is raised: filters
# do not find their rows.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "pyiceberg[sql-sqlite,pyarrow,pyiceberg-core]==0.12.0" \
  pyarrow==26.0.1

"$folder/venv/bin/python" - "$folder" <<'PY' | tee "$folder/seen"
import sys

import pyarrow as pa
import pyiceberg
from pyiceberg.catalog.sql import SqlCatalog

folder = sys.argv[1]
print("PyIceberg", pyiceberg.__version__)
rows = pa.table({"a": pa.array([1], pa.int64()), "b": pa.array([2], pa.int64())})
catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/lake.db", warehouse=f"file://{folder}")
catalog.create_namespace("db")
table = catalog.create_table("db.t", rows.schema)
with table.update_spec() as update:
    update.add_identity("a")
slow, other = catalog.load_table("db.t"), catalog.load_table("db.t")
with slow.transaction() as transaction:
    transaction.append(rows)
    with other.update_spec() as update:
        update.remove_field("a")
        update.add_identity("b")
    other.append(pa.table({"a": pa.array([5], pa.int64()), "b": pa.array([6], pa.int64())}))
table = catalog.load_table("db.t")
print("all rows:", sorted(row["b"] for row in table.scan().to_arrow().to_pylist()))
print("with b = 2:", table.scan("b == 2").to_arrow().to_pylist())
for task in sorted(table.scan().plan_files(), key=lambda task: task.file.partition[0]):
    name = table.specs()[task.file.spec_id].fields[0].name
    folder_of_file = task.file.file_path.split("/")[-2]
    print(f"partition {name} = {task.file.partition[0]}, written to {folder_of_file}")
PY

diff "$folder/seen" - <<'SEEN'
PyIceberg 0.12.0
all rows: [2, 6]
with b = 2: []
partition b = 1, written to a=1
partition b = 6, written to b=6
SEEN
echo "as seen before"
