"""Edits of partition specs, field by field."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icebergds.errors import InvalidOptionError
from icebergds.spec.evolution.spec_edits import (
    SpecDraft,
    add_partition_field,
    remove_partition_field,
    rename_partition_field,
)
from icebergds.spec.partition import NO_FIELD_ID, PartitionField
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from icebergds.spec.types import LONG, STRING, TIMESTAMP, NestedField

_SCHEMA = Schema(
    (NestedField(1, "id", LONG), NestedField(2, "ts", TIMESTAMP), NestedField(3, "c", STRING))
)
_DAY = PartitionField((2,), 1000, DayTransform(), "ts_day")
_SHARD = PartitionField((1,), 1001, BucketTransform(8), "shard")


def draft(*fields: PartitionField, version: int = 2) -> SpecDraft:
    return SpecDraft(fields, fields, version)


def add(of: SpecDraft, source_id: int, transform: Transform, name: str | None = None) -> SpecDraft:
    return add_partition_field(of, _SCHEMA, source_id, transform, name)


def names(of: SpecDraft) -> list[str]:
    return [field.name for field in of.fields]


@pytest.mark.parametrize(
    ("source_id", "transform", "name"),
    [
        (1, IdentityTransform(), "id"),
        (1, BucketTransform(16), "id_bucket_16"),
        (3, TruncateTransform(4), "c_trunc_4"),
        (2, YearTransform(), "ts_year"),
        (2, MonthTransform(), "ts_month"),
        (2, DayTransform(), "ts_day"),
        (2, HourTransform(), "ts_hour"),
        (1, VoidTransform(), "id_null"),
    ],
)
def test_fields_that_nobody_names_are_named_as_in_java(
    source_id: int, transform: Transform, name: str
) -> None:
    added = add(draft(), source_id, transform)
    assert added.fields == (PartitionField((source_id,), NO_FIELD_ID, transform, name),)


def test_a_field_that_the_table_had_gets_its_name_back() -> None:
    gone = SpecDraft((), (_SHARD,), 2)
    assert names(add(gone, 1, BucketTransform(8))) == ["shard"]
    assert names(add(gone, 1, BucketTransform(8), "other")) == ["other"]


def test_a_field_is_removed_and_in_version_1_void() -> None:
    assert remove_partition_field(draft(_DAY, _SHARD), "ts_day").fields == (_SHARD,)
    kept = remove_partition_field(draft(_DAY, _SHARD, version=1), "ts_day").fields
    assert kept == (replace(_DAY, transform=VoidTransform()), _SHARD)


def test_in_version_1_a_field_of_the_same_update_is_removed_at_all() -> None:
    added = add(draft(_DAY, version=1), 1, IdentityTransform())
    assert remove_partition_field(added, "id").fields == (_DAY,)


def test_a_void_field_gives_its_name_to_a_new_one() -> None:
    void = remove_partition_field(draft(_DAY, version=1), "ts_day")
    assert names(add(void, 2, DayTransform())) == ["ts_day_1000", "ts_day"]


def test_a_field_can_be_replaced_under_its_name() -> None:
    replaced = add(remove_partition_field(draft(_SHARD), "shard"), 1, BucketTransform(16), "shard")
    assert replaced.fields == (PartitionField((1,), NO_FIELD_ID, BucketTransform(16), "shard"),)


def test_a_renamed_field_keeps_its_id() -> None:
    assert rename_partition_field(draft(_SHARD), "shard", "s").fields == (
        replace(_SHARD, name="s"),
    )


def test_a_field_of_time_may_be_added_to_one_that_is_there_but_not_two_at_once() -> None:
    assert names(add(draft(_DAY), 2, HourTransform())) == ["ts_day", "ts_hour"]
    with pytest.raises(InvalidOptionError, match="redundant"):
        add(add(draft(), 2, DayTransform()), 2, HourTransform())


def test_what_does_not_fit_is_refused() -> None:
    made = draft(_DAY, _SHARD)
    with pytest.raises(InvalidOptionError, match="already, as field 'ts_day'"):
        add(made, 2, DayTransform(), "other")
    with pytest.raises(InvalidOptionError, match="named 'shard' exists already"):
        add(made, 1, BucketTransform(16), "shard")
    with pytest.raises(InvalidOptionError, match=r"did you mean ts_day\?"):
        remove_partition_field(made, "ts_days")
    with pytest.raises(InvalidOptionError, match="the table is not partitioned"):
        rename_partition_field(draft(), "ts_day", "day")
    with pytest.raises(InvalidOptionError, match="named 'shard' exists already"):
        rename_partition_field(made, "ts_day", "shard")
