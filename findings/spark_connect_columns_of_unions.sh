#!/usr/bin/env bash
# A union has the columns of its first side: in classic Spark, a column of that side's DataFrame also
# names the column of the union. Through Spark Connect it does not, for the same program.
#
# Spark Connect finds a DataFrame's column by the id of the DataFrame's plan, through filters,
# aggregates and joins above it. It looks for no plan beneath a union: what worked before a union
# was put in raises CANNOT_RESOLVE_DATAFRAME_COLUMN, whose text blames the program for a column of
# another DataFrame. By its name, the column is found.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat > "$folder/union.py" <<'PY'
import sys

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

way = sys.argv[1]
builder = SparkSession.builder
builder = builder.remote("local[1]") if way == "Connect" else builder.master("local[1]")
spark = builder.config("spark.ui.enabled", "false").getOrCreate()
days = spark.createDataFrame([(1, 10), (2, 20)], "id int, day int")
frames = {
    "filter": days.where("id > 0"),
    "aggregate": days.groupBy("day").count(),
    "union": days.union(days),
}
for name, frame in frames.items():
    try:
        found = sorted(row.day for row in frame.select(days.day).collect())
    except AnalysisException as error:
        found = error.getCondition()
    print(f"Spark {pyspark.__version__}, {way}, {name}: {found}")
by_name = sorted(row.day for row in frames["union"].select("day").collect())
print(f"Spark {pyspark.__version__}, {way}, union by name: {by_name}")
PY
for version in 4.1.4 4.3.0; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/pip" install --quiet "pyspark[connect]==$version" setuptools
  for way in classic Connect; do
    PYSPARK_PYTHON="$folder/$version/bin/python" \
      "$folder/$version/bin/python" "$folder/union.py" "$way" 2>/dev/null
  done
done | grep '^Spark' | tee "$folder/seen"

diff "$folder/seen" - <<'SEEN'
Spark 4.1.4, classic, filter: [10, 20]
Spark 4.1.4, classic, aggregate: [10, 20]
Spark 4.1.4, classic, union: [10, 10, 20, 20]
Spark 4.1.4, classic, union by name: [10, 10, 20, 20]
Spark 4.1.4, Connect, filter: [10, 20]
Spark 4.1.4, Connect, aggregate: [10, 20]
Spark 4.1.4, Connect, union: CANNOT_RESOLVE_DATAFRAME_COLUMN
Spark 4.1.4, Connect, union by name: [10, 10, 20, 20]
Spark 4.3.0, classic, filter: [10, 20]
Spark 4.3.0, classic, aggregate: [10, 20]
Spark 4.3.0, classic, union: [10, 10, 20, 20]
Spark 4.3.0, classic, union by name: [10, 10, 20, 20]
Spark 4.3.0, Connect, filter: [10, 20]
Spark 4.3.0, Connect, aggregate: [10, 20]
Spark 4.3.0, Connect, union: CANNOT_RESOLVE_DATAFRAME_COLUMN
Spark 4.3.0, Connect, union by name: [10, 10, 20, 20]
SEEN
