"""What finding the rows of a few keys reads, and that it finds all of them."""

from __future__ import annotations

import datetime as dt
import random
import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from built.schemas import optional
from effort import rounds

from icebergds import RowCounts, Schema, Table, load_catalog, load_table
from icebergds.errors import InvalidOptionError
from icebergds.formats.parquet import bloom_filter, page_pruning
from icebergds.io.fileio import FileIO
from icebergds.io.ranged_file import Open
from icebergds.spec.types import INT, LONG, UUID

LIMIT = "write.upsert.resolve-limit-bytes"
_BLOOM = {"write.parquet.bloom-filter-enabled.column.id": "true"}


def new_table(root: Path, columns: str | Schema, **properties: str) -> Table:
    given = {"format-version": "3", "write.upsert.mode": "positions", **properties}
    return load_catalog("c", warehouse=str(root)).create_table("db.t", columns, properties=given)


class Reads:
    """How many bytes of which data files were read, by their names."""

    def __init__(self) -> None:
        self.nbytes: defaultdict[str, int] = defaultdict(int)

    @property
    def of_columns(self) -> dict[str, int]:
        """Without files of which only the end was read, and single blocks."""
        return {name: nbytes for name, nbytes in self.nbytes.items() if nbytes > 70_000}


class _Recorded:
    """An open file whose reads are counted."""

    def __init__(self, file: pa.NativeFile, count: Callable[[int], None]) -> None:
        self._file, self._count = file, count

    def read(self, nbytes: int = -1) -> bytes:
        data = self._file.read(None if nbytes < 0 else nbytes)
        self._count(len(data))
        return bytes(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def recorded(table: Table, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reads]:
    """Counts what the block reads of the data files that the table has before it."""
    reads, plain = Reads(), FileIO._open
    files = {path.name for path in Path(table.location(), "data").rglob("*.*")}

    def opened(io: FileIO, wanted: Open) -> pa.NativeFile:
        file, name = plain(io, wanted), Path(wanted.location).name
        if name not in files or name.endswith(".puffin"):
            return file
        reads.nbytes[name] += 0

        def count(nbytes: int) -> None:
            reads.nbytes[name] += nbytes

        return pa.PythonFile(_Recorded(file, count), "r")

    with monkeypatch.context() as patch:
        patch.setattr(FileIO, "_open", opened)
        yield reads


def numbers(count: int, seed: int = 3, is_sorted: bool = True) -> pa.Array:
    """Different numbers that do not compress well."""
    drawn = np.unique(np.random.default_rng(seed).integers(0, 2**60, count + 1000))
    drawn = np.random.default_rng(seed).permutation(drawn)[:count]
    return pa.array(np.sort(drawn) if is_sorted else drawn)


def changed(ids: list[int]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "value": pa.nulls(len(ids), pa.int64())})


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_only_files_that_may_have_a_key_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_format: str
) -> None:
    """The range of the keys covers them all."""
    columns = "id bigint, value bigint"
    table = new_table(tmp_path, columns, **{"write.format.default": file_format})
    for at in range(8):
        ids = pa.array(range(10 * at, 10 * at + 10), pa.int64())
        table.append(pa.table({"id": ids, "value": ids}))
    with recorded(table, monkeypatch) as reads:
        assert table.upsert(changed([3, 77]), "id") == RowCounts(updated=2)
    assert len(reads.nbytes) == 2
    with recorded(table, monkeypatch) as reads:
        assert table.delete_keys(changed([-1, 1000]), "id") == RowCounts()
    assert not reads.nbytes


def test_only_pages_that_may_have_a_key_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path, "id bigint, value bigint")
    ids = numbers(400_000)
    table.append(pa.table({"id": ids, "value": ids}))
    some = ids.take(pa.array([5, 200_000, 399_999])).to_pylist()
    with recorded(table, monkeypatch) as reads:
        assert table.upsert(changed(some), "id") == RowCounts(updated=3)
    assert sum(reads.nbytes.values()) < 700_000
    many = ids.take(pa.array(np.arange(7, 300_000, 290))).to_pylist()
    with recorded(table, monkeypatch) as reads:
        assert table.delete_keys(changed(many), "id") == RowCounts(deleted=len(many))
    assert sum(reads.nbytes.values()) > 2_000_000


