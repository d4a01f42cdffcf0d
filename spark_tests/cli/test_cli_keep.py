"""What the command says of the health of tables, and how it keeps them."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pyarrow as pa
import pytest
from built.schemas import optional, required
from command_line import Command

from icebergds import Catalog, ListType, Schema, StructType, Table, UUIDType, load_catalog


@pytest.fixture
def small(lake: Catalog) -> Table:
    """A table of many small files."""
    table = lake.create_table("db.inner.small", "id bigint")
    for id in range(8):
        table.append(pa.table({"id": [id]}))
    return table


def test_health_of_a_table_says_whether_there_is_something_to_do(
    lake: Catalog, icebergds: Command, small: Table
) -> None:
    sound, sick = icebergds("health", "db.events"), icebergds("health", "db.inner.small")
    assert (sound.status, sick.status) == (0, 1)
    assert sound.out == f"{lake.load_table('db.events').health()}\n"
    found = icebergds("health", small.location(), "--json").json
    assert found["files"]["count"] == 8
    assert [each["action"] for each in found["advice"]] == [
        each.action for each in small.health().advice
    ]


@pytest.mark.parametrize("target", ["db", "lake", None])
@pytest.mark.parametrize("jobs", [1, 3])
def test_health_of_many_tables_passes_over_a_broken_one(
    lake: Catalog, icebergds: Command, small: Table, target: str | None, jobs: int
) -> None:
    broken = lake.create_table("db.broken", "id int")
    Path(broken.metadata_location).write_text("{")
    words = ["health", *([target] if target else []), "--jobs", jobs]
    found = icebergds(*words, "--json")
    assert found.status == 2
    by_name = {each["table"]: each for each in found.json}
    assert by_name.keys() == {"lake.db.broken", "lake.db.events", "lake.db.inner.small"}
    assert "error" in by_name["lake.db.broken"]
    assert by_name["lake.db.inner.small"]["files"]["count"] == 8
    shown = icebergds(*words).out
    assert "lake.db.inner.small" in shown
    assert shown.endswith("3 tables, 1 with something to do, 1 failed\n")


def test_maintenance_is_a_dry_run_unless_it_is_applied(
    lake: Catalog, icebergds: Command, small: Table
) -> None:
    before = small.metadata_location
    dry = icebergds("maintain", "db", "--json")
    assert dry.status == 1
    steps = {each["table"]: each["steps"] for each in dry.json}
    assert [each["state"] for each in steps["lake.db.inner.small"]] != []
    assert small.refresh().metadata_location == before
    done = icebergds("maintain", "db", "--apply", "--jobs", 2, "--json")
    assert done.status == 0
    assert small.refresh().health().files.count == 1
    assert sorted(small.scan().to_arrow()["id"].to_pylist()) == list(range(8))


def test_each_action_is_a_command(lake: Catalog, icebergds: Command, small: Table) -> None:
    name = "db.inner.small"
    assert icebergds("compact", name).status == 1
    assert icebergds("compact", name, "--option", "rewrite-all=true").status == 2
    done = icebergds("compact", name, "--option", "rewrite-all=true", "--apply", "--json").json
    assert done["rewritten_data_files_count"] == 8
    assert icebergds("convert-deletes", name).status == 0
    assert icebergds("convert-deletes", name, "--apply").status == 0
    dry = icebergds("expire", name, "--older-than", "0s", "--retain-last", 1, "--json")
    assert (dry.status, len(dry.json["expired_snapshot_ids"])) == (1, 8)
    assert len(small.refresh().snapshots()) == 9
    words = ("expire", name, "--older-than", "0s", "--retain-last", 1, "--apply")
    assert icebergds(*words).status == 0
    assert len(small.refresh().snapshots()) == 1
    (Path(small.location()) / "data" / "left.parquet").write_bytes(b"")
    assert icebergds("orphans", name, "--json").json["orphan_files_count"] == 0
    assert icebergds("orphans", name, "--older-than", "1h").status == 2
    assert icebergds("rewrite-manifests", name).status == 0
    assert icebergds("rewrite-manifests", name, "--apply").status == 0
    assert icebergds("stats", name).status == 1
    assert icebergds("stats", name, "--apply", "--json").json["statistics_file"]["snapshot_id"]
    assert icebergds("stats", name).status == 0


def test_statistics_of_an_encrypted_table_are_allowed_by_its_property(
    lake: Catalog, icebergds: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.json"
    keys.touch(mode=0o600)
    keys.write_text(json.dumps({"k": base64.b64encode(bytes(32)).decode()}))
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__ENCRYPTION__KMS_TYPE", "keystore")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__KMS__CLIENT__KEYSTORE__PATH", str(keys))
    properties = {"format-version": "3", "encryption.key-id": "k"}
    table = load_catalog("lake").create_table("db.secret", "id bigint", properties=properties)
    table.append(pa.table({"id": [1, 2]}))
    for words in (["stats", "db.secret"], ["stats", "db.secret", "--apply"]):
        told = icebergds(*words)
        assert told.status == 2
        assert "set icebergds.statistics-in-clear = true" in told.err
    table.set_properties({"icebergds.statistics-in-clear": "true"})
    assert icebergds("stats", "db.secret").status == 1
    done = icebergds("stats", "db.secret", "--apply", "--json").json
    assert done["statistics_file"]["blob_metadata"][0]["properties"] == {"ndv": "2"}


def test_what_is_not_a_table_nor_a_namespace_is_told(lake: Catalog, icebergds: Command) -> None:
    told = icebergds("health", "db.evens")
    assert told.status == 2
    assert "did you mean db.events?; nor is db.evens a namespace or a catalog" in told.err


def test_a_table_is_verified(lake: Catalog, icebergds: Command) -> None:
    sound = icebergds("verify", "db.events", "--depth", "rows", "--json")
    assert (sound.status, sound.json["is_sound"], sound.json["findings"]) == (0, True, [])
    assert sound.json["looked"]["files_opened"] == len(lake.load_table("db.events").inspect.files())
    path = lake.load_table("db.events").inspect.files()["file_path"][0].as_py()
    Path(path).unlink()
    gone = icebergds("verify", "db.events", "--json")
    assert (gone.status, gone.json["is_sound"]) == (1, False)
    (finding,) = gone.json["findings"]
    assert finding["file"] == path
    assert icebergds("verify", "db.events", "--depth", "all").status == 2


def test_uuids_within_structs_and_lists_are_verified(
    lake: Catalog, icebergds: Command, tmp_path: Path
) -> None:
    uuid = required(3, "u", UUIDType())
    fields = (optional(1, "s", StructType((uuid,))), optional(2, "l", ListType(4, UUIDType())))
    lake.create_table("db.u", Schema(fields))
    file = tmp_path / "a.ndjson"
    value = "00000000-0000-0000-0000-000000000001"
    file.write_text(f'{{"s": {{"u": "{value}"}}, "l": ["{value}"]}}\n')
    assert icebergds("append", "db.u", file, "--yes").status == 0
    for depth in ("footers", "rows"):
        assert icebergds("verify", "db.u", "--depth", depth).status == 0


def test_a_branch_that_is_not_there_is_not_sound(lake: Catalog, icebergds: Command) -> None:
    told = icebergds("verify", "db.events", "--branch", "nosuch")
    assert (told.status, "'nosuch'" in told.err) == (2, True)
