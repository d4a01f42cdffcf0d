#!/usr/bin/env bash
# Spark gives two answers for one comparison of a local time with an instant, if clocks skip the
# time: one for rows that are in its plan, such as of VALUES, another for the same rows in a file.
#
# In New York, clocks went from 02:00 to 03:00 on 2021-03-14, so 02:30 is no time of that day. To
# compare the TIMESTAMP_NTZ 02:30 with the TIMESTAMP 03:00, Spark 4.1 and 4.3 say that the former is
# cast to an instant, which is 03:30, so that `at >= TIMESTAMP '2021-03-14 03:00:00'` is true. So it
# is for VALUES. For a column of a file, the optimizer takes the cast away and casts the constant to
# a local time instead: 02:30 >= 03:00 is false, and the row is gone. As a column of the result, the
# comparison is wrong in the same way.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat > "$folder/compare.py" <<'PY'
import sys

import pyspark
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF")
    .config("spark.sql.session.timeZone", "America/New_York")
    .getOrCreate()
)
values = "VALUES (TIMESTAMP_NTZ '2021-03-14 02:30:00') AS t(at)"
spark.sql(f"SELECT * FROM {values}").write.parquet(sys.argv[1])
condition = "at >= TIMESTAMP '2021-03-14 03:00:00'"
for where, rows in (("VALUES", values), ("a file", f"parquet.`{sys.argv[1]}`")):
    count = spark.sql(f"SELECT * FROM {rows} WHERE {condition}").count()
    [(result,)] = spark.sql(f"SELECT {condition} FROM {rows}").collect()
    print(f"Spark {pyspark.__version__}, {where}: {count} rows, {result}")
PY
for version in 4.1.4 4.3.0; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/pip" install --quiet "pyspark==$version"
  PYSPARK_PYTHON="$folder/$version/bin/python" \
    "$folder/$version/bin/python" "$folder/compare.py" "$folder/rows-$version" 2>/dev/null
done | tee "$folder/seen"

diff "$folder/seen" - <<'SEEN'
Spark 4.1.4, VALUES: 1 rows, True
Spark 4.1.4, a file: 0 rows, False
Spark 4.3.0, VALUES: 1 rows, True
Spark 4.3.0, a file: 0 rows, False
SEEN
