"""Where Spark's private classes are not as expected, all rows are read, found and changed alike."""

from __future__ import annotations

import logging
import random
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import py4j.java_gateway as gateway
import pytest
from effort import rounds, some
from frame_programs import filled, program, run
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession, functions as f

from icebergds import Table, load_table, register, sql
from icebergds.spark import jvm
from icebergds.spark.registered import session_of

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

Access = Callable[[str], None]


@pytest.fixture
def accesses(monkeypatch: pytest.MonkeyPatch) -> list[Access]:
    """Calls its functions with each class and method of the JVM that this package asks for."""
    asked: list[Access] = []
    find, call = jvm.in_jvm, gateway.JavaMember.__call__

    def found(spark: SparkSession, name: str) -> Any:
        for one in asked:
            one(name)
        return find(spark, name)

    def called(member: Any, *args: Any) -> Any:
        caller = sys._getframe(1).f_globals["__name__"]
        if caller.startswith("icebergds.") and caller not in _STARTING:
            for one in asked:
                one(member.name)
        return call(member, *args)

    monkeypatch.setattr(gateway.JavaMember, "__call__", called)
    for module in list(sys.modules.values()):
        if getattr(module, "in_jvm", None) is find:
            monkeypatch.setattr(module, "in_jvm", found)
    monkeypatch.setattr(jvm, "_logged", set())
    return asked


# Registering has its own tests.
_STARTING = ("icebergds.spark.registered",)


def seen(spark: SparkSession, table: Table, steps: Any) -> list[Any]:
    """What a program, aggregates, a merge and a metadata table return."""
    load = spark.read.format("icebergpy").load
    frame = load(table.location())
    found: list[Any] = run(steps, frame)
    found.append(frame.groupBy("p").agg(f.max("id").alias("most")).orderBy("p").collect())
    found.append(frame.sort(f.col("id").desc()).limit(3).collect())
    found.append(frame.where("p = 2").count())
    files = spark.read.format("icebergpy").option("metadata-table", "files")
    found.append(sorted(files.load(table.location()).select("record_count").collect()))
    found.append(table.scan(f.col("id") > 33).to_df(spark).count())
    queries = ("SELECT id, s FROM {} AS t WHERE t.id > 33", "SELECT max(id) FROM {} GROUP BY p")
    rows = (sql(spark, query.format("private.db.t")).collect() for query in queries)
    found.extend(sorted(map(str, each)) for each in rows)
    assert not [each for each in spark.catalog.listTables() if "_pyspark" in each.name]
    target = f"{table.location()}-{uuid.uuid4()}"
    writer = frame.where("p = 4").write.format("icebergpy").mode("append")
    writer.option("create", "true").save(target)
    found.append(sorted(map(str, load_table(target).scan().to_arrow().to_pylist())))
    with table.transaction() as tx:
        tx.delete(f.col("p") == 1)
        source = spark.range(30, 34).select(f.col("id"), f.lit(3).alias("p"))
        tx.merge(source, "target.id = source.id").when_matched_update({"s": "'new'"}).execute()
        found.append(sorted(map(str, tx.scan().to_arrow().to_pylist())))
        tx.abandon()
    return found


def test_nothing_depends_on_one_private_class_or_on_all(
    front: SparkSession,
    tmp_path: Path,
    rng: random.Random,
    accesses: list[Access],
    caplog: pytest.LogCaptureFixture,
) -> None:
    register(front, native_scans=True)
    front.conf.set("spark.icebergpy.catalog.private.warehouse", str(tmp_path / "lake"))
    table = filled(tmp_path / "lake", 2)
    steps = program(rng, rounds("ICEBERGDS_PRIVATE_STEPS", pull=4, nightly=6))
    asked: dict[str, None] = {}
    accesses.append(asked.setdefault)
    expected = seen(front, table, steps)
    assert len(asked) > 30
    assert "this Spark is not as icebergds knows it" not in caplog.text
    for gone in [frozenset(asked), *(frozenset([name]) for name in some(list(asked), pull=2))]:

        def fail(name: str, gone: frozenset[str] = gone) -> None:
            if name in gone:
                raise Py4JError(f"Method {name}([]) does not exist")

        accesses[:] = [fail]
        jvm._logged.clear()
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert seen(front, table, steps) == expected, sorted(gone)
        if len(gone) > 1:
            assert "DataFrames of tables choose files by the conditions" in caplog.text


def test_sessions_are_told_from_each_other_without_their_private_id(
    spark: SparkSession, accesses: list[Access], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = gateway.JavaMember.__call__

    def without_ids(member: Any, *args: Any) -> Any:
        if member.name == "sessionUUID":
            raise Py4JError("Method sessionUUID([]) does not exist")
        return call(member, *args)

    monkeypatch.setattr(gateway.JavaMember, "__call__", without_ids)
    one, other = spark.newSession(), spark.newSession()
    again = SparkSession(spark.sparkContext, one._jsparkSession)
    assert session_of(again) is session_of(one)
    assert session_of(other) is not session_of(one)
