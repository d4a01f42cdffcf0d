"""Which files are left to Spark's own Parquet reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from built.tables import TableBuilder

from icebergds.expr.bind import bind
from icebergds.expr.sql import parse_filter
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.scan.plan import native
from icebergds.scan.plan.files import PlannedFile, plan_files
from icebergds.scan.plan.native import native_rule
from icebergds.scan.plan.native_columns import LackedColumns
from icebergds.scan.plan.native_forms import is_plain_path
from icebergds.scan.projection import metadata_columns, parse_column_list, project_columns
from icebergds.scan.read_plan import ReadPlan
from icebergds.spec.json.name_mapping import table_name_mapping
from icebergds.spec.manifest import DataFile
from icebergds.spec.name_mapping import MappedField, NameMapping
from icebergds.spec.partition import PartitionField, PartitionSpec, identity_columns
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import BucketTransform, IdentityTransform
from icebergds.spec.types import (
    BINARY,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIME,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

_SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "name", STRING)))
_BY_NAME = PartitionSpec(1, (PartitionField((2,), 1000, IdentityTransform(), "name"),))
_BY_BUCKET = PartitionSpec(1, (PartitionField((1,), 1000, BucketTransform(4), "b"),))


@pytest.fixture
def builder(tmp_path: Path) -> TableBuilder:
    return TableBuilder(tmp_path / "t", _SCHEMA)


def _plan(table: TableBuilder, names: str = "*", row_filter: str = "true") -> ReadPlan:
    return ReadPlan(
        io=table.io,
        columns=project_columns(table.metadata, table.schema, parse_column_list(names)),
        table_schema=table.schema,
        specs=table.metadata.specs_by_id,
        row_filter=bind(parse_filter(row_filter), table.schema, case_sensitive=False),
        name_mapping=table_name_mapping(table.metadata),
    )


def _native(
    table: TableBuilder,
    plan: ReadPlan | None = None,
    change: Callable[[DataFile], DataFile] = lambda file: file,
) -> list[bool]:
    """Whether each file of the newest snapshot is left to Spark, in the order of their paths."""
    plan = plan or _plan(table)
    rule = native_rule(plan, ())
    if rule is None:
        return []
    files = _files(table, plan, change)
    native, others = rule.split(files)
    assert len(native) + len(others) == len(files)
    chosen = {file.entry.data_file.file_path for file in native}
    return [path in chosen for path in sorted(f.entry.data_file.file_path for f in files)]


def _lacked(
    table: TableBuilder,
    plan: ReadPlan | None = None,
    change: Callable[[DataFile], DataFile] = lambda file: file,
) -> list[LackedColumns | None]:
    """What each file may lack, for which the partition has a value."""
    plan = plan or _plan(table)
    rule = native_rule(plan, ())
    assert rule is not None
    return [rule.lacked_columns(file) for file in _files(table, plan, change)]


def _files(
    table: TableBuilder, plan: ReadPlan, change: Callable[[DataFile], DataFile]
) -> list[PlannedFile]:
    planned = plan_files(
        table.io,
        table.metadata,
        table.metadata.current_snapshot(),
        table.schema,
        plan.row_filter,
        stats_of=identity_columns(plan.specs),
    ).files
    return [
        PlannedFile(replace(f.entry, data_file=change(f.entry.data_file)), f.deletes)
        for f in planned
    ]


def test_parquet_files_without_deletes(builder: TableBuilder) -> None:
    builder.commit(builder.data_file([(1, "a")]), builder.data_file([(2, "b")]))
    assert _native(builder) == [True, True]


def test_files_with_position_deletes_but_not_with_equality_deletes(builder: TableBuilder) -> None:
    first, second = builder.data_file([(1, "a")]), builder.data_file([(2, "b")])
    builder.commit(first, second)
    builder.commit(builder.position_deletes({first.file_path: [0]}))
    assert _native(builder) == [True, True]
    builder.commit(builder.equality_deletes(["id"], [(2,)]))
    expected = sorted({first.file_path: True, second.file_path: False}.items())
    assert _native(builder) == [chosen for _, chosen in expected]


@pytest.mark.parametrize("limit", ["_MOST_DELETES", "_MOST_DELETE_BYTES", "_MOST_ROWS"])
def test_not_files_with_more_position_deletes_than_planning_reads(
    builder: TableBuilder, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    first, second = builder.data_file([(1, "a")]), builder.data_file([(2, "b")])
    builder.commit(first, second)
    builder.commit(builder.position_deletes({first.file_path: [0]}))
    monkeypatch.setattr(native, limit, 0)
    expected = sorted({first.file_path: False, second.file_path: True}.items())
    assert _native(builder) == [chosen for _, chosen in expected]


@pytest.mark.parametrize(
    ("name", "expected"), [("_metadata", False), ("_Metadata", False), ("m", True)]
)
def test_not_files_with_position_deletes_if_a_column_hides_their_positions(
    builder: TableBuilder, name: str, expected: bool
) -> None:
    builder.commit(first := builder.data_file([(1, "a")]))
    builder.commit(builder.position_deletes({first.file_path: [0]}))
    rule = native_rule(_plan(builder), iter(["id", name]))
    assert rule is not None
    files = plan_files(
        builder.io, builder.metadata, builder.metadata.current_snapshot(), builder.schema
    ).files
    assert (list(rule.obstacles(files)) == [None]) is expected


@pytest.mark.parametrize("row_filter", ["id > 0", "name = 'a' and id > 0"])
def test_not_files_of_which_a_filter_may_drop_rows(builder: TableBuilder, row_filter: str) -> None:
    builder.commit(builder.data_file([(1, "a")]))
    assert _native(builder, _plan(builder, row_filter=row_filter)) == [False]


def test_files_whose_partition_satisfies_the_filter(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_NAME)
    table.commit(table.data_file([(1, "a")], partition=("a",)))
    assert _native(table, _plan(table, row_filter="name = 'a'")) == [True]
    assert _native(table, _plan(table, row_filter="name = 'a' and id = 1")) == [False]


def _without_counts(file: DataFile) -> DataFile:
    return replace(file, value_counts=None)


def test_files_that_may_lack_a_partition_column(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_NAME)
    table.commit(table.data_file([(1, "a")], partition=("a",)))
    assert _native(table, change=_without_counts) == [True]
    assert _lacked(table) == [()]
    assert _lacked(table, change=_without_counts) == [((2, "a"),)]
    assert _lacked(table, _plan(table, "id"), _without_counts) == [()]


def test_not_files_that_may_lack_a_partition_column_and_have_deletes(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_NAME)
    table.commit(file := table.data_file([(1, "a"), (2, "a")], partition=("a",)))
    table.commit(table.position_deletes({file.file_path: [0]}, partition=("a",)))
    assert _native(table) == [True]
    assert _native(table, change=_without_counts) == [False]


def test_not_files_that_may_lack_partition_columns_of_many_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_NAME)
    names = ("a", "b", "a", None)
    table.commit(*(table.data_file([(1, name)], partition=(name,)) for name in names))
    monkeypatch.setattr(native, "_MOST_PARTITIONS", 3)
    assert _native(table, change=_without_counts) == [True] * 4
    monkeypatch.setattr(native, "_MOST_PARTITIONS", 2)
    assert _native(table, change=_without_counts) == [False] * 4
    assert _native(table) == [True] * 4


@pytest.mark.parametrize(
    ("field", "source", "value"),
    [
        (NestedField(2, "c", BINARY), 2, b"x"),
        (NestedField(2, "c", FixedType(1)), 2, b"x"),
        (NestedField(2, "c", DOUBLE), 2, 0.5),
        (NestedField(2, "c", StructType((NestedField(3, "x", INT),))), 3, 7),
    ],
    ids=lambda value: str(value),
)
def test_not_files_that_may_lack_a_partition_column_that_spark_cannot_fill(
    tmp_path: Path, field: NestedField, source: int, value: object
) -> None:
    spec = PartitionSpec(1, (PartitionField((source,), 1000, IdentityTransform(), "p"),))
    table = TableBuilder(tmp_path / "t", Schema((_SCHEMA.fields[0], field)), spec=spec)
    stored = value if source == 2 else (value,)
    table.commit(table.data_file([(1, stored)], partition=(value,)))
    assert _native(table, change=_without_counts) == [False]
    assert _native(table, _plan(table, "id"), _without_counts) == [True]
    assert _native(table, change=lambda file: replace(file, value_counts={source: 1})) == [True]


def test_transformed_partitions_need_no_statistics(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", _SCHEMA, spec=_BY_BUCKET)
    table.commit(table.data_file([(1, "a")], partition=(0,)))
    assert _native(table, change=_without_counts) == [True]


def test_not_a_file_that_is_named_twice(builder: TableBuilder) -> None:
    file = builder.data_file([(1, "a")])
    builder.commit(file)
    builder.commit(file)
    assert _native(builder) == [False, False]


def test_not_metadata_columns(builder: TableBuilder) -> None:
    builder.commit(builder.data_file([(1, "a")]))
    for column in metadata_columns(builder.metadata):
        assert native_rule(_plan(builder, f"*, {column.name}"), ()) is None


def test_files_of_tables_with_a_name_mapping_if_they_are_few(
    builder: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their footers are read to tell how columns are found."""
    plan = replace(_plan(builder), name_mapping=NameMapping((MappedField(("id",), 1),)))
    builder.commit(builder.data_file([(1, "a")]), builder.data_file([(2, "b")]))
    assert _native(builder, plan) == [True, True]
    monkeypatch.setattr(native, "MOST_FOOTERS", 1)
    assert _native(builder, plan) == [False, False]
    assert _native(builder) == [True, True]


