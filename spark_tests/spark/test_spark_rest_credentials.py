"""Spark reads and writes tables of a REST catalog with the credentials that the catalog vends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import icebergds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rest_server import RestServer
    from rest_vending import Vending
    from s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.fixture
def vending(rest: RestServer, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vending]:
    from rest_vending import vending_catalog

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with vending_catalog(rest, s3) as made:
        yield made


def test_executors_use_the_vended_keys(spark: SparkSession, vending: Vending) -> None:
    catalog = icebergds.load_catalog("vending", uri=vending.uri)
    catalog.create_namespace("db")
    rows = spark.range(10).selectExpr("id", "concat('v', id) AS s")
    options = {"catalog": "vending", "catalog.uri": vending.uri}
    # The table is created after its first files are written.
    created = rows.write.format("icebergpy").options(**options).option("create", "true")
    created.mode("append").save("db.t")
    rows.write.format("icebergpy").options(**options).mode("append").save("db.t")
    table = catalog.load_table("db.t")
    table.delete("id < 5", spark=spark)
    scanned = table.scan(filter="id < 7").to_df(spark)
    assert sorted(row.id for row in scanned.collect()) == [5, 5, 6, 6]
    loaded = spark.read.format("icebergpy").options(**options).load("db.t")
    assert loaded.count() == 10
    assert set(vending.guard.used) <= set(vending.keys)
