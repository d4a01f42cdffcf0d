"""Tables on an S3 server, by options of the storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession
from spark_reads import ids, load
from spark_writes import save

from icebergds import load_table

if TYPE_CHECKING:
    from s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


def test_tables_are_created_written_and_read_by_options(spark: SparkSession, s3: S3Server) -> None:
    location = f"{s3.new_location()}/a table%20#1"
    days = spark.range(6).selectExpr("id", "cast(id % 2 as int) as day").coalesce(1)
    save(days, location, create="true", **{"partition-by": "day"}, **s3.properties)
    save(days.where("id = 5").selectExpr("id + 10 as id", "day"), location, **s3.properties)
    read = load(spark, location, **s3.properties)
    assert ids(read) == [0, 1, 2, 3, 4, 5, 15]
    assert ids(load(spark, location, filter="day = 1", **s3.properties)) == [1, 3, 5, 15]
    assert ids(load_table(location, properties=s3.properties).scan().to_df(spark)) == ids(read)
