"""Every command works on catalogs of every kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from command_line import Command

_KINDS = ["filesystem", "sqlite", "rest", "hive"]
Run = Callable[..., Any]


@pytest.fixture(params=_KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def place(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, ...]:
    """The options that name an empty catalog."""
    own = ("--catalog", "own")
    if kind == "rest":
        server = request.getfixturevalue("rest")
        return (*own, "--uri", server.uri(server.new_catalog()), "-p", "type=rest")
    warehouse = (*own, "--warehouse", str(tmp_path / "ware house"))
    if kind == "hive":
        return (*warehouse, "--uri", request.getfixturevalue("conditional_metastore").uri)
    return warehouse if kind == "filesystem" else (*warehouse, "--uri", f"sqlite:///{tmp_path}/c")


@pytest.fixture
def run(icebergds: Command, place: tuple[str, ...]) -> Run:
    """Runs a command, which has to end with a status, and returns its JSON."""

    def ran(*words: object, status: int = 0) -> Any:
        found = icebergds(*words, *place, "--json")
        assert found.status == status, (words, found.status, found.out, found.err)
        # The summary of a fleet follows a line for each action.
        is_summary = words[:2] == ("fleet", "maintain")
        return json.loads(found.out.splitlines()[-1]) if is_summary else found.json

    return ran


@pytest.fixture
def name(run: Run) -> str:
    """A table in a namespace of its own, with three rows in two snapshots."""
    namespace = f"n{uuid4().hex[:8]}"
    run("create", "namespace", namespace, "-y")
    name = f"{namespace}.events"
    columns = "id bigint NOT NULL, name string"
    run("create", "table", name, columns, "--partition", "bucket(2, id)", "-y")
    return name


def test_every_command_works_on_every_catalog(
    kind: str, run: Run, name: str, icebergds: Command, place: tuple[str, ...], tmp_path: Path
) -> None:
    file, namespace = tmp_path / "rows.ndjson", name.partition(".")[0]
    for rows in ('{"id": 1, "name": "one"}\n{"id": 2}', '{"id": 3, "name": "drei"}'):
        file.write_text(rows)
        assert run("append", name, file, "-y")["rows"] == rows.count("id")

    assert [namespace] == [each for each in run("list")["namespaces"] if each == namespace]
    assert run("list", namespace)["tables"] == [name]
    (catalog,) = run("catalogs")
    assert (catalog["works"], catalog["error"]) == (True, None)
    told = run("describe", name)
    assert (told["name"], told["format_version"]) == (f"own.{name}", 2)
    assert run("describe", namespace) is not None
    assert run("uuid", name)["uuid"] == told["table_uuid"]
    assert run("location", name)["location"] == told["location"]
    assert [each["name"] for each in run("schema", name)["fields"]] == ["id", "name"]
    assert run("spec", name)["fields"][0]["transform"] == "bucket[2]"

    run("set", name, "comment=mine", "-y")
    assert run("properties", name, "comment") == {"comment": "mine"}
    run("unset", name, "comment", "-y")
    assert "comment" not in run("properties", name)
    is_plain = kind == "filesystem"
    run("set", namespace, "a=1", "--namespace", "-y", status=2 if is_plain else 0)
    if not is_plain:
        assert run("describe", namespace, "--entity", "namespace")["a"] == "1"
        run("unset", namespace, "a", "--namespace", "-y")

    first, last = (each["snapshot-id"] for each in run("snapshots", name))
    run("branch", name, "audit", first, "-y")
    run("tag", name, "v1", "audit", "-y")
    assert {each["name"] for each in run("refs", name)} == {"main", "audit", "v1"}
    run("rollback", name, "--snapshot", first, "-y")
    run("cherry-pick", name, last, "-y")
    assert len(run("history", name)) >= 3

    assert run("count", name, "--where", "id > 1") == {"count": 2}
    assert sorted(row["id"] for row in run("scan", name)) == [1, 2, 3]
    assert run("explain", name, "--where", "id = 1")["counts"]["files"]["kept"] == 1
    assert sum(each["record_count"] for each in run("files", name)) == 3
    assert len(run("manifests", name)) == 2
    assert sum(each["record_count"] for each in run("partitions", name)) == 3
    found = run("diff", f"{name}@v1", "@", status=1)
    assert (found["rows"]["added"], found["added"][0]["id"]) == (1, 3)
    assert run("delete", name, "--where", "id = 99", "-y")["rows"] == 0

    assert run("health", namespace)["table"] == f"own.{name}"
    assert run("verify", name, "--depth", "rows")["is_sound"]
    steps = run("maintain", name, "--apply")["steps"]
    assert not [each for each in steps if each["state"] == "failed"]
    run("compact", name, "--option", "rewrite-all=true", "--apply")
    run("convert-deletes", name, "--apply")
    run("rewrite-manifests", name, "--apply")
    assert run("stats", name, status=1)["is_up_to_date"] is False
    run("stats", name, "--apply")
    words = ("expire", name, "--older-than", "0s", "--retain-last", 1)
    assert run(*words, status=1)["expired_snapshot_ids"]
    run(*words, "--apply")
    assert run("orphans", name)["orphan_files_count"] == 0
    assert run("upgrade", name, 3, "-y")["format_version"] == 3
    # The snapshot of the tag is kept.
    assert run("count", name, "--tag", "v1") == {"count": 2}
    assert run("verify", name, "--depth", "rows")["is_sound"]

    (table,) = run("fleet", "scan", namespace)["tables"]
    assert table["table"] == f"own.{name}"
    assert run("fleet", "maintain", namespace, "--apply")["summary"]["tables"] == 1

    moved = f"{namespace}.moved"
    metadata = run("describe", name)["metadata_location"]
    # The name of a table of a file system catalog is its place.
    run("rename", name, moved, "-y", status=2 if is_plain else 0)
    run("register", moved if is_plain else name, metadata, "-y", status=2 if is_plain else 0)
    assert run("count", name) == {"count": 3}
    if not is_plain:
        run("drop", "table", moved, "-y")
    run("drop", "namespace", namespace, "-y", status=2)
    run("drop", "table", name, "--purge", "-y")
    assert run("list", namespace)["tables"] == []
    assert icebergds("count", name, *place).status == 2
    if not is_plain:
        run("drop", "namespace", namespace, "-y")
        assert namespace not in run("list")["namespaces"]
