"""Options of the JVMs that tests start, most of which live for seconds.

Compiling for speed would take longer than their work. Loading Spark's classes takes half of their
start, so they come from an archive that a JVM wrote before (class data sharing).
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

_CACHE = Path(__file__).resolve().parents[1] / ".cache" / "java"
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# A bit of everything that most tests do.
_WARM_UP = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
df = spark.range(9).selectExpr("id", "id % 3 AS part", "cast(id AS string) AS name")
df.join(spark.range(5), "id").write.partitionBy("part").parquet(sys.argv[1])
spark.read.parquet(sys.argv[1]).where("id > 3").groupBy("name").count().collect()
df.mapInArrow(lambda batches: batches, df.schema).toArrow()
spark.stop()
"""


def jvm_options() -> str:
    """The options, with the archive of this Spark and JVM, which the first call writes.

    A JVM that cannot use the archive goes on without it.
    """
    java = subprocess.run(["java", "-version"], capture_output=True, check=False).stderr
    key = hashlib.sha256(java + pyspark.__file__.encode()).hexdigest()[:8]
    archive = _CACHE / f"spark-{pyspark.__version__}-{key}.jsa"
    if not archive.exists():
        _write(archive)
    # Spark reads what a JVM prints as it starts.
    return f'{_QUICK} -XX:SharedArchiveFile="{archive}" -Xlog:disable -Xlog:all=error:stderr'


def _write(archive: Path) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as directory:
        unfinished = Path(directory, archive.name)
        subprocess.run(
            [sys.executable, "-c", _WARM_UP, str(Path(directory, "rows"))],
            env={
                **os.environ,
                "PYSPARK_PYTHON": sys.executable,
                "JAVA_TOOL_OPTIONS": f'{_QUICK} -XX:ArchiveClassesAtExit="{unfinished}"',
            },
            # The JVM ends after Python does: its output ends when the archive is written.
            capture_output=True,
            check=False,
        )
        if unfinished.exists():
            unfinished.replace(archive)
