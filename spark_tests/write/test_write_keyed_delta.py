from __future__ import annotations

import pickle
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from built.delta_tables import BY_DATA, BY_ID, UNPARTITIONED, DeltaTable
from built.files import table_in
from built.write_plans import files_under
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import (
    InvalidDataError,
    InvalidOptionError,
    StorageError,
    UnsupportedFeatureError,
)
from icebergds.formats.arrow.types import schema_to_arrow
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.sort import NullOrder, SortDirection, SortField, SortOrder
from icebergds.spec.transforms import IdentityTransform
from icebergds.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    NestedField,
    StructType,
)
from icebergds.spec.updates.table_updates import AddPartitionSpec
from icebergds.write.changes import key_log
from icebergds.write.changes.keyed_delta import plan_keyed_delta
from icebergds.write.rows.fanout import FanoutSettings

VERSIONS = pytest.mark.parametrize("version", [2, 3])


def _of(files: Sequence[DataFile], content: FileContent) -> list[DataFile]:
    return [file for file in files if file.content is content]


def _keys(files: Sequence[DataFile]) -> list[dict[str, Any]]:
    deletes = _of(files, FileContent.EQUALITY_DELETES)
    return [row for file in deletes for row in table_in(file).to_pylist()]


def _upserted(location: Path, version: int = 2, **more: Any) -> DeltaTable:
    table = DeltaTable(location, version=version, **more)
    table.append((1, "a"), (2, "b"), (3, "c"))
    return table


# Upserts


@VERSIONS
def test_an_upsert_replaces_and_adds_rows(tmp_path: Path, version: int) -> None:
    table = _upserted(tmp_path, version)
    delta = table.keyed("upsert", [table.batch((2, "B"), (4, "D"))])
    assert table.rows() == [(1, "a"), (2, "B"), (3, "c"), (4, "D")]
    assert delta.counts == {"upserted": 2}
    assert _of(delta.deletes, FileContent.POSITION_DELETES) == []


@VERSIONS
def test_the_last_row_of_a_key_counts(tmp_path: Path, version: int) -> None:
    table = _upserted(tmp_path, version)
    batches = [table.batch((2, "x"), (4, "x"), (2, "y")), table.batch((4, "z"), (5, "e"))]
    delta = table.keyed("upsert", batches)
    assert table.rows() == [(1, "a"), (2, "y"), (3, "c"), (4, "z"), (5, "e")]
    assert delta.counts == {"upserted": 3}
    (positions,) = _of(delta.deletes, FileContent.POSITION_DELETES)
    assert positions.referenced_data_file == delta.files[0].file_path
    assert positions.record_count == 2
    assert positions.is_deletion_vector == (version == 3)


def test_each_key_is_deleted_once(tmp_path: Path) -> None:
    table = _upserted(tmp_path)
    delta = table.keyed("upsert", [table.batch((2, "x"), (4, "x")), table.batch((2, "y"))])
    assert sorted(row["id"] for row in _keys(delta.deletes)) == [2, 4]


def test_equality_deletes_are_described_as_the_format_wants(tmp_path: Path) -> None:
    table = _upserted(tmp_path)
    delta = table.keyed("upsert", [table.batch((2, "x"))])
    (file,) = delta.deletes
    assert file.content is FileContent.EQUALITY_DELETES
    assert (file.equality_ids, file.sort_order_id, file.record_count) == ((1,), None, 1)
    assert file.lower_bounds[1] == file.upper_bounds[1] == (2).to_bytes(8, "little")
    assert file.file_path.endswith("-deletes.parquet")
    (field,) = table_in(file).schema
    assert (field.name, field.metadata[b"PARQUET:field_id"]) == ("id", b"1")


@pytest.mark.parametrize("file_format", [FileFormat.AVRO, FileFormat.ORC])
def test_deletes_of_other_formats(tmp_path: Path, file_format: FileFormat) -> None:
    table = _upserted(tmp_path)
    batch = table.batch((2, "x"), (2, "y"))
    delta = table.keyed("upsert", [batch], delete_format=file_format)
    assert {Path(file.file_path).suffix for file in delta.deletes} == {f".{file_format}"}
    assert table.rows() == [(1, "a"), (2, "y"), (3, "c")]


