"""`Table.add_files`: existing files become a table's, or are refused by name."""

from __future__ import annotations

import datetime as dt
import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from built.api_tables import DAYS, ids_of, new_table, rows
from built.data_files import with_optional_keys
from built.schemas import optional, required
from effort import examples
from hypothesis import given, strategies as st
from strategies.foreign_files import FORMATS, folder_of, write_file

from icebergds import AddedFiles, Table, load_table
from icebergds.errors import (
    AlreadyExistsError,
    CorruptFileError,
    IcebergError,
    InvalidDataError,
    InvalidOptionError,
    MissingFileError,
    UnsupportedFeatureError,
)
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.spec.json.name_mapping import NAME_MAPPING_PROPERTY
from icebergds.spec.schema import Schema
from icebergds.spec.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    MapType,
)

EVENTS = Schema((optional(1, "id", LONG), optional(2, "country", STRING), optional(3, "day", DATE)))
SOME_DAY = dt.date(2026, 1, 1)


_PAIRS = pa.list_(
    pa.field("element", pa.struct([("key", pa.string()), ("value", pa.int32())]), nullable=False)
)


def foreign(*ids: int | None, **columns: Any) -> pa.Table:
    """Rows without field ids."""
    return pa.table({"id": pa.array(ids, pa.int64()), **columns})


