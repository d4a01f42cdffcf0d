"""Name mappings."""

from __future__ import annotations

from typing import Any

import pytest

from icebergds.errors import InvalidMetadataError
from icebergds.spec.json.name_mapping import name_mapping_from_json, name_mapping_to_json
from icebergds.spec.name_mapping import MappedField, NameMapping

EXAMPLE = [
    {"names": ["id", "record_id"], "field-id": 1},
    {"names": ["data"]},
    {"names": [], "field-id": 3},
    {
        "names": ["location"],
        "field-id": 4,
        "fields": [{"names": ["latitude", "lat"], "field-id": 5}],
    },
]


def test_a_mapping_survives_its_json() -> None:
    assert name_mapping_to_json(name_mapping_from_json(EXAMPLE)) == EXAMPLE


def test_columns_are_found_by_each_of_their_names() -> None:
    by_name = name_mapping_from_json(EXAMPLE).fields_by_name
    assert by_name["id"] is by_name["record_id"]
    assert by_name["data"].field_id is None
    assert by_name["location"].fields_by_name["lat"] == MappedField(("latitude", "lat"), 5)
    assert "lat" not in by_name
    assert "location.lat" not in by_name


def test_names_may_be_left_out() -> None:
    assert name_mapping_from_json([{"field-id": 1}]) == NameMapping((MappedField((), 1),))


@pytest.mark.parametrize(
    "obj",
    [
        {"names": ["a"]},
        ["a"],
        [{"names": "a"}],
        [{"names": ["a"], "field-id": "1"}],
        [{"names": ["a"], "field-id": 1}, {"names": ["a"], "field-id": 2}],
        [{"names": ["a"], "fields": [{"names": ["b", "b"]}]}],
    ],
    ids=str,
)
def test_what_is_no_mapping_is_refused(obj: Any) -> None:
    with pytest.raises(InvalidMetadataError, match="name mapping"):
        name_mapping_from_json(obj)