def test_keys_of_several_columns_in_the_order_they_are_given(tmp_path: Path) -> None:
    table = _upserted(tmp_path)
    delta = table.keyed("upsert", [table.batch((2, "b"), (2, "x"))], keys=(2, 1))
    assert _of(delta.deletes, FileContent.EQUALITY_DELETES)[0].equality_ids == (2, 1)
    assert table.rows() == [(1, "a"), (2, "b"), (2, "x"), (3, "c")]


@VERSIONS
def test_nulls_are_one_key(tmp_path: Path, version: int) -> None:
    table = _upserted(tmp_path, version)
    table.append((None, "old"), (None, "older"))
    table.keyed("upsert", [table.batch((None, "x"), (None, "y"))])
    assert table.rows() == [(1, "a"), (2, "b"), (3, "c"), (None, "y")]


def test_columns_come_in_any_order_and_case(tmp_path: Path) -> None:
    table = _upserted(tmp_path)
    batch = pa.RecordBatch.from_pydict({"DATA": ["x"], "Id": pa.array([2], pa.int32())})
    table.keyed("upsert", [batch])
    assert table.rows() == [(1, "a"), (2, "x"), (3, "c")]


# Where rows land


@VERSIONS
def test_rows_that_are_sorted_when_written_are_still_found(tmp_path: Path, version: int) -> None:
    by_data = SortField((2,), IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST)
    table = _upserted(tmp_path, version)
    rows = [(i % 50, f"{i * 7919 % 200:03}") for i in range(200)]
    table.keyed("upsert", [table.batch(*rows)], sort_order=SortOrder(1, (by_data,)), sort=True)
    assert dict(table.rows()) == {**dict(rows)}
    assert len(table.rows()) == 50


@VERSIONS
def test_rows_in_many_files_are_still_found(tmp_path: Path, version: int) -> None:
    table = DeltaTable(tmp_path, version=version, spec=BY_ID)
    rows = [(i * 31 % 4_000, "x" * 50 + str(i)) for i in range(12_000)]
    batches = [table.batch(*rows[start : start + 1000]) for start in range(0, len(rows), 1000)]
    fanout = FanoutSettings(max_open_files=2, max_buffered_bytes=200_000)
    delta = table.keyed("upsert", batches, target_file_size=50_000, fanout=fanout)
    assert len(delta.files) > 4
    assert dict(table.rows()) == dict(rows)
    assert len(table.rows()) == 4_000


@VERSIONS
def test_rows_that_a_file_took_in_pieces_are_still_found(tmp_path: Path, version: int) -> None:
    table = DeltaTable(tmp_path, version=version)
    rows = [(i % 400, f"{i}" + "x" * 1000) for i in range(600)]
    delta = table.keyed("upsert", [table.batch(*rows)], target_file_size=1_000_000)
    assert len(delta.files) == 1
    assert dict(table.rows()) == dict(rows)
    assert len(table.rows()) == 400


@VERSIONS
@pytest.mark.parametrize("limit", [1, 40, 1350])
def test_keys_beyond_the_limit_go_to_temporary_files(
    tmp_path: Path, version: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    spilled = []
    write = key_log._Spill.write

    def counted(self: Any, table: pa.Table, hashes: Any) -> None:
        spilled.append(table.num_rows)
        write(self, table, hashes)

    monkeypatch.setattr(key_log._Spill, "write", counted)
    table = DeltaTable(tmp_path / "t", version=version, spec=BY_ID)
    table.append(*((i, "old") for i in range(0, 3_000, 2)))
    rows = [(i * 37 % 2_000, str(i)) for i in range(6_000)]
    batches = [table.batch(*rows[start : start + 100]) for start in range(0, len(rows), 100)]
    delta = table.keyed("upsert", batches, key_limit=limit)
    assert spilled
    assert delta.counts == {"upserted": 2_000}
    assert sorted(row["id"] for row in _keys(delta.deletes)) == list(range(2_000))
    expected = {**dict.fromkeys(range(0, 3000, 2), "old"), **dict(rows)}
    assert dict(table.rows()) == expected
    assert len(table.rows()) == len(expected)
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize("limit", [1, 40])
def test_temporary_files_that_cannot_be_written_leave_no_files(
    tmp_path: Path, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = DeltaTable(tmp_path / "t", version=2)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "removed"))
    batches = [table.batch(*((i * 7 % 100, "new") for i in range(100)))] * 2
    with pytest.raises(StorageError, match=r"temporary files in .*removed"):
        table.keyed("upsert", batches, key_limit=limit)
    assert table.rows() == []


