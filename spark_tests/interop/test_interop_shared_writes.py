"""Tables to which icebergds and others write in turn."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from effort import IS_NIGHTLY, some
from java_process import JavaProcess
from oracles.canon import canonical_rows
from oracles.comparison import difference
from our_tables import OurTable, Writer
from pyiceberg.catalog.sql import SqlCatalog

from icebergds.api.table import load_table
from icebergds.catalog.filesystem.commits import create_at_location
from icebergds.catalog.loading import load_catalog
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.io.fileio import FileIO
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, STRING, NestedField
from icebergds.spec.updates.new_table import new_table_updates

pytestmark = pytest.mark.interop

_WAYS = [
    (1, "copy-on-write"),
    (2, "copy-on-write"),
    (2, "merge-on-read"),
    (3, "copy-on-write"),
    (3, "merge-on-read"),
]
_RACES = 5 if IS_NIGHTLY else 1
_LINEAGE = ["id", "_row_id", "_last_updated_sequence_number"]


@pytest.mark.parametrize(("version", "mode"), some(_WAYS, 3))
def test_java_changes_and_maintains_a_table_between_our_writes(
    java_process: JavaProcess, our_writer: Writer, version: int, mode: str
) -> None:
    name = f"shared_v{version}_{mode.replace('-', '_')}"
    columns = [("id!", "int"), ("s", "string"), ("v", "long")]
    modes = {f"write__{verb}__mode": mode for verb in ("delete", "update", "merge")}
    table = our_writer.create(name, columns, partition="s", version=version, **modes)
    target = f"oracle.db.{name}"
    table.append([{"id": i, "s": "ab"[i % 2], "v": i} for i in range(8)])
    table.append([{"id": i, "s": None, "v": i} for i in range(8, 12)])
    _agree(java_process, table, {i: i for i in range(12)}, version)

    java_process.ask("sql", statement=f"INSERT INTO {target} VALUES (20, 'a', 20), (21, 'c', 21)")
    _agree(java_process, table, {**{i: i for i in range(12)}, 20: 20, 21: 21}, version)
    java_process.ask("sql", statement=f"DELETE FROM {target} WHERE id IN (0, 3, 9)")
    java_process.ask("sql", statement=f"UPDATE {target} SET v = -1 WHERE id = 5")
    rows = {i: i for i in (1, 2, 4, 5, 6, 7, 8, 10, 11, 20, 21)} | {5: -1}
    _agree(java_process, table, rows, version)

    table.table.refresh().append(table.arrow([{"id": 30, "s": "a", "v": 30}]))
    table.table.delete("s = 'c'")
    del rows[21]
    rows[30] = 30
    _agree(java_process, table, rows, version)

    arguments = f"table => 'db.{name}'"
    files = "options => map('rewrite-all', 'true')"
    for call in (
        f"rewrite_data_files({arguments}, {files})",
        f"rewrite_manifests({arguments})",
        f"expire_snapshots({arguments}, older_than => now(), retain_last => 1)",
    ):
        java_process.ask("sql", statement=f"CALL oracle.system.{call}")
        _agree(java_process, table, rows, version)

    table.table.refresh().overwrite(table.arrow([{"id": 40, "s": "a", "v": 40}]), "s = 'a'")
    kept = {1, 5, 7, 8, 10, 11}
    rows = {id: v for id, v in rows.items() if id in kept} | {40: 40}
    _agree(java_process, table, rows, version)


@pytest.mark.parametrize("version", [2, 3])
def test_java_compacts_a_table_beside_changes_by_key(
    java_process: JavaProcess, our_writer: Writer, version: int
) -> None:
    """They delete rows by position in files that Java replaces meanwhile, if it comes to that."""
    name = f"compacted_beside_v{version}"
    columns = [("id!", "int"), ("s", "string"), ("v", "long")]
    modes = {"write__upsert__mode": "positions", "commit__retry__num_retries": "1000"}
    table = our_writer.create(name, columns, partition="bucket(4, id)", version=version, **modes)
    rows = dict.fromkeys(range(40), 0)
    for first in range(0, len(rows), 10):
        table.append([{"id": i, "s": "new", "v": 0} for i in range(first, first + 10)])
    # A commit for each partition, some of which fail because files have other deletes now.
    options = "'rewrite-all', 'true', 'partial-progress.enabled', 'true'"
    call = f"rewrite_data_files(table => 'db.{name}', options => map({options}))"
    with ThreadPoolExecutor(1) as pool:
        for number in range(_RACES):
            changes = pool.submit(_change_by_key, table, rows, 10 * number)
            while not changes.done():
                java_process.ask("sql", statement=f"CALL oracle.system.{call}")
            changes.result()
    assert table.table.refresh().scan().count() == len(rows)
    _agree(java_process, table, rows, version)


@pytest.mark.parametrize(
    ("version", "kind"), some([(v, kind) for v in (1, 2, 3) for kind in ("fixed[5]", "binary")], 3)
)
def test_both_merge_manifests_of_partitions_of_bytes(
    java_process: JavaProcess, our_writer: Writer, version: int, kind: str
) -> None:
    """Java declares fixed values as Avro's fixed, and stores and expects a length before them."""
    name = f"partitions_of_{kind[:5]}_v{version}"
    merging = {"commit__manifest__min_count_to_merge": "2"}
    columns = [("id!", "int"), ("b", kind)]
    table = our_writer.create(name, columns, partition="b", version=version, **merging)
    rows: dict[int, bytes | None] = {}
    for round_ in range(3):
        for first, write in ((0, _insert), (3, _append)):
            at = 10 * round_ + first
            new = {at: b"\x00\xff\x80\x05\x00", at + 1: bytes([at] * 5), at + 2: None}
            write(java_process, table, new)
            rows |= new
            read = table.table.refresh().scan().to_arrow()
            assert dict(zip(read["id"].to_pylist(), read["b"].to_pylist(), strict=True)) == rows
            hexes = f"SELECT id, hex(b) FROM oracle.db.{name}"
            by_java = dict(java_process.ask("sql", statement=hexes))
            assert by_java == {id: b and b.hex().upper() for id, b in rows.items()}
            found = table.table.scan(f"b = X'{rows[at + 1].hex()}'").to_arrow()
            assert found["id"].to_pylist() == [at + 1]
    snapshot = table.table.current_snapshot()
    assert snapshot is not None
    assert len(read_snapshot_manifests(table.table.io, snapshot)) == 1


