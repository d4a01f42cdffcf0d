"""Rows of pandas and of any library with Arrow streams are written, and scans are such streams."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from built.api_tables import ids_of, new_table, rows
from built.contents import data_files

from icebergds import Table
from icebergds.errors import InvalidDataError, InvalidOptionError, MissingFileError
from icebergds.spec.schema import Schema
from icebergds.spec.types import BINARY, LONG, STRING, ListType, NestedField, StructType

# Before, a stream of its own views crashes pyarrow.
_VIEWS = int(pa.__version__.partition(".")[0]) >= 25


@dataclass(frozen=True)
class Stream:
    """Rows of a library of which only the protocol is known; like polars, it has views."""

    table: pa.Table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        types = {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()} if _VIEWS else {}
        fields = [field.with_type(types.get(field.type, field.type)) for field in self.table.schema]
        reader = self.table.cast(pa.schema(fields)).to_reader()
        return reader.__arrow_c_stream__(requested_schema)


def relation(table: pa.Table) -> duckdb.DuckDBPyRelation:
    return duckdb.from_arrow(table)


LIBRARIES: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "duckdb": relation,
    "stream": Stream,
    "reader": lambda table: table.to_reader(),
}
VERBS: dict[str, Callable[[Table, Any], Any]] = {
    "append": lambda table, given: table.append(given),
    "overwrite": lambda table, given: table.overwrite(given, "id >= 2"),
    "dynamic": lambda table, given: table.dynamic_partition_overwrite(given),
    "upsert": lambda table, given: table.upsert(given, "id"),
    "transaction": lambda table, given: _in_transaction(table, given),
}
LEFT = {
    "append": [1, 2, 2, 3],
    "overwrite": [1, 2, 3],
    "dynamic": [2, 3],
    "upsert": [1, 2, 3],
    "transaction": [1, 2, 2, 3],
}


def _in_transaction(table: Table, given: Any) -> None:
    with table.transaction() as transaction:
        transaction.append(given)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_verb_takes_rows_of_every_library(tmp_path: Path, library: str, verb: str) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.append(rows(2))
    VERBS[verb](table, LIBRARIES[library](rows(2, 3)))
    assert ids_of(table.refresh()) == LEFT[verb]


@pytest.mark.parametrize("library", LIBRARIES)
def test_keys_and_changelogs_are_of_every_library(tmp_path: Path, library: str) -> None:
    table, of = new_table(tmp_path), LIBRARIES[library]
    table.append(rows(1, 2, 3))
    table.delete_keys(of(pa.table({"id": pa.array([1], pa.int32())})), "id")
    changes = rows(2, 4).append_column("kind", pa.array(["-D", "+I"]))
    table.delta(of(changes), "kind", "id")
    assert ids_of(table) == [3, 4]
    changes = rows(3, 5).append_column("kind", pa.array(["-D", "+I"]).dictionary_encode())
    table.delta(of(changes), "kind", "id")
    assert ids_of(table) == [4, 5]


def test_rows_with_views_inside_are_changed_by_key(tmp_path: Path) -> None:
    texts = ListType(3, StructType((NestedField(4, "x", STRING, False),)), False)
    schema = Schema((NestedField(1, "id", STRING, True), NestedField(2, "texts", texts, False)))
    table = new_table(tmp_path, schema)
    viewed = pa.list_(pa.struct([("x", pa.string_view())]))
    changes = {
        "id": pa.array(["a", "b", "c"], pa.string_view()),
        "texts": pa.array([[{"x": "1"}], None, [{"x": "3"}]], viewed),
        "kind": pa.array(["+I", "-D", "+I"], pa.string_view()),
    }
    table.delta(pa.table(changes), "kind", "id")
    assert dict(zip(*table.scan().to_arrow().to_pydict().values(), strict=True)) == {
        "a": [{"x": "1"}],
        "c": [{"x": "3"}],
    }


def test_categories_of_views_are_written_as_their_values(tmp_path: Path) -> None:
    fields = [("s", STRING), ("b", BINARY)]
    nested = [
        ("in_struct", StructType((NestedField(5, "x", STRING, False),))),
        ("in_list", ListType(6, STRING, False)),
    ]
    schema = Schema(
        tuple(
            NestedField(number, name, kind, False)
            for number, (name, kind) in enumerate(fields + nested, start=1)
        )
    )
    codes = pa.array([1, None, 0], pa.uint32())
    texts = pa.DictionaryArray.from_arrays(codes, pa.array(["x", "y"], pa.string_view()))
    parts = pa.DictionaryArray.from_arrays(codes, pa.array([b"x", b"y"], pa.binary_view()))
    given = {
        "s": texts,
        "b": parts,
        "in_struct": pa.StructArray.from_arrays([texts], ["x"]),
        "in_list": pa.ListArray.from_arrays([0, 1, 3, 3], texts),
    }
    table = new_table(tmp_path, schema)
    table.append(pa.table(given))
    assert table.scan().to_arrow().to_pydict() == {
        "s": ["y", None, "x"],
        "b": [b"y", None, b"x"],
        "in_struct": [{"x": "y"}, {"x": None}, {"x": "x"}],
        "in_list": [["y"], [None, "x"], []],
    }


IDS = Schema((NestedField(1, "id", LONG, False), NestedField(2, "n", LONG, False)))


def of_ids(table: Table) -> list[tuple[int, int]]:
    return sorted((row["id"], row["n"]) for row in table.scan().to_arrow().to_pylist())


def test_an_index_with_a_name_is_a_column_and_one_without_is_not(tmp_path: Path) -> None:
    table = new_table(tmp_path, IDS)
    frame = pd.DataFrame({"id": [7, 8, 7], "n": [1, 2, 3]})
    table.append(frame[frame["n"] > 1])
    table.append(frame.groupby("id").sum())
    table.append(pd.DataFrame({"n": [5]}, pd.MultiIndex.from_tuples([(9, 0)], names=["id", None])))
    assert of_ids(table) == [(7, 3), (7, 4), (8, 2), (8, 2), (9, 5)]


def test_missing_values_of_pandas_are_null(tmp_path: Path) -> None:
    table = new_table(tmp_path, IDS)
    table.append(pd.DataFrame({"id": [1, None], "n": [float("nan"), 2]}))
    found = table.scan().to_arrow().to_pylist()
    assert found == [{"id": 1, "n": None}, {"id": None, "n": 2}]


def test_values_without_an_arrow_type_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path, IDS)
    with pytest.raises(InvalidDataError, match=r"t: rows of type pandas.*Could not convert 'x'"):
        table.append(pd.DataFrame({"id": [1, "x"]}))
    with pytest.raises(InvalidDataError, match=r"rows of type pyarrow\.lib\.ChunkedArray"):
        table.append(pa.chunked_array([[1]]))
    assert not table.snapshots()


def test_other_objects_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path, IDS)
    with pytest.raises(InvalidOptionError, match=r"rows of type builtins\.dict cannot be written"):
        table.append({"id": [1]})  # type: ignore[arg-type]
    assert not table.snapshots()


def test_a_scan_is_a_stream(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1, 2))
    table.append(rows(3))
    scan = table.scan("id > 1", ["id"])
    assert pa.table(scan).schema == scan.to_arrow().schema
    assert sorted(pa.table(scan)["id"].to_pylist()) == [2, 3]
    assert sorted(duckdb.from_arrow(scan).fetchall()) == [(2,), (3,)]
    wider = pa.schema([pa.field("id", pa.int64())])
    assert pa.RecordBatchReader.from_stream(scan, wider).schema.types == [pa.int64()]


def test_a_stream_reads_a_file_once_it_is_due(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in range(3):
        table.append(rows(number))
    files = data_files(table.location())
    reader = pa.RecordBatchReader.from_stream(table.scan())
    reader.read_next_batch()
    for file in files:
        file.unlink()
    with pytest.raises(pa.ArrowInvalid, match="no such file"):
        reader.read_all()


def test_the_rows_of_a_scan_are_appended_without_spark(tmp_path: Path) -> None:
    source, table = new_table(tmp_path / "source"), new_table(tmp_path / "copy")
    source.append(rows(1, 2))
    table.append(source.scan("id = 2"))
    assert ids_of(table) == [2]
    for file in data_files(source.location()):
        file.unlink()
    with pytest.raises(MissingFileError, match="no such file"):
        table.append(source.scan())
    assert len(table.refresh().snapshots()) == 1


def test_neither_pandas_nor_spark_is_needed(tmp_path: Path) -> None:
    new_table(tmp_path).append(rows(1))
    absent = tmp_path / "absent" / "pandas.py"
    absent.parent.mkdir()
    absent.write_text("raise ImportError('pandas is not installed')")
    program = (
        "import sys\n"
        f"sys.path.insert(0, {str(absent.parent)!r})\n"
        "import icebergds\n"
        f"table = icebergds.load_table({str(tmp_path / 'db' / 't')!r})\n"
        "print(table.append(table.scan()).inserted, 'pyspark' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("1 False", "")