def test_few_keys_stay_in_memory_however_often_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_log._Spill, "write", None)
    table = DeltaTable(tmp_path, version=2)
    batches = [table.batch(*((i % 10, str(n)) for i in range(50))) for n in range(20)]
    table.keyed("upsert", batches, key_limit=100)
    assert table.rows() == [(i, "19") for i in range(10)]


# Partitions


def test_deletes_are_in_the_partition_of_the_key(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path, version=2, spec=BY_ID)
    table.append(*((i, "a") for i in range(9)))
    delta = table.keyed("upsert", [table.batch(*((i, "b") for i in range(12)))])
    deletes = _of(delta.deletes, FileContent.EQUALITY_DELETES)
    assert {file.partition for file in deletes} == {(0,), (1,), (2,)}
    for file in deletes:
        assert f"id_bucket={file.partition[0]}/" in file.file_path
    assert table.rows() == sorted(((i, "b") for i in range(12)), key=repr)


def test_keys_that_move_between_partitions_are_deleted_everywhere(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path, version=2, spec=BY_DATA)
    table.table.change(AddPartitionSpec(PartitionSpec(1)))
    table.append((1, "a"), (2, "b"))
    everywhere = table.table.metadata.specs_by_id[1]
    delta = table.keyed(
        "upsert", [table.batch((1, "z"), (2, "a"), (2, "c"))], delete_spec=everywhere
    )
    assert table.rows() == [(1, "z"), (2, "c")]
    assert _of(delta.deletes, FileContent.EQUALITY_DELETES)[0].spec_id == 1
    assert {file.spec_id for file in _of(delta.deletes, FileContent.POSITION_DELETES)} == {0}


def test_partitions_of_other_columns_than_keys_are_refused_for_deletes(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path, version=2, spec=BY_DATA)
    with pytest.raises(InvalidOptionError, match="partitioned by 'data'"):
        table.keyed("upsert", [table.batch((1, "a"))])


# Deletes


@VERSIONS
def test_rows_of_keys_are_deleted(tmp_path: Path, version: int) -> None:
    table = _upserted(tmp_path, version)
    delta = table.keyed("delete", [pa.RecordBatch.from_pydict({"id": [1, 3, 3, 9]})])
    assert table.rows() == [(2, "b")]
    assert delta.files == ()
    assert delta.counts == {"deleted": 3}


def test_a_delete_needs_the_keys_alone_and_ignores_the_rest(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "data", STRING, required=True)))
    table = _upserted(tmp_path, schema=schema)
    table.keyed("delete", [pa.RecordBatch.from_pydict({"id": [1], "other": [7]})])
    assert table.rows() == [(2, "b"), (3, "c")]


def test_no_rows_make_no_files(tmp_path: Path) -> None:
    table = _upserted(tmp_path)
    before = files_under(tmp_path / "data")
    delta = table.keyed("upsert", [], [])
    assert (delta.files, delta.deletes, delta.counts) == ((), (), {"upserted": 0})
    assert files_under(tmp_path / "data") == before


# Streams of changes


@VERSIONS
def test_a_stream_of_changes(tmp_path: Path, version: int) -> None:
    table = _upserted(tmp_path, version)
    kinds = {"kind": ["+I", "-U", "+U", "-D", "+I", "-D", "+I"]}
    rows = [(4, "d"), (2, "b"), (2, "B"), (3, "c"), (5, "e"), (5, "e"), (6, "f")]
    delta = table.keyed("delta", [table.batch(*rows, extra=kinds)], kinds="kind")
    assert table.rows() == [(1, "a"), (2, "B"), (4, "d"), (6, "f")]
    # Of keys: that of 5 is deleted, though its row was of the same stream.
    assert delta.counts == {"inserted": 2, "upserted": 1, "deleted": 2}


def test_inserts_are_trusted_to_be_new(tmp_path: Path) -> None:
    table = _upserted(tmp_path)
    kinds = {"kind": ["+I", "+I", "+U"]}
    batch = table.batch((4, "d"), (5, "e"), (2, "B"), extra=kinds)
    delta = table.keyed("delta", [batch], kinds="kind")
    assert [row["id"] for row in _keys(delta.deletes)] == [2]