def test_rows_of_a_file_are_rows_of_the_table(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    path = write_file(tmp_path / "a.parquet", foreign(1, 2, name=["a", "b"]))
    assert table.add_files([path]) == AddedFiles(1, 1)
    assert table.scan().to_arrow().to_pylist() == [
        {"id": 1, "day": None, "name": "a"},
        {"id": 2, "day": None, "name": "b"},
    ]
    assert [file["file_path"] for file in table.inspect.files().to_pylist()] == [str(path)]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(FORMATS),
            st.one_of(st.none(), st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)),
            st.one_of(st.none(), st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))),
            st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=3),
        ),
        min_size=1,
        max_size=5,
    )
)
@examples(100)
def test_a_partitioned_folder_has_the_rows_of_its_files(files: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        folder, expected = Path(directory) / "source", []
        for at, (ending, country, day, ids) in enumerate(files):
            # Path segments of dots alone are other folders, and only text can be null or empty.
            country = f"c{country}" if country is not None else None
            values = {"country": country, "day": day}
            write_file(folder / folder_of(values) / f"{at}.{ending}", foreign(*ids))
            expected += [{"id": i, **values} for i in ids]
        table = new_table(Path(directory), EVENTS, partition_by="day, country")
        added = table.add_files(folder)
        found = table.scan().to_arrow().to_pylist()
        assert added == AddedFiles(len(files), len({(c, d) for _, c, d, _ in files}))
        assert sorted(map(repr, found)) == sorted(map(repr, expected))
        for country in {row["country"] for row in expected if row["country"]}:
            text = country.replace("\\", "\\\\").replace("'", "\\'")
            in_it = [row for row in expected if row["country"] == country]
            assert table.scan(f"country = '{text}'").to_arrow().num_rows == len(in_it)


_NUMBERS = st.lists(st.one_of(st.none(), st.integers(-(2**40), 2**40)), min_size=1, max_size=4)


@given(st.sampled_from(FORMATS), st.lists(_NUMBERS, min_size=1, max_size=3), st.data())
@examples(100)
def test_filters_find_what_files_have(ending: str, files: list[list[Any]], data: Any) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = new_table(Path(directory), Schema((optional(1, "id", LONG),)))
        for at, ids in enumerate(files):
            write_file(Path(directory) / "source" / f"{at}.{ending}", foreign(*ids))
        table.add_files(Path(directory) / "source")
        every = [i for ids in files for i in ids if i is not None]
        wanted = data.draw(st.sampled_from([*every, 0]))
        assert ids_of(table, filter=f"id = {wanted}") == [i for i in every if i == wanted]
        assert ids_of(table, filter=f"id >= {wanted}") == sorted(i for i in every if i >= wanted)


@pytest.mark.parametrize("ending", ["parquet", "orc"])
def test_footers_give_bounds_and_counts(tmp_path: Path, ending: str) -> None:
    table = new_table(tmp_path)
    write_file(tmp_path / f"a.{ending}", foreign(3, 1, None, name=["b" * 20, "a", None]))
    table.add_files(tmp_path / f"a.{ending}")
    (file,) = table.inspect.files().to_pylist()
    metrics = file["readable_metrics"]
    assert (metrics["id"]["lower_bound"], metrics["id"]["upper_bound"]) == (1, 3)
    assert (metrics["id"]["value_count"], metrics["id"]["null_value_count"]) == (3, 1)
    assert (metrics["name"]["lower_bound"], metrics["name"]["upper_bound"]) == ("a", "b" * 15 + "c")
    assert file["record_count"] == 3


def test_values_beside_nan_are_found(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    # DuckDB leaves out the range of a row group with NaN in it; other row groups have theirs.
    with duckdb.connect() as connection:
        connection.sql(
            "COPY (SELECT i AS id, IF(i = 3, 'nan'::double, i::double) AS number "
            f"FROM range(4096) t(i)) TO '{tmp_path}/a.parquet' "
            "(FORMAT parquet, ROW_GROUP_SIZE 2048)"
        )
    table = new_table(tmp_path, Schema((optional(1, "id", LONG), optional(2, "number", DOUBLE))))
    table.add_files(tmp_path / "a.parquet")
    assert ids_of(table, filter="number = 5") == [5]
    assert ids_of(table, filter="number = 4000") == [4000]


def test_days_come_from_bounds(tmp_path: Path) -> None:
    schema = Schema((optional(1, "id", LONG), optional(2, "ts", TIMESTAMP)))
    table = new_table(tmp_path, schema, partition_by="days(ts), bucket(4, id)")
    times = [dt.datetime(2026, 1, 2, 3), dt.datetime(2026, 1, 2, 23, 59)]
    write_file(tmp_path / "a.orc", foreign(7, 7, ts=times))
    write_file(tmp_path / "b.parquet", foreign(8, 8, ts=times))
    assert table.add_files([tmp_path / "a.orc", tmp_path / "b.parquet"]).added_files_count == 2
    partitions = [file["partition"] for file in table.inspect.files().to_pylist()]
    assert {partition["ts_day"] for partition in partitions} == {dt.date(2026, 1, 2)}
    assert ids_of(table, filter="id = 8 and ts > '2026-01-02 04:00:00'") == [8]


def _two_days() -> pa.Table:
    return foreign(1, 2, day=pa.array([1, 2], pa.int32()))


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (_two_days(), "its rows are of several: 1 to 2"),
        (foreign(1, 2, day=pa.array([1, None], pa.int32())), "nulls and other values"),
        (foreign(1, 2), "put it into a folder day=<value>"),
    ],
)
def test_a_file_of_several_partitions_is_refused(tmp_path: Path, columns: Any, why: str) -> None:
    table = new_table(tmp_path, partition_by="day")
    write_file(tmp_path / "bad.parquet", columns)
    with pytest.raises(InvalidDataError, match=rf"bad\.parquet cannot be added: .*{why}"):
        table.add_files(tmp_path / "bad.parquet")


@pytest.mark.parametrize(
    ("ids", "stored"), [((1, 2), [3, 4]), ((1, 2), [4, 4]), ((1, 2), [3, None])]
)
def test_a_file_that_contradicts_its_folder_is_refused(
    tmp_path: Path, ids: Any, stored: list[int | None]
) -> None:
    table = new_table(tmp_path, partition_by="day")
    path = tmp_path / "day=3" / "bad.parquet"
    write_file(path, foreign(*ids, day=pa.array(stored, pa.int32())))
    with pytest.raises(InvalidDataError, match=r"bad\.parquet .* its path names 3"):
        table.add_files(path)


