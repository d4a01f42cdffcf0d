#!/usr/bin/env bash
# A metric view of Spark that is joined with another table fails with an internal error, where its
# measure is asked for: `UnevaluableAggregateFunc.aggBufferAttributes should not be called`.
#
# The statement is analysed without a complaint. Spark replaces `measure(...)` only where the
# aggregation stands directly on the metric view; with a join in between, the placeholder reaches the
# planner of aggregations. The same question as a semi-join in WHERE works, and so does a join of the
# aggregated rows.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.3.0

cd "$folder"
"$folder/venv/bin/python" - <<'PY' 2>/dev/null | tee "$folder/seen"
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("Spark", spark.version)
spark.sql("CREATE TABLE sales (d INT, amount INT) USING parquet")
spark.sql("INSERT INTO sales VALUES (1, 10), (1, 5), (2, 7)")
spark.sql("CREATE TABLE days (d INT) USING parquet")
spark.sql("INSERT INTO days VALUES (1)")
spark.sql("""
CREATE VIEW totals WITH METRICS LANGUAGE YAML AS $$
version: "0.1"
source: sales
dimensions:
  - name: d
    expr: d
measures:
  - name: total
    expr: sum(amount)
$$
""")
questions = {
    "alone": "SELECT d, measure(total) AS n FROM totals GROUP BY d ORDER BY d",
    "joined": "SELECT d, measure(total) AS n FROM totals JOIN days USING (d) GROUP BY d",
    "semi-joined": "SELECT d, measure(total) AS n FROM totals WHERE d IN (SELECT d FROM days) GROUP BY d",
    "joined after": "SELECT d, n FROM (SELECT d, measure(total) AS n FROM totals GROUP BY d) JOIN days USING (d)",
}
for name, question in questions.items():
    rows = spark.sql(question)
    try:
        print(f"{name}:", [tuple(row) for row in rows.collect()])
    except Exception as error:
        text = str(error)
        start = text.index("[INTERNAL_ERROR]")
        print(f"{name}:", text[start : text.index(" SQLSTATE", start)])
PY

diff "$folder/seen" - <<'SEEN'
Spark 4.3.0
alone: [(1, 15), (2, 7)]
joined: [INTERNAL_ERROR] UnevaluableAggregateFunc.aggBufferAttributes should not be called.
semi-joined: [(1, 15)]
joined after: [(1, 15)]
SEEN