def test_inserts_alone_make_no_delete_file(tmp_path: Path) -> None:
    table = _upserted(tmp_path)
    batch = table.batch((4, "d"), (5, "e"), extra={"kind": ["+I", "i"]})
    assert table.keyed("delta", [batch], kinds="kind").deletes == ()


def test_a_row_that_is_deleted_after_it_was_inserted_is_not_there(tmp_path: Path) -> None:
    table = _upserted(tmp_path)
    first = table.batch((4, "d"), extra={"kind": ["+I"]})
    second = table.batch((4, None), extra={"kind": ["-D"]})
    table.keyed("delta", [first, second], kinds="kind")
    assert table.rows() == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.parametrize(
    ("delete", "before", "after"),
    [
        ("-D", "-U", "+U"),
        ("d", "ub", "UA"),
        ("Delete", "UPDATE_BEFORE", "update_after"),
        ("delete", "update_preimage", "update_postimage"),
    ],
)
def test_the_words_of_row_kinds(tmp_path: Path, delete: str, before: str, after: str) -> None:
    table = _upserted(tmp_path)
    kinds = {"KIND": [delete, before, after]}
    table.keyed("delta", [table.batch((1, "a"), (2, "b"), (2, "B"), extra=kinds)], kinds="kind")
    assert table.rows() == [(2, "B"), (3, "c")]


def test_deletes_in_a_stream_may_lack_required_columns(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "data", STRING, required=True)))
    table = _upserted(tmp_path, schema=schema)
    columns = {"id": [1, 4], "data": [None, "d"], "kind": ["-D", "+I"]}
    table.keyed("delta", [pa.RecordBatch.from_pydict(columns)], kinds="kind")
    assert table.rows() == [(2, "b"), (3, "c"), (4, "d")]


@pytest.mark.parametrize(("kind", "named"), [("upsert", "'upsert'"), (None, "null")])
def test_an_unknown_row_kind_is_refused_by_name(
    tmp_path: Path, kind: str | None, named: str
) -> None:
    table = _upserted(tmp_path)
    before = files_under(tmp_path)
    batches = [
        table.batch((4, "d"), extra={"kind": ["+I"]}),
        table.batch((5, "d"), extra={"kind": pa.array([kind], pa.string())}),
    ]
    with pytest.raises(InvalidDataError, match=f"'kind' holds {named}"):
        table.keyed("delta", [*batches], kinds="kind")
    assert files_under(tmp_path) == before


# Types of keys


@pytest.mark.parametrize(
    ("field_type", "values"),
    [
        (BOOLEAN, [True, False]),
        (INT, [1, -1]),
        (DATE, [0, -40_000]),
        (TIME, [0, 86_399_999_999]),
        (TIMESTAMP, [0, -1]),
        (TIMESTAMPTZ, [0, 2**52]),
        (STRING, ["", "ä" * 200]),
        (BINARY, [b"", b"\x00"]),
        (UUID, [b"\x00" * 16, b"\xff" * 16]),
        (FixedType(3), [b"abc", b"abd"]),
        (DecimalType(9, 2), ["1.00", "1.01"]),
        (DecimalType(38, 0), ["1", "-99999999999999999999999999999999999999"]),
    ],
    ids=str,
)
@VERSIONS
def test_keys_of_every_type(
    tmp_path: Path, version: int, field_type: IcebergType, values: list[Any]
) -> None:
    if isinstance(field_type, DecimalType):
        from decimal import Decimal

        values = [Decimal(value) for value in values]
    schema = Schema((NestedField(1, "key", field_type), NestedField(2, "n", INT)))
    table = DeltaTable(tmp_path, version=version, schema=schema)
    table.append(*((value, 0) for value in [*values, None]))
    rows = [(values[0], 1), (values[1], 2), (None, 3), (values[0], 4), (None, 5)]
    delta = table.keyed("upsert", [table.batch(*rows)], key_limit=2)
    assert sorted(row[1] for row in table.rows()) == [2, 4, 5]
    assert delta.counts == {"upserted": 3}


