"""What Spark's UI says about the jobs that are run for a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions as f

from icebergds import load_catalog
from icebergds.api.table import Table
from icebergds.errors import InvalidDataError

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_DESCRIPTION = "spark.job.description"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lake = load_catalog("lake", warehouse=str(tmp_path))
    lake.create_namespace("db")
    created = lake.create_table("db.t", "id long, day int", partition_spec="day")
    for day in (1, 2):
        created.append(pa.table({"id": [1, 2], "day": pa.array([day, day], pa.int32())}))
    return created


@pytest.fixture
def described(spark: SparkSession) -> Iterator[None]:
    """The thread's jobs have a description of the user's own."""
    spark.sparkContext.setJobDescription("nightly load")
    yield
    spark.sparkContext.setLocalProperty(_DESCRIPTION, None)


def _jobs(spark: SparkSession, run: Callable[[], object]) -> set[str | None]:
    """The descriptions of the jobs that something runs."""
    context = spark.sparkContext._jsc.sc()
    before = set(_listed(context))
    run()
    context.listenerBus().waitUntilEmpty()
    # Spark forgets the oldest, so their number need not grow.
    return {text for job, text in _listed(context).items() if job not in before}


def _listed(context: Any) -> dict[int, str | None]:
    """The descriptions of the jobs that Spark remembers."""
    jobs = context.statusStore().jobsList(None)
    found = {}
    for at in range(jobs.size()):
        text = jobs.apply(at).description()
        found[jobs.apply(at).jobId()] = text.get() if text.isDefined() else None
    return found


def _merge(table: Table, spark: SparkSession) -> object:
    source = spark.createDataFrame([(1, 1), (5, 2)], "id long, day int")
    merge = table.merge(source, ["id", "day"])
    return merge.when_matched_delete().when_not_matched_insert_all().execute()


_VERBS: list[tuple[Callable[[Table, SparkSession], object], set[str]]] = [
    (
        _merge,
        {"MERGE lake.db.t, find partitions of the source", "MERGE lake.db.t, write"},
    ),
    (lambda t, s: t.delete("id = 1", spark=s), {"DELETE lake.db.t, write"}),
    (lambda t, s: t.update({"id": "id + 1"}, spark=s), {"UPDATE lake.db.t, write"}),
    (lambda t, s: t.append(s.range(3)), {"append lake.db.t, write"}),
    (lambda t, s: t.overwrite(s.range(3)), {"overwrite lake.db.t, write"}),
    (lambda t, s: t.overwrite(s.range(3), f.col("id") > 1), {"overwrite lake.db.t, write"}),
    (lambda t, s: t.upsert(s.range(3), "id"), {"upsert lake.db.t, write"}),
    (lambda t, s: t.scan("id > 1").count(s), {"count lake.db.t"}),
    (
        lambda t, s: t.rewrite_data_files(options={"rewrite-all": "true"}, spark=s),
        {"rewrite_data_files lake.db.t"},
    ),
    (
        lambda t, s: t.rewrite_data_files(
            "sort", sort_order="id", options={"rewrite-all": "true"}, spark=s
        ),
        {"rewrite_data_files lake.db.t, write"},
    ),
    (lambda t, s: t.compute_table_stats(spark=s), {"compute_table_stats lake.db.t"}),
    (lambda t, s: t.find_stored_rows("id = 1", spark=s), {"find_stored_rows lake.db.t"}),
]


@pytest.mark.parametrize(("verb", "expected"), _VERBS, ids=[str(at) for at in range(len(_VERBS))])
def test_jobs_say_what_they_are_for(
    spark: SparkSession,
    table: Table,
    verb: Callable[[Table, SparkSession], object],
    expected: set[str],
) -> None:
    shown = _jobs(spark, lambda: verb(table, spark))
    assert {f"icebergds: {text}" for text in expected} <= shown
    assert all(str(text).startswith("icebergds: ") for text in shown)
    assert spark.sparkContext.getLocalProperty(_DESCRIPTION) is None


@pytest.mark.usefixtures("described")
@pytest.mark.parametrize("verb", [_VERBS[0][0], _VERBS[8][0]], ids=["merge", "other threads"])
def test_a_description_of_the_users_own_stays_in_front(
    spark: SparkSession, table: Table, verb: Callable[[Table, SparkSession], object]
) -> None:
    shown = _jobs(spark, lambda: verb(table, spark))
    assert shown
    assert all(str(text).startswith("nightly load (icebergds: ") for text in shown)
    assert spark.sparkContext.getLocalProperty(_DESCRIPTION) == "nightly load"


@pytest.mark.usefixtures("described")
def test_a_write_that_fails_puts_the_description_back(spark: SparkSession, table: Table) -> None:
    with pytest.raises(InvalidDataError):
        table.append(spark.sql("SELECT uuid() AS id"))
    assert spark.sparkContext.getLocalProperty(_DESCRIPTION) == "nightly load"
