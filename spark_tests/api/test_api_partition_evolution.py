"""Partition fields added, removed and renamed in one update or several, in each format version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icebergds import Catalog, Table, load_catalog
from icebergds.errors import InvalidMetadataError, InvalidOptionError
from icebergds.spec.transforms import TruncateTransform

_COLUMNS = "id bigint, ts timestamp, category string, data string"
_LAYOUT = "category, days(ts), bucket(16, id) as shard"
_CATEGORY = (1000, "category", "identity")
_DAY = (1001, "ts_day", "day")
_SHARD = (1002, "shard", "bucket[16]")
_EACH_VERSION = pytest.mark.parametrize("version", [1, 2, 3])

Step = Callable[[Any], Any]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    found = load_catalog("lake", warehouse=str(tmp_path))
    found.create_namespace("db")
    return found


def made(catalog: Catalog, version: int, layout: str = _LAYOUT) -> Table:
    properties = {"format-version": str(version)}
    more: Any = {"partition_spec": layout} if layout else {}
    return catalog.create_table("db.t", _COLUMNS, properties=properties, **more)


def parts(table: Table) -> list[tuple[int, str, str]]:
    return [(part.field_id, part.name, str(part.transform)) for part in table.spec().fields]


@_EACH_VERSION
def test_fields_are_added_after_those_that_are_there(catalog: Catalog, version: int) -> None:
    table = made(catalog, version)
    with table.update_spec() as update:
        update.add_field("truncate(4, data)").add_field("id", "bucket[8]").add_field("ts", "hour")
    assert parts(table) == [
        _CATEGORY,
        _DAY,
        _SHARD,
        (1003, "data_trunc_4", "truncate[4]"),
        (1004, "id_bucket_8", "bucket[8]"),
        (1005, "ts_hour", "hour"),
    ]
    assert (table.spec().spec_id, table.metadata.last_partition_id) == (1, 1005)


@_EACH_VERSION
@pytest.mark.parametrize(
    ("named", "gone"),
    [
        ("category", _CATEGORY),
        ("identity(category)", _CATEGORY),
        ("days(ts)", _DAY),
        ("shard", _SHARD),
        ("bucket(16, id)", _SHARD),
    ],
)
def test_a_field_is_removed_by_its_name_or_its_term(
    catalog: Catalog, version: int, named: str, gone: tuple[int, str, str]
) -> None:
    table = made(catalog, version)
    table.update_spec().remove_field(named).commit()
    before = [_CATEGORY, _DAY, _SHARD]
    if version == 1:
        assert parts(table) == [(*part[:2], "void") if part == gone else part for part in before]
    else:
        assert parts(table) == [part for part in before if part != gone]


@_EACH_VERSION
def test_a_field_is_renamed_another_removed_and_a_third_added_in_one_update(
    catalog: Catalog, version: int
) -> None:
    table = made(catalog, version)
    with table.update_spec() as update:
        update.rename_field("shard", "id_bucket").remove_field("days(ts)")
        update.add_field("data", "truncate[4]", "prefix")
    void = [(1001, "ts_day", "void")] if version == 1 else []
    added = (1003, "prefix", "truncate[4]")
    assert parts(table) == [_CATEGORY, *void, (1002, "id_bucket", "bucket[16]"), added]


@_EACH_VERSION
@pytest.mark.parametrize(
    ("named", "again"),
    [
        ("shard", ("id", "bucket[16]", "shard")),
        ("shard", ("bucket(16, id)",)),
        ("ts_day", ("days(ts)",)),
        ("category", ("category",)),
    ],
)
def test_a_field_that_an_update_removes_and_adds_again_is_as_it_was(
    catalog: Catalog, version: int, named: str, again: tuple[str, ...]
) -> None:
    table = made(catalog, version)
    before = table.metadata_location
    table.update_spec().remove_field(named).add_field(*again).commit()
    assert parts(table) == [_CATEGORY, _DAY, _SHARD]
    assert table.metadata_location == before


@_EACH_VERSION
def test_a_field_that_comes_back_in_the_same_update_by_another_name_is_renamed(
    catalog: Catalog, version: int
) -> None:
    table = made(catalog, version)
    table.update_spec().remove_field("ts_day").add_field("ts", "day", "day").commit()
    assert parts(table) == [_CATEGORY, (1001, "day", "day"), _SHARD]
    # It may be removed again, as any other that was there.
    with table.update_spec() as update:
        update.remove_field("day").add_field("days(ts)").remove_field("day")
    assert ("void" in str(parts(table))) == (version == 1)
    assert (1001, "day", "day") not in parts(table)


@_EACH_VERSION
def test_a_field_comes_back_to_its_place_among_others_that_are_removed_and_added(
    catalog: Catalog, version: int
) -> None:
    table = made(catalog, version)
    with table.update_spec() as update:
        update.remove_field("category").remove_field("ts_day").remove_field("shard")
        update.add_field("data").add_field("days(ts)").add_field("bucket(16, id)")
    void = [(1000, "category", "void")] if version == 1 else []
    assert parts(table) == [*void, _DAY, _SHARD, (1003, "data", "identity")]


@_EACH_VERSION
def test_the_name_of_a_removed_field_is_free_for_another_transform(
    catalog: Catalog, version: int
) -> None:
    table = made(catalog, version, "months(ts) as part")
    table.update_spec().remove_field("part").add_field("ts", "day", "part").commit()
    void = [(1000, "part_1000", "void")] if version == 1 else []
    assert parts(table) == [*void, (1001, "part", "day")]


@_EACH_VERSION
def test_a_name_is_used_again_and_again_from_update_to_update(
    catalog: Catalog, version: int
) -> None:
    table = made(catalog, version, "")
    for _ in range(2):
        table.update_spec().add_field("ts", "day", "ts_date").commit()
        table.update_spec().remove_field("days(ts)").commit()
    table.update_spec().add_field("months(ts)").commit()
    table.update_spec().rename_field("ts_month", "ts_date").commit()
    if version == 1:
        voids = [(1000, "ts_date_1000", "void"), (1001, "ts_date_1001", "void")]
        assert parts(table) == [*voids, (1002, "ts_date", "month")]
    else:
        assert parts(table) == [(1001, "ts_date", "month")]


@_EACH_VERSION
def test_a_field_that_comes_back_later_is_the_same_one_since_version_2(
    catalog: Catalog, version: int
) -> None:
    table = made(catalog, version, "bucket(16, id) as b, days(ts) as d")
    table.update_spec().remove_field("d").remove_field("b").commit()
    table.update_spec().add_field("id", "bucket[16]", "b").commit()
    if version == 1:
        voids = [(1000, "b_1000", "void"), (1001, "d", "void")]
        assert parts(table) == [*voids, (1002, "b", "bucket[16]")]
    else:
        assert parts(table) == [(1000, "b", "bucket[16]")]
    assert table.metadata.last_partition_id == (1002 if version == 1 else 1001)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda u: u.add_field("category"), "already, as field 'category'"),
        (lambda u: u.add_field("id", "bucket[16]", "b16"), "already, as field 'shard'"),
        (
            lambda u: u.add_field("data", "truncate[4]", "p").add_field("truncate(4, data)"),
            "already, as field 'p'",
        ),
        (
            lambda u: u.add_field("data", "truncate[4]", "p").add_field("data", "truncate[6]", "p"),
            "named 'p' exists already",
        ),
        (lambda u: u.add_field("hours(ts)").add_field("months(ts)"), "redundant beside hour"),
        (lambda u: u.remove_field("moon"), "fields are category, ts_day, shard"),
        (lambda u: u.remove_field("hours(ts)"), r"no partition field 'hours\(ts\)'"),
        (lambda u: u.rename_field("shake", "seal"), "no partition field 'shake'"),
        (
            lambda u: u.rename_field("shard", "s").remove_field("shard"),
            "no partition field 'shard'",
        ),
        (
            lambda u: u.remove_field("shard").rename_field("shard", "s"),
            "no partition field 'shard'",
        ),
        (lambda u: u.remove_field("shard").remove_field("shard"), "no partition field 'shard'"),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_changes_that_do_not_fit_those_before_them_are_refused(
    catalog: Catalog, version: int, change: Step, said: str
) -> None:
    table = made(catalog, version)
    with pytest.raises(InvalidOptionError, match=rf"table lake\.db\.t: .*{said}"):
        change(table.update_spec())


@pytest.mark.parametrize("given", ["bucket[2147483648]", TruncateTransform(2**31), "truncate[0]"])
def test_a_number_that_other_engines_cannot_read_is_refused(catalog: Catalog, given: Any) -> None:
    table = made(catalog, 2)
    with pytest.raises(InvalidOptionError, match=r"transform = .* expected "):
        table.update_spec().add_field("id", given)
    with pytest.raises(InvalidOptionError, match=r"transform = .* expected "):
        table.update_sort_order().asc("id", given)


@_EACH_VERSION
def test_an_update_may_rename_and_remove_what_it_has_added_or_renamed(
    catalog: Catalog, version: int
) -> None:
    table = made(catalog, version, "bucket(16, id) as shard")
    with table.update_spec() as update:
        update.add_field("data", "truncate[4]", "p").rename_field("p", "prefix")
        update.add_field("category").remove_field("category")
        update.rename_field("shard", "s").remove_field("bucket(16, id)")
    void = [(1000, "s", "void")] if version == 1 else []
    assert parts(table) == [*void, (1001, "prefix", "truncate[4]")]


@_EACH_VERSION
def test_a_field_may_be_void_from_the_start(catalog: Catalog, version: int) -> None:
    table = made(catalog, version, "")
    table.update_spec().add_field("id", "void").add_field("data", "void", "nothing").commit()
    assert parts(table) == [(1000, "id_null", "void"), (1001, "nothing", "void")]
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    assert table.scan().to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("column", "transform", "name"),
    [("ts", "day", "id"), ("ts", "identity", "data"), ("id", "identity", "data")],
)
def test_a_field_does_not_take_the_name_of_another_column(
    catalog: Catalog, column: str, transform: str, name: str
) -> None:
    with pytest.raises(InvalidMetadataError, match=rf"'{name}' has the name of a column"):
        made(catalog, 2, "").update_spec().add_field(column, transform, name).commit()


# Java Iceberg would not open such a table.
@_EACH_VERSION
@pytest.mark.parametrize("name", ["ts_day", "category", "shard"])
@pytest.mark.parametrize("is_removed", [False, True])
def test_a_column_does_not_take_the_name_of_a_partition_field_that_the_table_has_or_had(
    catalog: Catalog, version: int, name: str, is_removed: bool
) -> None:
    table = made(catalog, version)
    table.update_schema().rename_column("category", "kind").commit()
    if is_removed:
        table.update_spec().remove_field(name).commit()
    said = rf"table lake\.db\.t: column '{name}' would have the name of a partition field"
    for update in (
        table.update_schema().add_column(name, "int"),
        table.update_schema().rename_column("data", name),
        table.update_schema().union_by_name(f"{name} int"),
    ):
        with pytest.raises(InvalidMetadataError, match=said):
            update.commit()
    with pytest.raises(InvalidMetadataError, match=said):
        table.append(pa.table({name: pa.array([1])}), options={"merge-schema": "true"})
    assert table.refresh().schema().find_id(name) is None


def test_the_column_of_an_identity_field_keeps_or_gets_back_its_name(catalog: Catalog) -> None:
    table = made(catalog, 2)
    table.update_schema().rename_column("category", "kind").commit()
    table.update_schema().rename_column("kind", "category").commit()
    table.update_spec().remove_field("category").commit()
    # Nothing has the field's source any more, so its name means no column.
    table.update_schema().delete_column("category").add_column("category", "int").commit()
    assert table.schema().find_field(5) is not None