@pytest.mark.parametrize("ending", ["parquet", "avro"])
@pytest.mark.parametrize("stored", ["x", "y", None, "x" + "y" * 9000])
def test_a_file_without_bounds_is_read_to_see_whether_it_contradicts_its_folder(
    tmp_path: Path, stored: str | None, ending: str
) -> None:
    table = new_table(tmp_path, partition_by="name")
    path = tmp_path / "name=x" / f"a.{ending}"
    columns = foreign(1, 2, name=["x", stored])
    if ending == "avro":
        write_file(path, columns)
    else:
        path.parent.mkdir()
        pq.write_table(columns, path, write_statistics=False)
    if stored == "x":
        table.add_files(path)
        assert ids_of(table) == [1, 2]
        return
    with pytest.raises(InvalidDataError, match=r"its path names x for column 'name', but"):
        table.add_files(path)


def test_timestamps_without_bounds_are_compared_with_the_folder(tmp_path: Path) -> None:
    table = new_table(tmp_path, Schema((optional(1, "t", TIMESTAMP),)), partition_by="t")
    for day in (1, 2):
        path = tmp_path / "t=2024-01-01 00%3A00%3A00" / f"{day}.parquet"
        path.parent.mkdir(exist_ok=True)
        moments = pa.array([dt.datetime(2024, 1, day)], pa.timestamp("us"))
        pq.write_table(pa.table({"t": moments}), path, use_deprecated_int96_timestamps=True)
    folder = tmp_path / "t=2024-01-01 00%3A00%3A00"
    table.add_files(folder / "1.parquet")
    with pytest.raises(InvalidDataError, match=r"2\.parquet cannot be added: its path names 2024"):
        table.add_files(folder / "2.parquet")


@pytest.mark.parametrize(
    ("named", "stored"), [("1.0", math.nan), ("0.0", -0.0), ("-0.0", 0.0), ("NaN", 1.0)]
)
def test_floats_that_a_footer_does_not_tell_are_compared_with_the_folder(
    tmp_path: Path, named: str, stored: float
) -> None:
    table = new_table(
        tmp_path, Schema((optional(1, "id", LONG), optional(2, "f", FLOAT))), partition_by="f"
    )
    for name, value in (("a", float(named)), ("b", stored)):
        column = pa.array([float(named), value], pa.float32())
        write_file(tmp_path / f"f={named}" / f"{name}.parquet", foreign(1, 2, f=column))
    table.add_files(tmp_path / f"f={named}" / "a.parquet")
    with pytest.raises(InvalidDataError, match=r"b\.parquet cannot be added: its path names"):
        table.add_files(tmp_path / f"f={named}" / "b.parquet")


