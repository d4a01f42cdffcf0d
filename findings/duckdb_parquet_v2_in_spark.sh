#!/usr/bin/env bash
# A Parquet file that DuckDB writes with `parquet_version v2` cannot be read by Spark 4.1 if it has
# a column of floating-point numbers; Spark 4.3 reads it.
#
# DuckDB 1.5 stores such a column as BYTE_STREAM_SPLIT, an encoding of Parquet 2. Spark 4.1's
# vectorized reader, the default one, has no decoder of it and fails while it runs; its reader by
# rows (spark.sql.parquet.enableVectorizedReader=false) and Spark 4.3's vectorized one read the
# same rows. Nothing in the file's schema tells the difference: the encoding is in the column chunks.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/spark41"
python3 -m venv "$folder/spark43"
"$folder/spark41/bin/pip" install --quiet pyspark==4.1.4 pyarrow==26.0.1 duckdb==1.5.5
"$folder/spark43/bin/pip" install --quiet pyspark==4.3.0

"$folder/spark41/bin/python" - "$folder/x.parquet" <<'PY'
import sys

import duckdb
import pyarrow.parquet as pq

duckdb.sql(
    f"copy (select i::double / 7 as x from range(5000) t(i)) to '{sys.argv[1]}'"
    " (format parquet, parquet_version v2)"
)
encodings = pq.ParquetFile(sys.argv[1]).metadata.row_group(0).column(0).encodings
print("DuckDB", duckdb.__version__, "stores doubles as", encodings)
assert "BYTE_STREAM_SPLIT" in encodings
PY

cat > "$folder/read.py" <<'PY'
import sys

import pyspark
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF")
    .getOrCreate()
)
for vectorized in ("true", "false"):
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        found = f"{spark.read.parquet(sys.argv[1]).selectExpr('sum(x)').first()[0]:.3f}"
    except Exception as error:
        found = "fails: " + next(
            line.strip() for line in str(error).splitlines() if "ncoding" in line
        )
    print(f"Spark {pyspark.__version__}, vectorized {vectorized}: {found}")
PY
for version in 41 43; do
  PYSPARK_PYTHON="$folder/spark$version/bin/python" \
    "$folder/spark$version/bin/python" "$folder/read.py" "$folder/x.parquet" 2>/dev/null
done | tee "$folder/seen"

diff "$folder/seen" - <<'SEEN'
Spark 4.1.4, vectorized true: fails: Caused by: org.apache.spark.SparkUnsupportedOperationException: Unsupported encoding: BYTE_STREAM_SPLIT
Spark 4.1.4, vectorized false: 1785357.143
Spark 4.3.0, vectorized true: 1785357.143
Spark 4.3.0, vectorized false: 1785357.143
SEEN
echo "as seen before"