@pytest.mark.parametrize(
    "field_type",
    [FLOAT, DOUBLE, ListType(5, INT), StructType((NestedField(5, "x", INT),)), UNKNOWN],
    ids=str,
)
def test_a_key_that_cannot_be_compared_is_refused_by_name(
    tmp_path: Path, field_type: IcebergType
) -> None:
    schema = Schema((NestedField(1, "bad", field_type), NestedField(2, "n", INT)))
    table = DeltaTable(tmp_path, version=3, schema=schema)
    with pytest.raises(InvalidOptionError, match=r"'bad'.* cannot be a key"):
        table.keyed("upsert", [])


def test_a_key_in_a_list_is_refused(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path, version=2, schema=Schema((NestedField(1, "l", ListType(2, INT)),)))
    with pytest.raises(InvalidOptionError, match="inside a list or map"):
        table.keyed("upsert", [], keys=(2,))


@VERSIONS
def test_keys_in_structs(tmp_path: Path, version: int) -> None:
    inner = (NestedField(3, "a", INT), NestedField(4, "b", STRING, required=True))
    schema = Schema((NestedField(1, "s", StructType(inner)), NestedField(2, "n", INT)))
    table = DeltaTable(tmp_path, version=version, schema=schema)
    table.append(((1, "x"), 0), ((2, "y"), 0), (None, 0), ((None, "z"), 0))
    delta = table.keyed("upsert", [table.batch(((1, "-"), 1), (None, 2), ((5, "-"), 3))], keys=(3,))
    assert sorted(row[1] for row in table.rows()) == [0, 1, 2, 3]
    assert [row["s"] for row in _keys(delta.deletes)] == [{"a": 1}, None, {"a": 5}]


@VERSIONS
def test_null_keys_in_required_structs(tmp_path: Path, version: int) -> None:
    inner = StructType((NestedField(3, "a", INT), NestedField(4, "b", INT)))
    schema = Schema((NestedField(1, "s", inner, required=True), NestedField(2, "n", INT)))
    table = DeltaTable(tmp_path, version=version, schema=schema)
    table.append(((None, 1), 0), ((1, 1), 0))
    table.keyed("upsert", [table.batch(((None, 2), 1))], keys=(3,))
    assert sorted(row[1] for row in table.rows()) == [0, 1]


# Bad input


def test_a_null_in_a_required_key_is_refused(tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG, required=True), NestedField(2, "data", STRING)))
    table = _upserted(tmp_path, schema=schema)
    with pytest.raises(InvalidDataError, match=r"'id' of table db\.t is required.*null"):
        table.keyed("delete", [pa.RecordBatch.from_pydict({"id": pa.array([None], pa.int64())})])


def test_missing_key_columns_are_refused_by_name(tmp_path: Path) -> None:
    table = _upserted(tmp_path)
    with pytest.raises(InvalidDataError, match=r"lack 'id'.*db\.t"):
        table.keyed("delete", [pa.RecordBatch.from_pydict({"data": ["x"]})])


@pytest.mark.parametrize(
    ("mode", "keys", "kinds", "message"),
    [
        ("merge", (1,), None, "'merge'.*unknown"),
        ("upsert", (), None, "no key columns"),
        ("upsert", (9,), None, "field id 9"),
        ("upsert", (1, 1), None, "given twice"),
        ("upsert", (1,), "kind", "row kind column"),
        ("delta", (1,), None, "row kind column"),
        ("delta", (1,), "kind", "'kind' is not among"),
    ],
)
def test_bad_arguments_are_refused(
    tmp_path: Path, mode: str, keys: tuple[int, ...], kinds: str | None, message: str
) -> None:
    table = _upserted(tmp_path)
    with pytest.raises(InvalidOptionError, match=message):
        table.keyed(mode, [table.batch((1, "a"))], keys=keys, kinds=kinds)


def test_a_table_of_version_1_is_refused(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path, version=1)
    with pytest.raises(UnsupportedFeatureError, match=r"version 1.*upgrade"):
        table.keyed("upsert", [table.batch((1, "a"))])


def test_a_failed_task_leaves_no_file(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path, version=2)
    good = table.batch(*((i, "x") for i in range(100)))
    bad = pa.RecordBatch.from_pydict({"id": [2**40], "data": [b"\xff"]})
    before = files_under(tmp_path)
    fanout = FanoutSettings(max_buffered_bytes=100)
    with pytest.raises(InvalidDataError):
        table.keyed("upsert", [good, bad], key_limit=10, fanout=fanout)
    assert files_under(tmp_path) == before


