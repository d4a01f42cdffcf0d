#!/usr/bin/env bash
# In PySpark 4.3, `spark.catalog.listTables()` fails if expressions are interpreted
# (spark.sql.codegen.factoryMode=NO_CODEGEN), while queries of all kinds run.
#
# The catalog's Scala method decodes its rows into case classes, and the interpreted form of the
# decoder cannot make one. With FALLBACK, which interprets only what does not compile, and with
# CODEGEN_ONLY it works.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.3.0

cat > "$folder/list.py" <<'PY'
import pyspark
from pyspark.sql import SparkSession

print("Spark", pyspark.__version__)
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF")
    .getOrCreate()
)
spark.range(3).createOrReplaceTempView("numbers")
for mode in ("CODEGEN_ONLY", "FALLBACK", "NO_CODEGEN"):
    spark.conf.set("spark.sql.codegen.factoryMode", mode)
    rows = spark.sql("select sum(id) from numbers").first()[0]
    try:
        found = [table.name for table in spark.catalog.listTables()]
    except Exception as error:
        found = str(error).split("]")[0].strip("[")
    print(f"{mode}: a query gives {rows}, listTables {found}")
PY
PYSPARK_PYTHON="$folder/venv/bin/python" "$folder/venv/bin/python" "$folder/list.py" \
  2>/dev/null | tee "$folder/seen"

diff "$folder/seen" - <<'SEEN'
Spark 4.3.0
CODEGEN_ONLY: a query gives 3, listTables ['numbers']
FALLBACK: a query gives 3, listTables ['numbers']
NO_CODEGEN: a query gives 3, listTables EXPRESSION_DECODING_FAILED
SEEN
echo "as seen before"
