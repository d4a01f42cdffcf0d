#!/usr/bin/env bash
# PySpark refuses to connect to a Spark Connect server that the program names with
# `builder.remote(...)`, while an environment variable with the plain name MASTER is set.
#
# PySpark takes MASTER, besides SPARK_REMOTE, from the environment as if the program had called
# `builder.master(...)`, which contradicts `remote`, and the message does not name the variable. It
# happens before anything is sent: no server is needed to see it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "pyspark[connect]==4.3.0"

cat > "$folder/program.py" <<'PY'
import pyspark
from pyspark.sql import SparkSession

try:
    SparkSession.builder.remote("sc://localhost:1").getOrCreate()
    print("connected")
except Exception as error:
    print(pyspark.__version__, str(error).partition("\n")[0])
PY
MASTER='local[1]' timeout 120 "$folder/venv/bin/python" "$folder/program.py" 2>/dev/null | tee "$folder/seen"

diff "$folder/seen" - <<'SEEN'
4.3.0 [CANNOT_CONFIGURE_SPARK_CONNECT_MASTER] Spark Connect server and Spark master cannot be configured together: Spark master [local[1]], Spark Connect [sc://localhost:1].
SEEN
