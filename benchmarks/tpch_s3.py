"""Times TPC-H on S3 whose answers come late: icebergds by SQL and temporary views, Java Iceberg.

A server on this machine (S3Mock) is reached through a proxy that answers each request 30 ms later.
Views of icebergds are read by Spark through S3A, Java Iceberg uses its S3FileIO. The queries, and
how they are run, are those of `tpch.py`, whose tables are copied.

    python benchmarks/tpch_s3.py DIRECTORY [--scale 1] [--runs 3] [--queries 1,6]
        [--milliseconds 30]

Needs ICEBERGDS_ICEBERG_JAR, ICEBERGDS_AWS_JAR (Java Iceberg's bundle of AWS),
ICEBERGDS_JDBC_DRIVERS, a folder with the driver of SQLite, and S3A (`.ci/servers.sh` fetches it).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from slow_storage import slow_storage
from storage import catalog_at
from tpch import PARTITIONED, TABLES, Way, ask, compare, filled, named, parser_of

from icebergds import Table, register, sql

sys.path.append(str(Path(__file__).parents[1] / "spark_tests"))
from s3_server import S3Server, s3_server, storage_properties

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def main() -> None:
    arguments = parse_arguments()
    late = arguments.milliseconds / 1000
    with s3_server() as server, tempfile.TemporaryDirectory() as directory:
        location = server.new_location()
        with slow_storage(server.racing_port, late) as storage:
            spark = start(location, storage.port, Path(directory))
            copy(spark, filled(spark, arguments.directory, arguments.scale), location, server)
            compare(spark, ways_of(spark), arguments)
            spark.stop()


def parse_arguments() -> argparse.Namespace:
    parser = parser_of(__doc__.splitlines()[0])
    parser.add_argument("--milliseconds", type=int, default=30)
    return parser.parse_args()


def start(location: str, port: int, directory: Path) -> SparkSession:
    """A session with the catalogs `ours` and `java`, and S3A."""
    (drivers,) = Path(os.environ["ICEBERGDS_JDBC_DRIVERS"]).glob("sqlite-jdbc-*.jar")
    (hadoop,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    version = hadoop.stem.rpartition("-")[2]
    jars = [os.environ["ICEBERGDS_ICEBERG_JAR"], os.environ["ICEBERGDS_AWS_JAR"], str(drivers)]
    jars += map(str, Path(f".cache/java/hadoop-aws-{version}").glob("*.jar"))
    of_storage = {"warehouse": location, **storage_properties(port)}
    java = {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:sqlite:{directory}/catalog.db",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "client.region": "us-east-1",
        **of_storage,
    }
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "6g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.jars", ",".join(jars))
        .config("spark.sql.catalog.java", "org.apache.iceberg.spark.SparkCatalog")
    )
    for key, value in of_storage.items():
        builder = builder.config(f"spark.icebergpy.catalog.ours.{key}", value)
    for key, value in java.items():
        builder = builder.config(f"spark.sql.catalog.java.{key}", value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def copy(spark: SparkSession, tables: dict[str, Table], location: str, server: S3Server) -> None:
    """Copies the tables to S3, and registers them with Java's catalog."""
    # On this port commits are exclusive.
    catalog = catalog_at(location, server.atomic_port, "copy")
    catalog.create_namespace("tpch")
    for name, table in tables.items():
        rows = table.scan().to_arrow()
        spec = PARTITIONED.get(name)
        catalog.create_table(f"tpch.{name}", rows.schema, partition_spec=spec).append(rows)
        metadata = catalog.load_table(f"tpch.{name}").metadata_location
        spark.sql(f"CALL java.system.register_table('tpch.{name}', '{metadata}')")


def ways_of(spark: SparkSession) -> dict[str, Way]:
    def views() -> None:
        reader = spark.read.format("icebergpy").option("catalog", "ours")
        for name in TABLES:
            reader.load(f"tpch.{name}").createOrReplaceTempView(name)

    def names() -> None:
        for name in TABLES:
            spark.catalog.dropTempView(name)

    return {
        "views": Way(views, partial(ask, spark.sql)),
        "sql": Way(names, partial(ask, lambda text: sql(spark, named(text, "ours.tpch")))),
        "java": Way(names, partial(ask, lambda text: spark.sql(named(text, "java.tpch")))),
    }


if __name__ == "__main__":
    main()
