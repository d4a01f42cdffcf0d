"""Scans as lazy frames of polars and as relations of DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import icebergds
from icebergds.metrics import REPORTER

polars = pytest.importorskip("polars")
Frame = Any

_QUERIES: list[Callable[[Frame], Frame]] = [
    lambda frame: frame,
    lambda frame: frame.select("s", "id"),
    lambda frame: frame.head(10).filter(polars.col("k") == 1),
    lambda frame: frame.filter(polars.col("k") == 1).head(10),
    lambda frame: frame.filter(polars.col("k") == 1).slice(5, 7).select("id"),
    lambda frame: frame.tail(3),
    lambda frame: frame.head(0),
    lambda frame: frame.select(polars.len()),
    lambda frame: frame.select(polars.col("id").sum()),
    lambda frame: frame.group_by("k").agg(polars.len()).sort("k"),
    lambda frame: frame.join(frame.filter(polars.col("id") < 5), on="k").select("id").sort("id"),
    lambda frame: frame.select(polars.col("n").struct.field("a")).filter(polars.col("a") > 90),
]


@pytest.fixture
def table(tmp_path: Path) -> icebergds.Table:
    catalog = icebergds.load_catalog("lake", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    columns = "id bigint, k int, s string, n struct<a: bigint, b: string>, `a.b` double"
    table = catalog.create_table("db.t", columns)
    numbers = range(100)
    rows = {
        "id": list(numbers),
        "k": pa.array([number % 3 for number in numbers], pa.int32()),
        "s": [str(number) for number in numbers],
        "n": [{"a": number, "b": "b"} for number in numbers],
        "a.b": [number / 2 for number in numbers],
    }
    table.append(pa.table(rows))
    table.upsert(pa.table(rows).slice(0, 10), ["id"])
    return table


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("query", range(len(_QUERIES)))
def test_polars_computes_from_a_lazy_frame_what_it_does_from_the_rows(
    table: icebergds.Table, query: int, engine: str
) -> None:
    ask = _QUERIES[query]
    expected = ask(polars.DataFrame(table.scan()).lazy()).collect()
    assert ask(table.scan().to_polars()).collect(engine=engine).equals(expected)


def test_a_lazy_frame_has_the_rows_and_columns_of_its_scan(table: icebergds.Table) -> None:
    frame = table.scan("id >= 90", columns=["n.a", "id"], limit=4).to_polars()
    assert frame.collect_schema() == polars.DataFrame(table.scan(columns=["n.a", "id"])).schema
    assert frame.collect().height == 4
    assert frame.head(2).collect().height == 2
    assert frame.select("n").collect().schema == {"n": polars.Struct({"a": polars.Int64})}
    assert table.scan(columns=["`a.b`"]).to_polars().select("a.b").collect().height == 100


def test_columns_that_polars_does_not_need_are_not_read(
    table: icebergds.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("icebergds.metrics._reporter", lambda name: seen.append)
    reported = icebergds.load_table(table.location(), properties={REPORTER: "mine"})
    frame = reported.scan().to_polars()
    seen.clear()
    assert frame.filter(polars.col("k") == 1).select("a.b").collect().height == 33
    assert [each.projected_field_names for each in seen if hasattr(each, "filter")] == [
        ("k", "a.b")
    ]


def test_duckdb_asks_a_scan_as_often_as_it_likes(table: icebergds.Table) -> None:
    connection = table.scan("id < 50").to_duckdb("few")
    for _ in range(2):
        assert connection.sql("SELECT count(*), max(id) FROM few").fetchall() == [(50, 49)]
    same = table.scan().to_duckdb("all_rows", connection)
    assert same is connection
    joined = "SELECT count(*) FROM few JOIN all_rows USING (id) WHERE all_rows.k = 0"
    assert connection.sql(joined).fetchall() == [(17,)]


@pytest.mark.parametrize("given", ["to_polars", "to_duckdb"])
def test_a_mistake_is_told_at_once(table: icebergds.Table, given: str) -> None:
    scan = table.scan("nothing = 1")
    with pytest.raises(icebergds.InvalidFilterError, match="nothing"):
        scan.to_polars() if given == "to_polars" else scan.to_duckdb("t", duckdb.connect())
