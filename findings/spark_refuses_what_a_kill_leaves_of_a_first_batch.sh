#!/usr/bin/env bash
# A streaming query of Spark that is killed while it writes the plan of its first batch cannot be
# started again: Spark 4.1 and 4.3 refuse their own checkpoint, as if the query had state.
#
# Spark writes `offsets/0` as `offsets/.0.<uuid>.tmp` and renames it. A process that is killed in
# between leaves the temporary file, as after a kill of any later batch, where it does no harm. On
# batch 0, though, Spark requires an empty directory, and counts the hidden file. No batch has run
# then, so deleting the checkpoint loses nothing; the error does not say that.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat > "$folder/query.py" <<'PY'
import pathlib
import re
import sys
import tempfile

import pyspark
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF")
    .getOrCreate()
)
root = pathlib.Path(tempfile.mkdtemp(dir=sys.argv[1]))
(root / "in").mkdir()
(root / "in" / "a.json").write_text('{"id": 1}\n')


def run(left):
    checkpoint = root / f"checkpoint-{left}"
    if left:
        # What a kill before the rename leaves.
        (checkpoint / "offsets").mkdir(parents=True)
        (checkpoint / "offsets" / ".0.5b6c6a3e-1d2f-4c55-9c5e-0d1f6c1f2a33.tmp").write_text("v1\n")
    query = (
        spark.readStream.schema("id int").json(str(root / "in"))
        .writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
        return "runs"
    except Exception as error:
        return re.search(r"\[(STATE_STORE[A-Z_]*)\]", str(error))[1]


for left in (False, True):
    print(f"Spark {pyspark.__version__}, temporary file {left}: {run(left)}")
PY
for version in 4.1.4 4.3.0; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/pip" install --quiet "pyspark[sql]==$version"
  PYSPARK_PYTHON="$folder/$version/bin/python" \
    "$folder/$version/bin/python" "$folder/query.py" "$folder" 2>/dev/null
done | tee "$folder/seen"

diff "$folder/seen" - <<'SEEN'
Spark 4.1.4, temporary file False: runs
Spark 4.1.4, temporary file True: STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY
Spark 4.3.0, temporary file False: runs
Spark 4.3.0, temporary file True: STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY
SEEN
