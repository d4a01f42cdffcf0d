"""`examples/encryption.py` keeps rows from those who have no key."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import icebergds

pytest.importorskip("cryptography", reason="cryptography is not installed")
pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "encryption.py"


def test_example_shows_rows_to_those_who_have_the_key(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = runpy.run_path(str(_EXAMPLE))
    own = spark.newSession()
    own.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path / "warehouse"))
    own.conf.set("spark.icebergpy.catalog.lake.encryption.kms-type", "keystore")
    store = example["key_store"](tmp_path)
    own.conf.set("spark.icebergpy.catalog.lake.kms.client.keystore.path", store)
    icebergds.register(own, sql=True)
    example["run"](own, tmp_path)
    printed = capsys.readouterr().out
    assert "(990, '4111 1111 1111 1111', Decimal('490000.00'))" in printed
    assert "a card's number stands: 0" in printed
    assert "set encryption.kms-type" in printed
    assert "this master key has not wrapped it" in printed
