"""Where data files go."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

import pytest
from built.schemas import spec_of
from hypothesis import given, strategies as st
from pyiceberg.table.locations import load_location_provider

from icebergds.errors import InvalidOptionError, UnsupportedFeatureError
from icebergds.spec.manifest import FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import IdentityTransform, VoidTransform
from icebergds.spec.types import STRING, NestedField
from icebergds.write.locations import FileNames, LocationProvider

SCHEMA = Schema((NestedField(1, "c", STRING),))
BY_C = spec_of((1, IdentityTransform()))
HASHED = {"write.object-storage.enabled": "true"}


def location(name: str = "f", table: str = "s3://b/db/t", **properties: str) -> str:
    renamed = {key.replace("__", ".").replace("_", "-"): text for key, text in properties.items()}
    return LocationProvider.of(table, renamed).location(name, PartitionSpec(), SCHEMA, ())


def test_data_files_are_under_data() -> None:
    assert location() == "s3://b/db/t/data/f"
    assert location(table="s3://b/db/t/") == "s3://b/db/t/data/f"


def test_a_property_names_another_directory() -> None:
    assert location(write__data__path="s3://other/d/") == "s3://other/d/f"
    assert location(write__folder_storage__path="s3://old") == "s3://old/f"


def test_partitions_are_directories_with_escaped_values() -> None:
    provider = LocationProvider.of("/t", {})
    assert provider.location("f", BY_C, SCHEMA, ("a/b c",)) == "/t/data/p0=a%2Fb+c/f"
    assert provider.location("f", BY_C, SCHEMA, (None,)) == "/t/data/p0=null/f"


def _directory(value: str) -> str:
    location = LocationProvider.of("/t", {}).location("f", BY_C, SCHEMA, (value,))
    return location.removeprefix("/t/data/").removesuffix("/f")


def test_directories_that_are_no_longer_than_file_names_are_left_alone() -> None:
    assert _directory("a" * 252) == "p0=" + "a" * 252


def test_longer_directories_keep_their_beginning_and_end_in_a_hash() -> None:
    long = _directory("a" * 253)
    assert len(long) == 255
    assert re.fullmatch("p0=a{219}-[0-9a-f]{32}", long)
    assert long != _directory("a" * 254)


@pytest.mark.parametrize("character", ["/", "é", "漢", "😀"])
@pytest.mark.parametrize("before", range(12))
def test_directories_are_not_cut_within_a_character(character: str, before: int) -> None:
    value = "a" * before + character * 300
    directory = _directory(value)
    assert 240 < len(directory) <= 255
    beginning = unquote_plus(directory.rpartition("-")[0], errors="strict")
    assert f"p0={value}".startswith(beginning)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=50, max_size=400))
def test_every_value_has_a_directory_that_is_a_file_name(value: str) -> None:
    assert len(_directory(value).encode()) <= 255


def test_a_spec_of_dropped_fields_has_no_directories() -> None:
    spec = spec_of((1, VoidTransform()))
    assert LocationProvider.of("/t", {}).location("f", spec, SCHEMA, (None,)) == "/t/data/f"


@pytest.mark.parametrize(
    ("name", "directories"),
    [("a", "0101/0110/1001/10110010"), ("b", "1110/0111/1110/00000011")],
)
def test_object_storage_hashes_the_name_to_directories(name: str, directories: str) -> None:
    # The values of Java Iceberg's own tests.
    provider = LocationProvider.of("s3://b/db/t", HASHED)
    at = provider.location(name, PartitionSpec(), SCHEMA, ())
    assert at == f"s3://b/db/t/data/{directories}/{name}"


@given(st.text("abc/=-09ü", min_size=1), st.booleans(), st.booleans())
def test_object_storage_is_laid_out_as_by_pyiceberg(name: str, shown: bool, within: bool) -> None:
    properties = {**HASHED, "write.object-storage.partitioned-paths": str(shown).lower()}
    if within:
        properties["write.data.path"] = "s3://b/db/t/elsewhere"
    ours = LocationProvider.of("s3://b/db/t", properties)
    theirs = load_location_provider("s3://b/db/t", properties)
    assert ours.location(name, PartitionSpec(), SCHEMA, ()) == theirs.new_data_location(name)


def test_hashed_locations_show_the_partition_unless_told_not_to() -> None:
    shown = LocationProvider.of("/t", HASHED).location("f", BY_C, SCHEMA, ("x",))
    assert shown.endswith("/p0=x/f")
    properties = {**HASHED, "write.object-storage.partitioned-paths": "false"}
    hidden = LocationProvider.of("/t", properties).location("f", BY_C, SCHEMA, ("x",))
    assert "p0" not in hidden
    assert hidden.endswith("-f")


@pytest.mark.parametrize(
    ("table", "context"), [("s3://b/db/t", "db/t"), ("s3://b/t", "t"), ("/w/db/t", "db/t")]
)
def test_hashed_locations_outside_of_the_table_name_it(table: str, context: str) -> None:
    properties = {**HASHED, "write.data.path": "s3://shared"}
    at = LocationProvider.of(table, properties).location("f", PartitionSpec(), SCHEMA, ())
    assert re.fullmatch(rf"s3://shared/[01]{{4}}/[01]{{4}}/[01]{{4}}/[01]{{8}}/{context}/f", at)


def test_an_implementation_of_the_users_own_is_refused_by_name() -> None:
    properties = {"write.location-provider.impl": "com.example.Mine"}
    with pytest.raises(UnsupportedFeatureError, match=r"write\.location-provider\.impl.*Mine"):
        LocationProvider.of("/t", properties)


def test_a_flag_that_is_no_flag_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"write\.object-storage\.enabled"):
        LocationProvider.of("/t", {"write.object-storage.enabled": "yes"})


def test_names_differ_between_tasks_attempts_operations_and_files() -> None:
    names = {
        FileNames(task, attempt, operation).name(count, FileFormat.PARQUET)
        for task in (0, 1)
        for attempt in (0, 1)
        for operation in ("x", "y")
        for count in (0, 1)
    }
    assert len(names) == 16
    assert "00001-0-x-00001.parquet" in names


@pytest.mark.parametrize("path", ["", "relative/dir", "./data"])
def test_a_location_of_data_is_absolute(path: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"write\.data\.path.*expected an absolute"):
        LocationProvider.of("/t", {"write.data.path": path})