def test_the_limit_is_of_the_pages_that_may_have_a_key(tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, value bigint")
    ids = numbers(400_000)
    table.append(pa.table({"id": ids, "value": ids}))
    some = ids.take(pa.array([5, 200_000, 399_999])).to_pylist()
    limit = {LIMIT: "1500000"}
    assert table.upsert(changed(some), "id", options=limit) == RowCounts(updated=3)
    many = ids.take(pa.array(np.arange(7, 300_000, 290))).to_pylist()
    with pytest.raises(InvalidOptionError, match=r"would read 3.2 MB .*, more than"):
        table.upsert(changed(many), "id", options=limit)
    # The range of the keys covers all pages, but none of the other keys is in a page.
    few = [0, *some[:1], 2**62]
    assert table.upsert(changed(few), "id", options=limit) == RowCounts(inserted=2, updated=1)
    head = load_table(table.location()).current_snapshot()
    assert head is not None
    told = head.summary["icebergds.keys-deleted-by"]
    assert re.match(r"positions: \d+\.\d KB of manifests and the keys of 2 data files", told)


@pytest.mark.parametrize("count", [900, 3_000])
def test_the_limit_is_of_what_long_keys_really_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    table = new_table(tmp_path, "id string, value bigint")
    drawn = np.random.default_rng(4).integers(0, 256, (30_000, 50), np.uint8)
    ids = pa.array([each.tobytes().hex() for each in drawn])
    for start in (0, 10_000, 20_000):
        part = ids.slice(start, 10_000)
        table.append(pa.table({"id": part, "value": pa.array(range(10_000), pa.int64())}))
    some = ids.take(pa.array(np.arange(0, 30_000, 30_000 // count)))
    given = pa.table({"id": some, "value": pa.nulls(len(some), pa.int64())})
    # As if they took 16 bytes each, they would be 480 kB.
    with pytest.raises(InvalidOptionError, match="more than") as raised:
        table.upsert(given, "id", options={LIMIT: "600000"})
    found = re.search(r"would read (\d\.\d) MB of manifests and the keys of 3", str(raised.value))
    assert found is not None
    with recorded(table, monkeypatch) as reads:
        table.upsert(given, "id")
    really = sum(reads.nbytes.values()) / 1e6
    assert 0.8 * float(found[1]) < really < 1.3 * float(found[1])


def test_row_groups_without_a_key_by_their_bloom_filters_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path, "id bigint, value bigint", **_BLOOM)
    parts = [numbers(60_000, seed, is_sorted=False) for seed in range(4)]
    for ids in parts:
        table.append(pa.table({"id": ids, "value": ids}))
    with recorded(table, monkeypatch) as reads:
        counts = table.upsert(changed([parts[2][7].as_py(), parts[0][9].as_py() + 1]), "id")
        assert counts == RowCounts(inserted=1, updated=1)
    assert len(reads.nbytes) == 4
    assert len(reads.of_columns) == 1


# All rows


_VALUES: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "int": (pa.int32(), lambda at: at * 7 - 50),
    "bigint": (pa.int64(), lambda at: at * 2**40 - 2**42),
    "string": (pa.string(), lambda at: "long text " * 3 + "äz€🙂"[at % 4] * (at // 4)),
    "binary": (pa.binary(), lambda at: b"\xff" * 18 + bytes([at, 255 - at])),
    "uuid": (pa.binary(16), lambda at: uuid.UUID(int=at << 122 | at).bytes),
    "decimal(20,2)": (pa.decimal128(20, 2), lambda at: Decimal(at * 31 - 99).scaleb(-2)),
    "date": (pa.date32(), lambda at: dt.date(1969, 12, 20) + dt.timedelta(at)),
    "timestamp_ntz": (
        pa.timestamp("us"),
        lambda at: dt.datetime(1969, 12, 31) + dt.timedelta(0, 0, at),
    ),
    "boolean": (pa.bool_(), lambda at: bool(at % 2)),
}


_SCHEMAS: dict[str, str | Schema] = {
    kind: f"id {kind}, other int, row bigint" for kind in _VALUES
} | {"uuid": Schema((optional(1, "id", UUID), optional(2, "other", INT), optional(3, "row", LONG)))}


@pytest.mark.parametrize("kind", _VALUES)
def test_rows_are_those_of_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: random.Random, kind: str
) -> None:
    """Keys of one column, and of two, in files with pages and Bloom filters of a few rows."""
    monkeypatch.setattr(bloom_filter, "_MIN_BYTES", 0)
    monkeypatch.setattr(page_pruning, "_MIN_BYTES", 0)
    monkeypatch.setattr(page_pruning, "_MIN_GAP", 1)
    stored, value = _VALUES[kind]
    schema = pa.schema({"id": stored, "other": pa.int32(), "row": pa.int64()})
    more = {**_BLOOM, "write.parquet.page-row-limit": "5"}
    for number in range(rounds("ICEBERGDS_KEYED_HISTORIES", pull=2, nightly=40)):
        table = new_table(tmp_path / str(number), _SCHEMAS[kind], **more)
        model: list[tuple[Any, ...]] = []
        for step in range(rng.randrange(3, 8)):
            keys = rng.choice([["id"], ["id", "other"], ["other"]])
            drawn = {
                (-1 if rng.random() < 0.1 else rng.randrange(60), rng.randrange(3))
                for _ in range(rng.choice([1, 3, 40]))
            }
            order = sorted(drawn) if rng.random() < 0.5 else rng.sample(sorted(drawn), len(drawn))
            rows = [
                (None if key < 0 else value(key), other, 1000 * step + at)
                for at, (key, other) in enumerate(order)
            ]
            if rng.random() < 0.3:
                model += rows
                table.append(_arrow(schema, rows))
                continue
            at = [schema.names.index(name) for name in keys]
            last = {tuple(row[i] for i in at): row for row in rows}
            gone = [row for row in model if tuple(row[i] for i in at) in last]
            model = [row for row in model if tuple(row[i] for i in at) not in last]
            if rng.random() < 0.7:
                model += last.values()
                mode = rng.choice(["positions", "positions", "equality-deletes"])
                new = _arrow(schema, list(last.values()))
                table.upsert(new, keys, options={"write.upsert.mode": mode})
                table.convert_equality_deletes()
            else:
                assert table.delete_keys(_arrow(schema, rows), keys).deleted == len(gone)
            found = load_table(table.location()).scan().to_arrow().to_pylist()
            assert sorted((tuple(row.values()) for row in found), key=repr) == sorted(
                model, key=repr
            )


def _arrow(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
