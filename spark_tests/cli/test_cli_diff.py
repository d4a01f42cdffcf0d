"""The command compares snapshots, branches, tags and tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from command_line import Command

from icebergds import BinaryType, Catalog, NestedField, Schema, UUIDType


@pytest.fixture
def changed(lake: Catalog) -> list[int]:
    """A table with a key, of which a row is changed, one removed and one added; its snapshots."""
    table = lake.create_table("db.keyed", "id bigint NOT NULL, name string", identifier_fields="id")
    kinds = table.scan().to_arrow().schema
    table.append(pa.table({"id": [1, 2, 3], "name": ["one", "two", None]}, schema=kinds))
    table.manage_snapshots().create_tag("v1").commit()
    table.overwrite(pa.table({"id": [1, 2, 4], "name": ["one", "zwei", "four"]}, schema=kinds))
    return [each.snapshot_id for each in table.snapshots()]


def test_changes_are_shown_by_key(icebergds: Command, changed: list[int]) -> None:
    first, last = changed[0], changed[-1]
    for words in (
        ("db.keyed@v1", "@"),
        ("db.keyed@v1", "@main"),
        (f"db.keyed@{first}", f"@{last}"),
        (f"db.keyed@{first}", "db.keyed"),
    ):
        ran = icebergds("diff", *words, "--json")
        assert ran.status == 1
        found = ran.json
        assert found["by"] == ["id"]
        assert found["rows"] == {"removed": 1, "added": 1, "changed": 1}
        assert found["removed"] == [{"id": 3, "name": None}]
        assert found["added"] == [{"id": 4, "name": "four"}]
        assert found["changed"] == [
            {"key": {"id": 2}, "column": "name", "before": "two", "after": "zwei"}
        ]
    shown = icebergds("diff", "db.keyed@v1", "@").out
    assert "rows       1 removed, 1 added, 1 changed\n" in shown
    assert shown.endswith("id  column  before  after\n2   name    two     zwei\n1 row changed\n")


def test_what_is_the_same_ends_well(icebergds: Command, changed: list[int]) -> None:
    same = icebergds("diff", "db.keyed@main", "@", "--json")
    assert (same.status, same.json["rows"]) == (0, {"removed": 0, "added": 0, "changed": 0})
    some = icebergds("diff", "db.keyed@v1", "@", "--where", "id = 1")
    assert some.status == 0


def test_a_summary_reads_no_row(lake: Catalog, icebergds: Command, changed: list[int]) -> None:
    found = icebergds("diff", "db.keyed@v1", "@", "--summary", "--json")
    assert (found.status, found.json["rows"]) == (1, None)
    assert found.json["files"]["added"]["rows"] == 3
    columns = icebergds("diff", "db.keyed", "db.events", "--summary", "--json").json["columns"]
    assert {"name": "day", "before": None, "after": "day date"} in columns


def test_another_ref_is_told(icebergds: Command, changed: list[int]) -> None:
    told = icebergds("diff", "db.keyed@v2", "@")
    assert told.status == 2
    assert "has no branch or tag 'v2'; there are main, v1" in told.err


def test_the_snapshots_that_were_compared_are_told(
    lake: Catalog, icebergds: Command, changed: list[int]
) -> None:
    first, last = changed[0], changed[-1]
    found = icebergds("diff", "db.keyed@v1", "@main", "--json").json
    assert (found["before_at"]["ref"], found["after_at"]["ref"]) == ("tag v1", "branch main")
    assert found["before_at"]["snapshot_id"] == first
    assert found["after_at"]["snapshot_id"] == last
    shown = icebergds("diff", f"db.keyed@{first}", "@").out
    assert f"before     lake.db.keyed, snapshot {first} of 20" in shown
    assert f"after      lake.db.keyed, snapshot {last} of 20" in shown
    lake.create_table("db.empty", "id bigint, name string")
    empty = icebergds("diff", "db.keyed", "db.empty").out
    assert "after      lake.db.empty, no snapshot\n" in empty


def test_columns_that_are_not_compared_are_told(
    lake: Catalog, icebergds: Command, changed: list[int]
) -> None:
    lake.create_table("db.other", "id bigint, name int")
    ran = icebergds("diff", "db.keyed", "db.other")
    assert "rows       3 removed, 0 added\n" in ran.out
    assert "without    name, of other types on both sides\n" in ran.out
    assert icebergds("diff", "db.keyed", "db.other", "--json").json["not_compared"] == ["name"]
    refused = icebergds("diff", "db.keyed", "db.other", "--by", "name")
    assert "--by 'name': not a column that both sides have, with one type" in refused.err


def test_uuids_of_both_tables_are_shown_as_such(
    lake: Catalog, icebergds: Command, tmp_path: Path
) -> None:
    # The ids of the columns are swapped between the tables.
    for name, columns in (("db.x", ("u", "b")), ("db.y", ("b", "u"))):
        kinds = {"u": UUIDType(), "b": BinaryType()}
        fields = [NestedField(at, name, kinds[name]) for at, name in enumerate(columns, start=1)]
        lake.create_table(name, Schema(tuple(fields)))
        file = tmp_path / f"{name}.ndjson"
        digit = 1 if name == "db.x" else 2
        file.write_text(f'{{"u": "00000000-0000-0000-0000-00000000000{digit}", "b": "ff"}}\n')
        assert icebergds("append", name, file, "--yes").status == 0
    found = icebergds("diff", "db.x", "db.y", "--json").json
    assert found["removed"] == [{"b": "ff", "u": "00000000-0000-0000-0000-000000000001"}]
    assert found["added"] == [{"b": "ff", "u": "00000000-0000-0000-0000-000000000002"}]


@pytest.mark.parametrize("name", ["feature/x", "a@b"])
def test_a_branch_of_any_name_is_compared(
    icebergds: Command, changed: list[int], name: str
) -> None:
    assert icebergds("branch", "db.keyed", name, "v1", "--yes").status == 0
    for words in ((f"db.keyed@{name}", "@main"), ("db.keyed", f"@{name}")):
        assert icebergds("diff", *words).status == 1
    assert icebergds("diff", "db.keyed@v1", f"@{name}").status == 0
