#!/usr/bin/env bash
# Java Iceberg 1.12 on Spark 4.1 reads the rows of a table whose geometries have bounds, as the
# specification describes them, but not its metadata tables: `readable_metrics` of `files` raises
# IllegalStateException. It parses the bound to its own GeospatialBound, of which it can make no
# value for Spark. Columns other than `readable_metrics` can be selected.
#
# Files that Spark writes through Java Iceberg have no such bounds, so the table is given one by
# Java Iceberg's own API.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.1.4
mvn --batch-mode --quiet dependency:copy -DoutputDirectory="$folder" \
  -Dartifact=org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0

cat > "$folder/shapes.py" <<'PY'
import sys

import pyspark
from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF")
    .config("spark.jars", f"{folder}/iceberg-spark-runtime-4.1_2.13-1.12.0.jar")
    .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.lake.type", "hadoop")
    .config("spark.sql.catalog.lake.warehouse", f"{folder}/warehouse")
    .config("spark.sql.geospatial.enabled", "true")
    .getOrCreate()
)
print("Spark", pyspark.__version__, "with Java Iceberg 1.12.0")
spark.sql(
    "create table lake.db.t (id int, g geometry(4326)) using iceberg"
    " tblproperties ('format-version' = '3')"
)
spark.sql(
    "insert into lake.db.t values"
    " (1, st_setsrid(st_geomfromwkb(X'0101000000000000000000F03F0000000000000040'), 4326))"
)
java = spark._jvm
iceberg = java.org.apache.iceberg


def show(what, query):
    try:
        print(what, [tuple(row) for row in spark.sql(query).collect()])
    except Exception as error:
        print(what, "fails:", str(error).split("IllegalStateException: ")[1].split("\n")[0])


def java_map(values):
    made = java.java.util.HashMap()
    for key, value in values.items():
        made.put(key, value)
    return made


show("rows", "select id, hex(st_asbinary(g)) from lake.db.t")
show("metrics without bounds", "select readable_metrics.g.lower_bound from lake.db.t.files")

table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "lake.db.t")
file = list(table.currentSnapshot().addedDataFiles(table.io()))[0]
point = iceberg.geospatial.GeospatialBound.createXY(1.0, 2.0).toByteBuffer()
with_bounds = iceberg.Metrics(
    file.recordCount(),
    file.columnSizes(),
    file.valueCounts(),
    file.nullValueCounts(),
    None,
    java_map({**dict(file.lowerBounds()), 2: point}),
    java_map({**dict(file.upperBounds()), 2: point}),
)
# The same file under another name: one snapshot may not remove and add the same.
renamed = file.location().replace(".parquet", "-bounds.parquet")
java.java.nio.file.Files.copy(
    java.java.nio.file.Path.of(file.location(), spark._sc._gateway.new_array(java.String, 0)),
    java.java.nio.file.Path.of(renamed, spark._sc._gateway.new_array(java.String, 0)),
    spark._sc._gateway.new_array(java.java.nio.file.CopyOption, 0),
)
added = (
    iceberg.DataFiles.builder(table.spec())
    .withPath(renamed)
    .withFormat("parquet")
    .withFileSizeInBytes(file.fileSizeInBytes())
    .withMetrics(with_bounds)
    .build()
)
table.newOverwrite().deleteFile(file).addFile(added).commit()
spark.sql("refresh table lake.db.t")
show("rows", "select id, hex(st_asbinary(g)) from lake.db.t")
show("bound", "select hex(lower_bounds[2]) from lake.db.t.files")
show("metrics with bounds", "select readable_metrics from lake.db.t.files")
PY
cd "$folder"
PYSPARK_PYTHON="$folder/venv/bin/python" "$folder/venv/bin/python" "$folder/shapes.py" "$folder" \
  2>/dev/null | tee "$folder/seen"

diff "$folder/seen" - <<'SEEN'
Spark 4.1.4 with Java Iceberg 1.12.0
rows [(1, '0101000000000000000000F03F0000000000000040')]
metrics without bounds [(None,)]
rows [(1, '0101000000000000000000F03F0000000000000040')]
bound [('000000000000F03F0000000000000040',)]
metrics with bounds fails: Unknown type for binary field. Type name: org.apache.iceberg.geospatial.GeospatialBound
SEEN
echo "as seen before"
