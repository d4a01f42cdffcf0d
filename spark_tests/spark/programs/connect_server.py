"""A server of Spark Connect at a free port, which it prints; it ends with its input."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def main() -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
        .config("spark.connect.grpc.binding.port", "0")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    service = getattr(spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    print(getattr(service, "MODULE$").localPort(), flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main()
