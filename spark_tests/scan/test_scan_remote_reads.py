"""Scans of tables in a storage with latency: few requests, several at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from s3_requests import counted

from icebergds import Catalog, Table, load_catalog
from icebergds.formats.parquet import footer, reader
from icebergds.io import ranged_file
from icebergds.scan.read.delete_cache import DELETES

if TYPE_CHECKING:
    from s3_server import S3Server

_ROWS = pa.table(
    {
        "id": pa.array(range(20_000), pa.int64()),
        "x": pa.array([i * 0.37 % 1 for i in range(20_000)]),
        "s": pa.array([f"text {i * 7919 % 20_011}" for i in range(20_000)]),
    }
)


@pytest.fixture
def catalog(s3: S3Server) -> Catalog:
    catalog = load_catalog("s3lake", warehouse=s3.new_location(), **s3.properties)
    catalog.create_namespace("db")
    DELETES.clear()
    return catalog


def filled(catalog: Catalog, files: int, **properties: str) -> Table:
    table = catalog.create_table("db.t", _ROWS.schema, properties=properties)
    for number in range(files):
        table.append(_ROWS.slice(number * 1000, 1000))
    return table


def ids(rows: pa.Table) -> list[int]:
    found: list[int] = sorted(rows["id"].to_pylist())
    return found


def test_a_small_file_is_one_request_beside_others(catalog: Catalog) -> None:
    table = filled(catalog, 6)
    with counted() as requests:
        assert ids(table.scan().to_arrow()) == list(range(6000))
    # The manifest list, a manifest of each append, and the files.
    assert requests.made == {"get_object": 1 + 6 + 6}
    assert requests.most >= 4


def test_the_columns_of_a_large_file_are_read_side_by_side(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranged_file, "_WHOLE", 1000)
    monkeypatch.setattr(ranged_file, "_TAIL", 8000)
    monkeypatch.setattr(footer, "_TAIL_READ", 8000)
    monkeypatch.setattr(ranged_file, "_GAP", 100)
    table = catalog.create_table("db.t", _ROWS.schema)
    table.append(_ROWS)
    with counted() as requests:
        found = table.scan(columns=["id", "s"]).to_arrow()
    assert found.sort_by("id") == _ROWS.select(["id", "s"])
    # Manifest list, manifest, the end of the file, and two columns at once.
    assert requests.made == {"get_object": 5}
    assert requests.most == 2


@pytest.mark.parametrize("limit", [1, 20_000, 2**30])
def test_columns_that_do_not_fit_into_memory_are_streamed(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    for name, size in {
        "_WHOLE": 1000,
        "_TAIL": 2000,
        "_GAP": 10,
        "_PART": 5000,
        "_LEAST": 64,
    }.items():
        monkeypatch.setattr(ranged_file, name, size)
    monkeypatch.setattr(reader, "_FETCH_LIMIT", limit)
    monkeypatch.setattr(reader, "_REMOTE_BUFFER", 3000)
    properties = {"write.parquet.row-group-size-bytes": "100000"}
    table = catalog.create_table("db.t", _ROWS.schema, properties=properties)
    table.append(_ROWS)
    assert table.scan().to_arrow().sort_by("id") == _ROWS
    wanted = _ROWS.filter(pc.greater(_ROWS["x"], 0.9))
    assert table.scan("x > 0.9").to_arrow().sort_by("id") == wanted


@pytest.mark.parametrize("version", ["2", "3"])
def test_deletes_are_read_beside_their_files(catalog: Catalog, version: str) -> None:
    table = filled(catalog, 5, **{"format-version": version})
    for number in range(5):
        table.delete_keys(pa.table({"id": [number * 1000 + 7]}), ["id"])
        table.convert_equality_deletes()
    DELETES.clear()
    with counted() as requests:
        expected = [i for i in range(5000) if i % 1000 != 7]
        assert ids(table.scan().to_arrow()) == expected
    assert set(requests.made) == {"get_object"}
    assert requests.most >= 4
    with counted() as again:
        assert ids(table.scan().to_arrow()) == expected
    # The deletes are in memory.
    assert again.made["get_object"] == requests.made["get_object"] - 5


def test_a_commit_makes_few_requests_in_turn(catalog: Catalog) -> None:
    table = filled(catalog, 2)
    with counted() as requests:
        table.append(_ROWS.slice(0, 10))
    # Three of them load the table, one writes the data file.
    assert requests.made.total() <= 11
    assert requests.most == 1
