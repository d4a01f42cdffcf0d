"""View metadata, its JSON and its updates."""

from __future__ import annotations

import json
from typing import Any

import pytest
from effort import examples
from hypothesis import given, strategies as st

from icebergds.errors import InvalidMetadataError, InvalidOptionError, UnsupportedFeatureError
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, STRING, NestedField
from icebergds.spec.updates.table_updates import (
    AssignUuid,
    RemoveProperties,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)
from icebergds.spec.views.json import (
    parse_view_metadata,
    serialise_view_metadata,
    view_metadata_to_json,
    view_update_to_json,
)
from icebergds.spec.views.metadata import ViewMetadata
from icebergds.spec.views.new_version import new_version_updates, new_view_updates
from icebergds.spec.views.updates import (
    SetCurrentViewVersion,
    ViewUpdate,
    apply_view_updates,
)

_SCHEMAS = (
    Schema((NestedField(1, "event_count", LONG, doc="Count of events"),)),
    Schema((NestedField(7, "event_count", LONG), NestedField(9, "day", STRING))),
)


def version(sql: str = "SELECT 1", now_ms: int = 10, schema: int = 0, **others: str) -> Any:
    return new_version_updates(
        _SCHEMAS[schema],
        {"spark": sql, **others},
        default_catalog=None,
        default_namespace=("db",),
        summary={"engine-name": "spark"},
        now_ms=now_ms,
    )


def new_view(**properties: str) -> ViewMetadata:
    updates = new_view_updates(
        version(), view_uuid="u-1", location="s3://b/v/", properties=properties
    )
    return apply_view_updates(None, updates, now_ms=10)


def changed(view: ViewMetadata, *updates: ViewUpdate, now_ms: int = 20) -> ViewMetadata:
    return apply_view_updates(view, updates, now_ms=now_ms)


def log(view: ViewMetadata) -> list[tuple[int, int]]:
    return [(entry.timestamp_ms, entry.version_id) for entry in view.version_log]


def test_a_new_view_has_one_version() -> None:
    view = new_view(comment="Daily")
    assert (view.view_uuid, view.location, view.current_version_id) == ("u-1", "s3://b/v", 1)
    assert view.schema().fields[0].name == "event_count"
    assert view.current_version().sql_for("SPARK") == "SELECT 1"
    assert view.current_version().sql_for("trino") is None
    assert log(view) == [(10, 1)]
    assert view.properties == {"comment": "Daily"}


def test_a_new_version_becomes_the_current_one_and_old_ones_stay() -> None:
    view = changed(new_view(), *version("SELECT 2", 15, schema=1))
    assert [v.version_id for v in view.versions] == [1, 2]
    assert view.current_version().sql_for("spark") == "SELECT 2"
    assert [field.field_id for field in view.schema().fields] == [1, 2]
    assert log(view) == [(10, 1), (15, 2)]


def test_the_same_definition_is_not_added_again() -> None:
    view = new_view()
    assert changed(view, *version(now_ms=99)) is view


def test_an_old_version_can_become_the_current_one_again() -> None:
    view = changed(new_view(), *version("SELECT 2", 15))
    back = changed(view, SetCurrentViewVersion(1), now_ms=30)
    assert back.current_version_id == 1
    assert log(back) == [(10, 1), (15, 2), (30, 1)]


def test_only_the_newest_versions_are_kept_and_the_log_begins_after_lost_ones() -> None:
    view = new_view(**{"version.history.num-entries": "2"})
    for number in range(2, 6):
        view = changed(view, *version(f"SELECT {number}", number * 10))
    assert [v.version_id for v in view.versions] == [4, 5]
    assert log(view) == [(40, 4), (50, 5)]


def test_the_current_version_is_kept_however_old() -> None:
    view = new_view(**{"version.history.num-entries": "1"})
    assert [v.version_id for v in changed(view, SetProperties({"a": "b"})).versions] == [1]


def test_properties_and_the_location_change() -> None:
    view = changed(new_view(a="1", b="2"), SetProperties({"a": "3"}), RemoveProperties(("b",)))
    assert view.properties == {"a": "3"}
    assert changed(view, SetLocation("s3://b/w")).location == "s3://b/w"


@pytest.mark.parametrize(
    ("updates", "error", "says"),
    [
        ([AssignUuid("u-2")], InvalidMetadataError, "u-1"),
        ([UpgradeFormatVersion(2)], UnsupportedFeatureError, "format version 2"),
        ([SetCurrentViewVersion(5)], InvalidMetadataError, "no version 5"),
        ([SetLocation("")], InvalidMetadataError, "location"),
        (version(Spark="SELECT 3"), InvalidOptionError, "more than one query in the dialect spark"),
    ],
)
def test_wrong_updates_are_refused(
    updates: list[ViewUpdate], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        changed(new_view(), *updates)


def test_a_dialect_is_dropped_only_if_that_is_allowed() -> None:
    view = changed(new_view(), *version("SELECT 2", trino="SELECT 2"))
    with pytest.raises(InvalidOptionError, match="trino"):
        changed(view, *version("SELECT 3"))
    allowed = SetProperties({"replace.drop-dialect.allowed": "true"})
    assert changed(view, allowed, *version("SELECT 3")).current_version_id == 3


@pytest.mark.parametrize("sql", [{}, {"spark": " "}, {"": "SELECT 1"}])
def test_a_view_without_a_query_is_refused(sql: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError, match="needs the text of a query"):
        new_version_updates(
            _SCHEMAS[0],
            sql,
            default_catalog=None,
            default_namespace=(),
            summary={},
            now_ms=1,
        )


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), max_size=12), st.booleans())
def test_metadata_is_read_as_it_was_written(queries: list[tuple[int, int]], compress: bool) -> None:
    view = new_view(**{"version.history.num-entries": "3"})
    for number, (query, schema) in enumerate(queries):
        view = changed(view, *version(f"SELECT {query}", 100 + number, schema))
    data = serialise_view_metadata(view, compress)
    assert parse_view_metadata(data, "its file") == view
    assert {entry.version_id for entry in view.version_log} <= set(view.versions_by_id)


def test_members_that_nobody_knows_are_kept() -> None:
    document = view_metadata_to_json(new_view())
    document["future"] = {"a": [1]}
    document["versions"][0]["future"] = 1
    document["versions"][0]["representations"].append({"type": "substrait", "plan": "x"})
    document["version-log"][0]["future"] = 2
    read = parse_view_metadata(json.dumps(document).encode(), "its file")
    assert view_metadata_to_json(read) == document


@pytest.mark.parametrize(
    ("member", "value", "says"),
    [
        ("format-version", 2, "format version 2 of views"),
        ("current-version-id", 9, "'current-version-id' is 9"),
        ("versions", None, "lacks 'versions'"),
        ("schemas", [], "has schema 0, which is not listed"),
        ("version-log", [1], "an entry of 'version-log'"),
    ],
)
def test_damaged_metadata_is_refused_by_name(member: str, value: object, says: str) -> None:
    document = {**view_metadata_to_json(new_view()), member: value}
    with pytest.raises((InvalidMetadataError, UnsupportedFeatureError), match=says) as raised:
        parse_view_metadata(json.dumps(document).encode(), "db/v1.json")
    assert "view metadata db/v1.json" in str(raised.value)


def test_updates_have_the_names_of_the_rest_specification() -> None:
    actions = [view_update_to_json(update)["action"] for update in version()]
    assert actions == ["add-schema", "add-view-version", "set-current-view-version"]
