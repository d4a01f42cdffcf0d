"""Scans of tables in a storage with latency: few requests, several at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from built.contents import head
from s3_requests import counted

from icebergds import Catalog, Table, load_catalog
from icebergds.errors import StorageError
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.parquet import bloom_filter, footer, reader
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
    """Keeps no metadata, so that what a first read asks for is counted."""
    warehouse = s3.new_location()
    keeps = {"io.manifest.cache-enabled": "false"}
    catalog = load_catalog("s3lake", warehouse=warehouse, **keeps, **s3.properties)
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


def test_metadata_that_was_written_or_read_before_is_not_asked_for(s3: S3Server) -> None:
    warehouse = s3.new_location()
    writer = load_catalog("s3lake", warehouse=warehouse, **s3.properties)
    writer.create_namespace("db")
    filled(writer, 2)
    reader = load_catalog("s3reader", warehouse=warehouse, **s3.properties)
    made = []
    for catalog in (writer, reader, reader):
        with counted() as requests:
            assert catalog.load_table("db.t").scan().count() == 2000
        made.append(requests.made)
    # Others have the version of the table and its name; the list of manifests, and two of them.
    newest = {"list_objects_v2": 1, "get_object": 1}
    assert made == [newest, {"list_objects_v2": 1, "get_object": 1 + 1 + 2}, newest]


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


def test_columns_of_the_next_files_are_read_while_one_is_used(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranged_file, "_WHOLE", 1000)
    monkeypatch.setattr(ranged_file, "_TAIL", 3000)
    monkeypatch.setattr(footer, "_TAIL_READ", 3000)
    table = filled(catalog, 6)
    with counted() as requests:
        assert ids(table.scan(columns=["id"]).to_arrow()) == list(range(6000))
    # The manifest list, a manifest of each append, the ends of the files and their columns.
    assert requests.made == {"get_object": 1 + 6 + 6 + 6}
    # The list, the manifests, the ends, the columns of the first file, those of the next four, and
    # of the last one.
    assert requests.in_turn <= 7


@pytest.mark.parametrize("whole", [0, 2**20])
def test_columns_without_a_value_by_their_bloom_filter_are_not_asked_for(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, whole: int
) -> None:
    monkeypatch.setattr(ranged_file, "_WHOLE", 1000)
    monkeypatch.setattr(bloom_filter, "_WHOLE", whole)
    monkeypatch.setattr(bloom_filter, "_MIN_BYTES", 0)
    monkeypatch.setattr(ranged_file, "_TAIL", 3000)
    monkeypatch.setattr(ranged_file, "_GAP", 100)
    monkeypatch.setattr(footer, "_TAIL_READ", 3000)
    enabled = {"write.parquet.bloom-filter-enabled.column.id": "true"}
    table = catalog.create_table("db.t", _ROWS.schema, properties=enabled)
    for at in range(3):
        table.append(_ROWS.take(pa.array(range(at, 20_000, 7))))
    # The manifest list, the manifests, the ends of the files, and their filters.
    least = 1 + 3 + 3 + (3 if whole else 6)
    with counted() as requests:
        assert ids(table.scan("id = 7005").to_arrow()) == []
    assert requests.made == {"get_object": least}
    with counted() as requests:
        assert ids(table.scan("id in (7001, 7005)").to_arrow()) == [7001]
    assert 0 < requests.made["get_object"] - least <= 3


def test_files_after_the_last_row_that_is_wanted_are_not_all_read(catalog: Catalog) -> None:
    table = filled(catalog, 30)
    with counted() as requests:
        assert table.scan(limit=10).to_arrow().num_rows == 10
    assert requests.made["get_object"] <= 1 + 30 + 25


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


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_an_append_makes_eight_requests_in_turn(catalog: Catalog, version: str) -> None:
    table = filled(catalog, 2, **{"format-version": version})
    with counted() as requests:
        table.append(_ROWS.slice(0, 10))
    # Two load the table, one writes the data file and meanwhile reads the manifest list; one writes
    # the manifest and the list, one looks whether the table has changed and whether it is the same;
    # one commits, one verifies that, one writes the hint.
    assert requests.in_turn <= 8
    assert requests.made == {"list_objects_v2": 3, "get_object": 3, "put_object": 5}


def test_manifests_that_an_append_merges_are_read_side_by_side(catalog: Catalog) -> None:
    table = filled(catalog, 2, **{"commit.manifest.min-count-to-merge": "3"})
    with counted() as requests:
        table.append(_ROWS.slice(2000, 10))
    # More than without a merge: to read the manifests, and to write one of all files.
    assert requests.in_turn <= 8 + 2
    (manifest,) = read_snapshot_manifests(table.io, head(table))
    assert manifest.added_files_count == 1
    assert manifest.existing_files_count == 2
    assert ids(table.scan().to_arrow()) == list(range(2010))


@pytest.mark.parametrize("refused", ["-m0.avro", "snap-"])
def test_an_append_fails_if_one_of_its_files_cannot_be_written(
    catalog: Catalog, refused: str
) -> None:
    table = filled(catalog, 2)

    def files() -> set[str]:
        return {
            found
            for batch in table.io.list_recursively(table.metadata.location)
            for found in batch.files["location"].to_pylist()
        }

    def is_refused(method: str, arguments: dict[str, Any]) -> bool:
        return method == "put_object" and refused in arguments["Key"]

    before = files()
    with counted(is_refused), pytest.raises(StorageError, match=f"writing the manifest.*{refused}"):
        table.append(_ROWS.slice(2000, 10))
    assert ids(table.refresh().scan().to_arrow()) == list(range(2000))
    assert files() == before