@pytest.mark.parametrize("name", ["_icebergds_1", "_IcebergDS_x"])
def test_not_tables_with_a_column_of_the_reserved_names(builder: TableBuilder, name: str) -> None:
    assert native_rule(_plan(builder), ["a"]) is not None
    assert native_rule(_plan(builder), ["a", name]) is None


def _struct(field: NestedField) -> StructType:
    return StructType((field,))


@pytest.mark.parametrize(
    ("field_type", "expected"),
    [
        (INT, True),
        (BINARY, True),
        (DecimalType(38, 10), True),
        (_struct(NestedField(3, "x", INT)), True),
        (ListType(3, INT), True),
        (MapType(3, STRING, 4, INT), True),
        (TIME, False),
        (UUID, False),
        (FixedType(4), True),
        (StructType(()), False),
        (_struct(NestedField(3, "x", UUID)), False),
        (_struct(NestedField(3, "x", INT, initial_default=1)), False),
        (ListType(3, TIME), False),
        (MapType(3, UUID, 4, INT), False),
        (MapType(3, STRING, 4, FixedType(1)), True),
    ],
    ids=str,
)
def test_types_that_spark_reads_as_we_do(
    builder: TableBuilder, field_type: IcebergType, expected: bool
) -> None:
    columns = Schema((NestedField(9, "c", field_type),))
    plan = replace(_plan(builder), columns=columns, table_schema=columns)
    assert (native_rule(plan, ()) is not None) == expected