def test_a_file_is_known_in_every_spelling_of_its_path(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    write_file(tmp_path / "in" / "a.parquet", foreign(1))
    table.add_files(f"{tmp_path}//in/./a.parquet")
    for path in ("in/./a.parquet", "in//a.parquet", "./in"):
        for mark in ("", "file:", "file://"):
            with pytest.raises(AlreadyExistsError):
                table.add_files(f"{mark}{tmp_path}/{path}")
    assert ids_of(table) == [1]


@pytest.mark.parametrize("text", ["1.1", "3.4028235E38", "1.5", "-0.1"])
def test_a_folder_names_a_float_by_its_shortest_text(tmp_path: Path, text: str) -> None:
    table = new_table(
        tmp_path, Schema((optional(1, "id", LONG), optional(2, "f", FLOAT))), partition_by="f"
    )
    write_file(tmp_path / f"f={text}" / "a.parquet", foreign(1))
    filtered = {"f": float(text)}
    assert table.add_files(tmp_path / f"f={text}", partition_filter=filtered).added_files_count == 1
    assert table.scan().to_arrow()["f"].to_pylist() == [float(np.float32(text))]


def test_a_number_that_no_float_is_near_to_is_refused(tmp_path: Path) -> None:
    table = new_table(
        tmp_path, Schema((optional(1, "id", LONG), optional(2, "f", FLOAT))), partition_by="f"
    )
    write_file(tmp_path / "f=1e39" / "a.parquet", foreign(1))
    with pytest.raises(InvalidDataError, match="'1e39' is not a value of type float"):
        table.add_files(tmp_path / "f=1e39")


def test_values_that_are_in_a_path_alone_are_not_lost(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    write_file(tmp_path / "day=3" / "bad.parquet", foreign(1))
    with pytest.raises(InvalidDataError, match=r"bad\.parquet .* column 'day' are in its path"):
        table.add_files(tmp_path / "day=3")


def test_a_folder_that_names_no_value_of_the_column_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="day")
    write_file(tmp_path / "day=monday" / "bad.parquet", foreign(1))
    with pytest.raises(InvalidDataError, match=r"bad\.parquet .* names 'monday' .* type int"):
        table.add_files(tmp_path / "day=monday")


def _with_ids(**ids: int) -> pa.Table:
    fields = [
        pa.field(n, pa.int64(), metadata={"PARQUET:field_id": str(i)}) for n, i in ids.items()
    ]
    return pa.table([pa.array([1])] * len(ids), schema=pa.schema(fields))


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (pa.table({"name": ["a"]}), "it lacks the required column 'id'"),
        (foreign(None), "'id' is required, and the file's footer does not say"),
        (pa.table({"id": ["1"]}), "'id' is stored as string, which cannot be read as .* long"),
        (pa.table({"id": [{"a": 1}]}), "'id' is stored as struct, which cannot be read"),
        (foreign(1, day=pa.array([1])), "'day' is stored as int64, .* the table's int"),
        (_with_ids(id=1, other=3), "'other' has the field id 3, that of column 'name'"),
        (_with_ids(id=1, other=9), "'other' has the field id 9, not one of the table's"),
        (_with_ids(id=1).append_column("name", [["a"]]), "'name' has no field id"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_name(
    tmp_path: Path, columns: pa.Table, why: str
) -> None:
    schema = Schema((required(1, "id", LONG), optional(2, "day", INT), optional(3, "name", STRING)))
    table = new_table(tmp_path, schema)
    write_file(tmp_path / "in" / "a.parquet", foreign(1))
    write_file(tmp_path / "in" / "bad.parquet", columns)
    before = table.metadata_location
    with pytest.raises(InvalidDataError, match=rf"in/bad\.parquet cannot be added: .*{why}"):
        table.add_files(tmp_path / "in")
    assert table.refresh().metadata_location == before


def test_a_required_column_needs_no_nulls_in_the_file(tmp_path: Path) -> None:
    table = new_table(tmp_path, Schema((required(1, "id", LONG),)))
    write_file(tmp_path / "a.orc", foreign(1, 2))
    table.add_files(tmp_path / "a.orc")
    assert ids_of(table) == [1, 2]


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("bad.csv", b"id\n1\n", UnsupportedFeatureError),
        ("bad.parquet", b"id\n1\n", CorruptFileError),
        ("bad.orc", b"ORC", CorruptFileError),
    ],
)
def test_other_files_are_refused_by_name(
    tmp_path: Path, name: str, content: bytes, error: type[IcebergError]
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=name):
        new_table(tmp_path).add_files(tmp_path / name)