# Tasks


def test_tasks_with_keys_of_their_own(tmp_path: Path) -> None:
    table = _upserted(tmp_path)
    table.keyed("upsert", [table.batch((1, "x"), (1, "y"))], [table.batch((2, "z"), (9, "n"))])
    assert table.rows() == [(1, "y"), (2, "z"), (3, "c"), (9, "n")]


def test_a_key_in_two_tasks_is_refused(tmp_path: Path) -> None:
    table = _upserted(tmp_path)
    with pytest.raises(InvalidDataError, match="1 keys have rows in more than one task"):
        table.keyed("upsert", [table.batch((1, "x"), (2, "z"))], [table.batch((5, "z"), (1, "n"))])
    assert table.rows() == [(1, "a"), (2, "b"), (3, "c")]


def test_plans_are_small_and_can_be_sent_to_tasks(tmp_path: Path) -> None:
    table = _upserted(tmp_path)
    plan = plan_keyed_delta(
        table.plan(),
        schema_to_arrow(table.schema),
        key_ids=(1,),
        mode="upsert",
        delete_spec=UNPARTITIONED,
        format_version=2,
    )
    sent = pickle.dumps(plan)
    assert len(sent) < 10_000
    columns = [pa.array([1, 2, None], pa.int64())]
    assert np.array_equal(pickle.loads(sent).keys.hashes(columns), plan.keys.hashes(columns))


# Whole histories

_ID = st.one_of(st.integers(0, 8), st.none())
_EVENT = st.tuples(st.sampled_from(["+I", "-U", "+U", "-D"]), _ID, st.sampled_from("abc"))
_COMMIT = st.tuples(
    st.sampled_from(["upsert", "delete", "delta"]),
    st.lists(_EVENT, min_size=3, max_size=25),
    st.integers(1, 3),
    st.integers(1, 6),
)


@examples(60)
@given(
    commits=st.lists(_COMMIT, min_size=1, max_size=5),
    version=st.sampled_from([2, 3]),
    spec=st.sampled_from([UNPARTITIONED, BY_ID, BY_DATA]),
    limit=st.sampled_from([1, 3, 1000]),
)
def test_histories_leave_the_rows_of_a_plain_model(
    commits: list[tuple[str, list[tuple[str, int | None, str]], int, int]],
    version: int,
    spec: PartitionSpec,
    limit: int,
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = DeltaTable(Path(directory), version=version, spec=spec)
        delete_spec = None
        if spec is BY_DATA:
            table.table.change(AddPartitionSpec(PartitionSpec(1)))
            delete_spec = table.table.metadata.specs_by_id[1]
        model: dict[int | None, str] = {}
        for mode, events, num_tasks, batch_rows in commits:
            events = [event for event in events if _is_sound(event, mode, model)]
            for kind, key, value in events:
                if mode == "delete" or (mode == "delta" and kind in ("-U", "-D")):
                    model.pop(key, None)
                else:
                    model[key] = value
            tasks = [
                _batches(
                    table, [e for e in events if hash(e[1]) % num_tasks == at], mode, batch_rows
                )
                for at in range(num_tasks)
            ]
            if not any(tasks):
                continue
            kinds = "kind" if mode == "delta" else None
            table.keyed(mode, *tasks, kinds=kinds, delete_spec=delete_spec, key_limit=limit)
            assert table.rows() == sorted(model.items(), key=repr)


def _is_sound(event: tuple[str, int | None, str], mode: str, model: dict[int | None, str]) -> bool:
    """Inserts are of keys that no earlier commit has."""
    kind, key, _ = event
    return mode != "delta" or kind != "+I" or key not in model


def _batches(
    table: DeltaTable, events: list[tuple[str, int | None, str]], mode: str, batch_rows: int
) -> list[pa.RecordBatch]:
    return [
        table.batch(
            *(event[1:] for event in some),
            extra={"kind": [event[0] for event in some]} if mode == "delta" else None,
        )
        for start in range(0, len(events), batch_rows)
        for some in [events[start : start + batch_rows]]
    ]