@pytest.mark.parametrize(
    ("field_type", "default", "expected"),
    [
        (INT, 0, True),
        (STRING, "", True),
        (BINARY, b"", False),
        (FixedType(1), b"x", False),
        (_struct(NestedField(3, "x", INT)), {}, False),
    ],
    ids=str,
)
def test_columns_whose_default_spark_fills_in(
    builder: TableBuilder, field_type: IcebergType, default: object, expected: bool
) -> None:
    columns = Schema((NestedField(9, "c", field_type, initial_default=default),))
    plan = replace(_plan(builder), columns=columns, table_schema=columns)
    assert (native_rule(plan, ()) is not None) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/w/t/data/a b%20c=d+e@f~g,h-1.parquet", True),
        ("s3://bucket/t/data/day=2024-01-01/a.parquet", True),
        ("/w/.t/_data/a.parquet", True),
        ("/w/t/./data/a.parquet", False),
        ("/w/t/data/_a.parquet", False),
        ("/w/t/data/.a.parquet", False),
        ("/w/t//data/a.parquet", False),
        ("/w/t/../data/a.parquet", False),
        ("s3://bucket//data/a.parquet", False),
        ("/w/t/data/[a].parquet", False),
        ("/w/t/data/{a}.parquet", False),
        ("/w/t/data/a*.parquet", False),
        ("/w/t/data/a?.parquet", False),
        ("/w/t/data/a#b.parquet", False),
        ("/w/t/data/a:b.parquet", False),
        ("/w/t/data/ä.parquet", False),
    ],
)
def test_paths_that_spark_takes_as_they_are(path: str, expected: bool) -> None:
    assert is_plain_path(path) is expected


def test_not_files_with_position_deletes_if_wrong_counts_are_allowed(builder: TableBuilder) -> None:
    builder.commit(first := builder.data_file([(1, "a")]))
    builder.commit(builder.position_deletes({first.file_path: [0]}))
    rule = native_rule(replace(_plan(builder), wrong_counts=WrongCounts.WARN), ())
    files = plan_files(
        builder.io, builder.metadata, builder.metadata.current_snapshot(), builder.schema
    ).files
    assert rule is not None
    assert list(rule.obstacles(files)) == ["position deletes"]