def test_a_file_without_an_ending_is_known_by_its_bytes(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    write_file(tmp_path / "a.orc", foreign(1)).rename(tmp_path / "000000_0")
    table.add_files(tmp_path / "000000_0")
    assert ids_of(table) == [1]


def test_hidden_files_are_skipped(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    folder = tmp_path / "in"
    for name in ("a.parquet", "_temporary/b.parquet", ".c.parquet", "_SUCCESS.parquet"):
        write_file(folder / name, foreign(1))
    assert table.add_files(folder).added_files_count == 1


def test_a_path_goes_straight_to_its_file(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    write_file(tmp_path / "f" / "a.parquet", foreign(1))
    with pytest.raises(InvalidOptionError, match=r"a\.parquet has '\.\.' in it"):
        table.add_files(f"{tmp_path}/f/../f/a.parquet")
    with pytest.raises(InvalidOptionError, match=r"file_paths: \.\./a\.parquet has '\.\.' in it"):
        table.add_files("../a.parquet")


@pytest.mark.parametrize("missing", ["nowhere", "empty"])
def test_there_must_be_files(tmp_path: Path, missing: str) -> None:
    (tmp_path / "empty").mkdir()
    error = MissingFileError if missing == "nowhere" else InvalidOptionError
    with pytest.raises(error, match=missing):
        new_table(tmp_path).add_files(tmp_path / missing)


def test_files_of_a_table_are_not_added_again(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    path = write_file(tmp_path / "a.parquet", foreign(1))
    table.add_files(path)
    with pytest.raises(AlreadyExistsError, match=r"has 1 of the files to add .*/a\.parquet;"):
        table.add_files([f"file://{path}"])
    table.add_files(path, check_duplicate_files=False)
    assert ids_of(table) == [1, 1]


def test_a_file_is_added_once_however_often_it_is_named(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    path = write_file(tmp_path / "in" / "a.parquet", foreign(1))
    assert table.add_files([path, tmp_path / "in", f"file://{path}"]).added_files_count == 1


def test_a_table_without_a_name_mapping_gets_one_in_the_same_commit(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    before = len(table.metadata.metadata_log)
    table.add_files(write_file(tmp_path / "a.parquet", foreign(1)))
    mapping = json.loads(table.properties[NAME_MAPPING_PROPERTY])
    assert [(field["names"], field["field-id"]) for field in mapping] == [
        (["id"], 1),
        (["day"], 2),
        (["name"], 3),
    ]
    assert len(table.metadata.metadata_log) == before + 1


def test_files_with_ids_need_no_name_mapping(tmp_path: Path) -> None:
    source, table = new_table(tmp_path / "source"), new_table(tmp_path / "target")
    source.append(rows(1, 2))
    table.add_files([file["file_path"] for file in source.inspect.files().to_pylist()])
    assert NAME_MAPPING_PROPERTY not in table.properties
    assert ids_of(table) == [1, 2]


def test_a_name_mapping_finds_columns_under_earlier_names(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.add_files(write_file(tmp_path / "a.parquet", foreign(1, name=["old"])))
    with table.update_schema() as update:
        update.rename_column("name", "title")
    table.add_files(write_file(tmp_path / "b.parquet", foreign(2, name=["also old"])))
    assert table.scan().to_arrow()["title"].to_pylist() == ["also old", "old"]


def test_a_column_that_the_name_mapping_lacks_is_refused(tmp_path: Path) -> None:
    mapping = json.dumps([{"names": ["id"], "field-id": 1}])
    table = new_table(tmp_path, properties={NAME_MAPPING_PROPERTY: mapping})
    write_file(tmp_path / "bad.parquet", foreign(1, name=["a"]))
    with pytest.raises(InvalidDataError, match=r"bad\.parquet .* 'name' is not in .* name mapping"):
        table.add_files(tmp_path / "bad.parquet")


def test_a_partition_filter_takes_only_its_files(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by="day")
    for day in (1, 2):
        write_file(tmp_path / "in" / f"day={day}" / "a.parquet", foreign(day))
    write_file(tmp_path / "in" / "b.parquet", foreign(3, day=pa.array([2], pa.int32())))
    assert table.add_files(tmp_path / "in", partition_filter={"day": "2"}) == AddedFiles(2, 1)
    assert ids_of(table) == [2, 3]
    with pytest.raises(InvalidOptionError, match=r"'days'.*did you mean 'day'"):
        table.add_files(tmp_path / "in", partition_filter={"days": 2})
    with pytest.raises(InvalidOptionError, match="none of the files"):
        table.add_files(tmp_path / "in", partition_filter={"day": 5})


@pytest.mark.parametrize("value", [None, "__HIVE_DEFAULT_PARTITION__"])
def test_a_partition_filter_takes_the_files_of_null(tmp_path: Path, value: str | None) -> None:
    table = new_table(tmp_path, partition_by="day")
    for at, day in enumerate(("1", "__HIVE_DEFAULT_PARTITION__")):
        write_file(tmp_path / "in" / f"day={day}" / "a.parquet", foreign(at))
    table.add_files(tmp_path / "in", partition_filter={"day": value})
    assert ids_of(table) == [1]


def test_a_branch_and_the_summary_are_those_asked_for(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    with table.manage_snapshots() as manage:
        manage.create_branch(table.metadata.current_snapshot_id, "audit")
    path = write_file(tmp_path / "a.parquet", foreign(2))
    table.add_files(path, {"job": "import"}, branch="audit")
    assert (ids_of(table), ids_of(table, branch="audit")) == ([1], [1, 2])
    assert table.metadata.snapshot_by_ref("audit").summary["job"] == "import"  # type: ignore[union-attr]


def test_files_are_added_in_a_transaction(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with table.transaction() as transaction:
        transaction.add_files(write_file(tmp_path / "a.parquet", foreign(1)))
        transaction.append(rows(2))
    assert ids_of(table.refresh()) == [1, 2]


def _race(table: Table, monkeypatch: pytest.MonkeyPatch, other: Callable[[], Any]) -> None:
    """Makes another writer commit just before the next commit of a table object."""
    operations = type(table._current().operations)
    commit, waiting = operations.commit, [other]

    def racing(self: Any, *args: Any) -> Any:
        if waiting:
            waiting.pop()()
        return commit(self, *args)

    monkeypatch.setattr(operations, "commit", racing)


def test_files_are_added_after_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(tmp_path)
    path = write_file(tmp_path / "a.parquet", foreign(1))
    other = load_table(table.location())
    _race(table, monkeypatch, lambda: other.append(rows(2)))
    table.add_files(path)
    assert ids_of(table) == [1, 2]


def test_of_two_that_add_a_file_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path)
    path = write_file(tmp_path / "a.parquet", foreign(1))
    other = load_table(table.location())
    _race(table, monkeypatch, lambda: other.add_files(path))
    with pytest.raises(AlreadyExistsError, match=r"a\.parquet"):
        table.add_files(path)
    assert ids_of(table.refresh()) == [1]


def test_files_of_several_row_groups_have_their_offsets(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    pq.write_table(foreign(*range(100)), tmp_path / "a.parquet", row_group_size=25)
    table.add_files(tmp_path / "a.parquet")
    (file,) = table.inspect.files().to_pylist()
    assert len(file["split_offsets"]) == 4
    assert ids_of(table) == list(range(100))


def test_columns_of_the_schema_are_read_from_parquet_types(tmp_path: Path) -> None:
    table = new_table(tmp_path, DAYS)
    stored = schema_to_arrow(DAYS).remove_metadata()
    small = pa.table({"id": pa.array([1], pa.int32()), "day": pa.array([2], pa.int16())})
    table.add_files(write_file(tmp_path / "a.parquet", small))
    assert table.scan(columns="id,day").to_arrow().to_pylist() == [{"id": 1, "day": 2}]
    assert table.scan().to_arrow().schema.names == stored.names


def test_a_file_of_maps_with_optional_keys_is_added_if_no_key_is_null(tmp_path: Path) -> None:
    table = new_table(
        tmp_path,
        Schema((optional(1, "id", LONG), optional(2, "m", MapType(3, STRING, 4, INT)))),
    )
    paths = []
    for name, keys in {"good": ["a", "b"], "bad": ["a", None]}.items():
        pairs = [None, [], *([{"key": key, "value": 1}] for key in keys)]
        written = write_file(
            tmp_path / f"{name}.parquet", foreign(1, 2, 3, 4, m=pa.array(pairs, _PAIRS))
        )
        paths.append(with_optional_keys(written))
    table.add_files(paths[:1])
    assert table.scan().to_arrow()["m"].to_pylist() == [None, [], [("a", 1)], [("b", 1)]]
    with pytest.raises(InvalidDataError, match=r"'m' of .*bad\.parquet has maps with null keys"):
        table.add_files(paths[1:])


def test_a_duration_is_the_number_that_the_file_stores(tmp_path: Path) -> None:
    table = new_table(tmp_path, Schema((optional(1, "id", LONG), optional(2, "d", LONG))))
    durations = pa.array([5, None], pa.duration("ms"))
    table.add_files([write_file(tmp_path / "a.parquet", foreign(1, 2, d=durations))])
    assert table.scan().to_arrow()["d"].to_pylist() == [5, None]
    assert table.scan("d = 5").to_arrow()["id"].to_pylist() == [1]
