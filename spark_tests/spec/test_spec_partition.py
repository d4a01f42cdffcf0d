"""Partition specs, their types, directories and JSON."""

from __future__ import annotations

from typing import Any

import pytest
from corpus import load_vectors
from spec_vectors import case_id, cases

from icebergds.errors import InvalidMetadataError
from icebergds.spec.json.partition import (
    partition_fields_from_json,
    partition_spec_from_json,
    partition_spec_to_json,
)
from icebergds.spec.json.schema import schema_from_json
from icebergds.spec.json.values import from_json
from icebergds.spec.partition import (
    PartitionField,
    PartitionSpec,
    partition_path,
    partition_type,
)
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    UnknownTransform,
    VoidTransform,
)
from icebergds.spec.types import (
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    NestedField,
    StructType,
)

SCHEMA = Schema(
    (
        NestedField(1, "id", LONG, required=True),
        NestedField(2, "ts", TIMESTAMP),
        NestedField(3, "place", StructType((NestedField(4, "city", STRING),))),
    )
)


def spec_json(*fields: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"spec-id": 0, "fields": list(fields), **members}


def field_json(**members: Any) -> dict[str, Any]:
    return {
        "name": "p",
        "transform": "identity",
        "source-id": 1,
        "field-id": 1000,
        **members,
    }


@pytest.mark.parametrize("case", cases("partition_paths"), ids=case_id)
def test_directories_are_named_as_published(case: dict[str, Any]) -> None:
    schema = schema_from_json(load_vectors()["partition_paths"]["schema"])
    spec = PartitionSpec(0, partition_fields_from_json(case["fields"], "the case"))
    partition = tuple(
        from_json(field.field_type, value)
        for field, value in zip(partition_type(spec, schema).fields, case["partition"], strict=True)
    )
    assert partition_path(spec, schema, partition) == case["path"]


def test_partition_values_are_optional_fields_with_the_ids_of_the_spec() -> None:
    spec = PartitionSpec(
        3,
        (
            PartitionField((1,), 1000, BucketTransform(4), "id_bucket"),
            PartitionField((2,), 1001, DayTransform(), "ts_day"),
            PartitionField((4,), 1005, IdentityTransform(), "city"),
        ),
    )
    assert partition_type(spec, SCHEMA) == StructType(
        (
            NestedField(1000, "id_bucket", INT),
            NestedField(1001, "ts_day", DATE),
            NestedField(1005, "city", STRING),
        )
    )


def test_a_dropped_source_column_is_found_in_older_schemas() -> None:
    spec = PartitionSpec(0, (PartitionField((9,), 1000, IdentityTransform(), "gone"),))
    older = Schema((NestedField(9, "gone", STRING),))
    oldest = Schema((NestedField(9, "gone", INT),))
    assert partition_type(spec, SCHEMA, [older, oldest]).fields[0].field_type == STRING
    assert partition_path(spec, SCHEMA, ("x",), [older]) == "gone=x"


def test_a_dropped_source_column_that_nobody_remembers_is_of_type_unknown() -> None:
    spec = PartitionSpec(
        0,
        (
            PartitionField((9,), 1000, IdentityTransform(), "gone"),
            PartitionField((9,), 1001, BucketTransform(4), "gone_bucket"),
        ),
    )
    types = [field.field_type for field in partition_type(spec, SCHEMA).fields]
    assert types == [UNKNOWN, INT]


def test_a_spec_without_fields_has_one_partition_without_a_directory() -> None:
    assert PartitionSpec().is_unpartitioned
    assert partition_type(PartitionSpec(), SCHEMA) == StructType(())
    assert partition_path(PartitionSpec(), SCHEMA, ()) == ""


def test_directories_are_escaped_as_forms_are() -> None:
    spec = PartitionSpec(0, (PartitionField((4,), 1000, IdentityTransform(), "a b"),))
    assert partition_path(spec, SCHEMA, ("a b+c=d/e~*é",)) == "a+b=a+b%2Bc%3Dd%2Fe%7E*%C3%A9"
    assert partition_path(spec, SCHEMA, (None,)) == "a+b=null"


def test_dropped_fields_do_not_partition() -> None:
    void = PartitionField((1,), 1000, VoidTransform(), "p")
    assert PartitionSpec(1, (void,)).is_unpartitioned
    bucket = PartitionField((1,), 1001, BucketTransform(4), "q")
    assert not PartitionSpec(1, (void, bucket)).is_unpartitioned


def test_a_spec_survives_its_json() -> None:
    obj = spec_json(
        field_json(name="a", transform="bucket[16]"),
        field_json(name="b", transform="zorder(1, 2)", **{"field-id": 1001}),
    )
    assert partition_spec_to_json(partition_spec_from_json(obj)) == obj


def test_members_that_nobody_knows_are_written_back() -> None:
    obj = spec_json(field_json(**{"x-field": 1}), **{"x-spec": {"a": []}})
    assert partition_spec_to_json(partition_spec_from_json(obj)) == obj


def test_old_specs_count_their_field_ids_from_1000() -> None:
    fields = [{"name": n, "transform": "identity", "source-id": 1} for n in "ab"]
    read = partition_fields_from_json(fields, "'partition-spec'")
    assert [field.field_id for field in read] == [1000, 1001]


def test_some_field_ids_are_worse_than_none() -> None:
    fields = [{"name": "a", "transform": "identity", "source-id": 1}, field_json()]
    with pytest.raises(InvalidMetadataError, match="only 1 of 2 fields have an id"):
        partition_fields_from_json(fields, "'partition-spec'")


def test_several_source_columns_are_written_as_such() -> None:
    obj = spec_json(
        {"name": "z", "transform": "zorder", "source-ids": [1, 2], "field-id": 1000},
    )
    spec = partition_spec_from_json(obj)
    assert spec.fields[0].source_ids == (1, 2)
    assert spec.fields[0].source_id == 1
    assert partition_spec_to_json(spec) == obj


def test_halves_of_characters_are_no_name() -> None:
    obj = {"name": "\ud800", "transform": "identity", "source-id": 1, "field-id": 1000}
    with pytest.raises(InvalidMetadataError, match="not valid Unicode"):
        partition_fields_from_json([obj], "a spec")


def test_no_known_transform_takes_several_columns() -> None:
    obj = {"name": "b", "transform": "bucket[4]", "source-ids": [1, 2], "field-id": 1000}
    (field,) = partition_fields_from_json([obj], "a spec")
    assert field.transform == UnknownTransform("bucket[4]")


def test_one_source_column_in_a_list_is_one() -> None:
    obj = {"name": "b", "transform": "bucket[4]", "source-ids": [1], "field-id": 1000}
    (field,) = partition_fields_from_json([obj], "a spec")
    assert field.transform == BucketTransform(4)


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({"fields": []}, "'spec-id'"),
        ({"spec-id": 0}, "'fields'"),
        (spec_json({"name": "a", "transform": "identity"}), "'source-id'"),
        (spec_json({"name": "a", "source-id": 1}), "'transform'"),
        (spec_json({"transform": "identity", "source-id": 1}), "'name'"),
        (spec_json(field_json(**{"source-id": "1"})), "expected an integer"),
        (spec_json(field_json(**{"source-ids": ["1"]})), "expected an integer"),
    ],
    ids=str,
)
def test_what_a_spec_lacks_is_named(obj: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        partition_spec_from_json(obj)