def test_java_reads_a_table_by_its_location(java_process: JavaProcess, our_writer: Writer) -> None:
    location = our_writer.directory / "elsewhere" / "t"
    table = _table_at(location)
    table.append(pa.table({"id": [1, 2], "s": ["x", None]}))
    assert java_process.ask("rows_at", location=str(location)) == ['[1,"x"]', "[2,null]"]


def test_pyiceberg_and_we_commit_to_one_catalog_in_turn(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    theirs = SqlCatalog("shared", uri=uri, warehouse=f"file://{tmp_path}/warehouse")
    theirs.create_namespace("db")
    catalog = load_catalog("shared", {"uri": uri, "warehouse": f"file://{tmp_path}/warehouse"})
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "s", STRING)))
    where = catalog.new_table_location(("db", "t"))
    catalog.create(("db", "t"), new_table_updates(schema, location=where))
    ours = load_table("db.t", catalog="shared", properties={"uri": uri})
    ours.append(pa.table({"id": [1, 2], "s": ["a", "b"]}))
    table = theirs.load_table("db.t")
    table.append(pa.table({"id": [3, 4], "s": ["a", "c"]}))
    table.delete("id == 2")
    ours.refresh().append(pa.table({"id": [5], "s": ["d"]}))
    table.refresh()
    table.overwrite(pa.table({"id": [6], "s": ["e"]}), "s == 'a'")
    ours.refresh().delete("id = 5")
    table.refresh()
    expected = [(4, "c"), (6, "e")]
    for read in (ours.refresh().scan().to_arrow(), table.scan().to_arrow()):
        rows = zip(read["id"].to_pylist(), read["s"].to_pylist(), strict=True)
        assert sorted(rows) == expected


def _change_by_key(table: OurTable, rows: dict[int, int], first: int) -> None:
    """Upserts, each of which replaces a row and brings one, and the deletion of the first row."""
    for change in range(first + 1, first + 9):
        new = {20 + change * 7 % 20: change, 100 + change: change}
        changed = [{"id": i, "s": "changed", "v": v} for i, v in new.items()]
        table.table.upsert(table.arrow(changed), keys=["id"])
        rows |= new
    gone = min(rows)
    table.table.delete_keys(pa.table({"id": pa.array([gone], pa.int32())}), keys=["id"])
    del rows[gone]


def _insert(java: JavaProcess, table: OurTable, rows: dict[int, bytes | None]) -> None:
    values = ", ".join(
        f"({i}, {'NULL' if b is None else f'X{b.hex()!r}'})" for i, b in rows.items()
    )
    java.ask("sql", statement=f"INSERT INTO oracle.db.{table.name} VALUES {values}")


def _append(java: JavaProcess, table: OurTable, rows: dict[int, bytes | None]) -> None:
    table.table.refresh().append(table.arrow([{"id": i, "b": b} for i, b in rows.items()]))


def _table_at(location: Path) -> Any:
    """A new table at a location that no catalog knows."""
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "s", STRING)))
    updates = new_table_updates(schema, location=str(location))
    create_at_location(FileIO(), str(location), updates, "t")
    return load_table(location)


def _agree(java: JavaProcess, table: OurTable, rows: dict[int, int], version: int) -> None:
    """Both read the same rows, whose ids and values are `rows`; in version 3 the same lineage."""
    ours = table.table.refresh()
    read = ours.scan().to_arrow()
    assert dict(zip(read["id"].to_pylist(), read["v"].to_pylist(), strict=True)) == rows
    by_java = java.ask("rows", table=table.name)
    problem = difference(canonical_rows(read, table.schema), by_java["generic"], table.name)
    assert problem is None, problem
    assert by_java["spark"] == by_java["generic"]
    if version == 3:
        lineage = ours.scan(columns=_LINEAGE).to_arrow().to_pylist()
        java_lineage = java.ask("lineage", table=table.name)
        expected = [{name: row[name] for name in _LINEAGE} for row in java_lineage]
        assert sorted(lineage, key=_id) == sorted(expected, key=_id)


def _id(row: dict[str, Any]) -> int:
    return int(row["id"])
