"""Spark reads the rows of the conformance corpus on which its readers agree."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from corpus import (
    corpus_dir,
    exact_tables,
    expected_rows,
    location_map,
    skip_where_files_are_absent,
)
from oracles.canon import canonical_rows
from pyspark.sql import SparkSession

from icebergds.errors import MissingFileError

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@pytest.mark.parametrize("table", exact_tables(), ids=lambda table: table["id"])
def test_spark_reads_the_expected_rows(table: dict[str, Any], spark: SparkSession) -> None:
    reader = spark.read.format("icebergpy")
    if table["resolve"]:
        reader = reader.option("location-map", json.dumps(location_map(table)))
    frame = reader.load(str(corpus_dir() / table["metadata"]))
    try:
        rows: pa.Table = frame.toArrow()
    except Exception as error:
        if "MissingFileError" in str(error):
            skip_where_files_are_absent(MissingFileError(str(error)))
        raise
    assert canonical_rows(rows, table["schema"]) == expected_rows(table)
