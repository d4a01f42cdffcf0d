#!/usr/bin/env bash
# With Java Iceberg 1.12 on Spark 4.1, `spark.catalog` does not know a view that SQL does:
# `tableExists` says False and `getTable` raises, though a SELECT reads it, and `cacheTable` and
# `isCached` take its name. For a view of Spark's own catalog, `tableExists` says True.
#
# Spark asks a catalog of version 2 for tables alone here; it has another interface for views.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.1.4
mvn --batch-mode --quiet dependency:copy -DoutputDirectory="$folder" \
  -Dartifact=org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0
mvn --batch-mode --quiet dependency:copy -DoutputDirectory="$folder" \
  -Dartifact=org.xerial:sqlite-jdbc:3.50.3.0

cat > "$folder/views.py" <<'PY'
import sys

import pyspark
from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF")
    .config(
        "spark.jars",
        f"{folder}/iceberg-spark-runtime-4.1_2.13-1.12.0.jar,{folder}/sqlite-jdbc-3.50.3.0.jar",
    )
    .config(
        "spark.sql.extensions",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    )
    .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.lake.type", "jdbc")
    .config("spark.sql.catalog.lake.uri", f"jdbc:sqlite:{folder}/lake.db")
    .config("spark.sql.catalog.lake.jdbc.schema-version", "V1")
    .config("spark.sql.catalog.lake.warehouse", f"{folder}/warehouse")
    .config("spark.sql.warehouse.dir", f"{folder}/spark")
    .getOrCreate()
)
print("Spark", pyspark.__version__, "with Java Iceberg 1.12.0")
spark.sql("create namespace lake.db")
spark.sql("create table lake.db.t (id bigint) using iceberg")
spark.sql("insert into lake.db.t values (1)")
spark.sql("create view lake.db.v as select id from lake.db.t")
spark.sql("create view default.v as select 1 as id")
for name in ("lake.db.t", "lake.db.v", "spark_catalog.default.v"):
    rows = spark.sql(f"select id from {name}").count()
    exists = spark.catalog.tableExists(name)
    try:
        kind = spark.catalog.getTable(name).tableType
    except Exception as error:
        kind = str(error).split("]")[0].strip("[")
    spark.catalog.cacheTable(name)
    print(name, "rows", rows, "tableExists", exists, "getTable", kind,
          "isCached", spark.catalog.isCached(name))
PY
cd "$folder"
PYSPARK_PYTHON="$folder/venv/bin/python" "$folder/venv/bin/python" "$folder/views.py" "$folder" \
  2>/dev/null | tee "$folder/seen"

diff "$folder/seen" - <<'SEEN'
Spark 4.1.4 with Java Iceberg 1.12.0
lake.db.t rows 1 tableExists True getTable MANAGED isCached True
lake.db.v rows 1 tableExists False getTable TABLE_OR_VIEW_NOT_FOUND isCached True
spark_catalog.default.v rows 1 tableExists True getTable VIEW isCached True
SEEN
echo "as seen before"
