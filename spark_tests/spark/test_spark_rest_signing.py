"""Spark's tasks read and write tables whose requests to S3 the catalog signs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icebergds

if TYPE_CHECKING:
    from aws_iam_server import AwsServer
    from pyspark.sql import SparkSession
    from rest_server import RestServer
    from rest_signing import Signing

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_CATALOG_TOKEN = "token-of-the-catalog"


@pytest.fixture
def signing(
    rest: RestServer, aws_iam: AwsServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Signing]:
    from rest_signing import TABLE_TOKEN, signing_catalog

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with signing_catalog(rest, aws_iam) as made:
        made.tokens = (_CATALOG_TOKEN, TABLE_TOKEN)
        made.config["token"] = TABLE_TOKEN
        yield made


def _append(spark: SparkSession, signing: Signing) -> None:
    options = {"catalog.uri": signing.uri, "catalog.token": _CATALOG_TOKEN}
    rows = spark.range(10).write.format("icebergpy").option("catalog", "signing")
    rows.options(**options).mode("append").save("db.t")


def test_tasks_sign_with_the_token_of_the_table(spark: SparkSession, signing: Signing) -> None:
    from rest_signing import TABLE_TOKEN

    catalog = icebergds.load_catalog("signing", uri=signing.uri, token=_CATALOG_TOKEN)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint")
    _append(spark, signing)
    table.delete("id < 5", spark=spark)
    scanned = table.scan(filter="id < 7").to_df(spark)
    assert sorted(row.id for row in scanned.collect()) == [5, 6]
    data = [seen for seen in signing.asked if b"/data/" in seen.body]
    assert {seen.headers["Authorization"] for seen in data} == {f"Bearer {TABLE_TOKEN}"}


def test_tasks_without_a_token_fail_before_they_write(
    spark: SparkSession, signing: Signing
) -> None:
    signing.config = {}
    catalog = icebergds.load_catalog("signing", uri=signing.uri, token=_CATALOG_TOKEN)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint")
    with pytest.raises(Exception, match="no token for the table"):
        _append(spark, signing)
    assert not any(b"/data/" in seen.body for seen in signing.asked)
    table.append(pa.table({"id": [1]}))
    with pytest.raises(Exception, match="no token for the table"):
        table.scan().to_df(spark).collect()
