"""What the command changes, and that it asks before."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command_line import Command

from icebergds import Catalog, load_catalog

_RUN = "from icebergds.cli.main import main; main()"
# What starts the tests may ignore Ctrl-C.
_HEARING = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {_RUN}"


def ids(lake: Catalog, table: str = "db.events", **of: str) -> list[int]:
    found: list[int] = lake.load_table(table).scan(**of).to_arrow()["id"].to_pylist()
    return sorted(found)


def test_a_table_is_created_and_dropped(lake: Catalog, icebergds: Command) -> None:
    created = icebergds(
        *("create", "table", "lake.db.new", "id bigint NOT NULL, ts timestamp"),
        *("--partition", "days(ts)", "--sort", "ts desc", "--identifier", "id"),
        *("--set", "format-version=3", "--set", "comment=new", "--yes", "--json"),
    )
    table = lake.load_table("db.new")
    location = table.location()
    assert created.json == {"done": "created", "table": "lake.db.new", "location": location}
    assert str(table.spec().fields[0].transform) == "day"
    assert table.sort_order().fields[0].direction == "desc"
    assert table.schema().identifier_field_ids == (1,)
    assert (table.metadata.format_version, table.properties["comment"]) == (3, "new")
    assert icebergds("drop", "table", "db.new", "--purge", "--yes").status == 0
    assert not lake.table_exists("db.new")
    assert not list(Path(location).rglob("*.json"))


def test_namespaces_are_created_set_and_dropped(icebergds: Command, tmp_path: Path) -> None:
    place = ("--catalog", "c", "--uri", f"sqlite:///{tmp_path}/c.db", "--warehouse", tmp_path)
    assert icebergds("create", "namespace", "n", "--set", "a=1", "--yes", *place).status == 0
    assert icebergds("set", "n", "b=2", "--namespace", "--yes", *place).status == 0
    assert icebergds("unset", "n", "a", "--namespace", "--yes", *place).status == 0
    assert icebergds("describe", "n", *place, "--json").json == {"b": "2"}
    icebergds("create", "table", "n.t", "id int", "--yes", *place)
    assert icebergds("rename", "n.t", "n.u", "--yes", *place).status == 0
    assert icebergds("list", "n", "--json", *place).json["tables"] == ["n.u"]
    told = icebergds("drop", "namespace", "n", "--yes", *place)
    assert (told.status, "not empty" in told.err) == (2, True)
    metadata = icebergds("describe", "n.u", "--json", *place).json["metadata_location"]
    assert icebergds("drop", "table", "n.u", "--yes", *place).status == 0
    assert icebergds("register", "n.t", metadata, "--yes", *place).status == 0
    assert icebergds("list", "n", "--json", *place).json["tables"] == ["n.t"]


def test_tables_and_views_are_registered_replaced_and_unregistered(
    icebergds: Command, tmp_path: Path
) -> None:
    place = ("--catalog", "c", "--uri", f"sqlite:///{tmp_path}/c.db", "--warehouse", tmp_path)
    icebergds("create", "namespace", "n", "--yes", *place)
    icebergds("create", "table", "n.t", "id int", "--yes", *place)
    first = icebergds("describe", "n.t", "--json", *place).json["metadata_location"]
    icebergds("set", "n.t", "a=1", "--yes", *place)
    assert icebergds("register", "n.t", first, "--yes", *place).status == 2
    assert icebergds("register", "n.t", first, "--overwrite", "--yes", *place).status == 0
    assert "a" not in icebergds("properties", "n.t", "--json", *place).json
    done = icebergds("unregister", "n.t", "--yes", "--json", *place).json
    assert done == {"done": "unregistered", "table": "c.n.t", "metadata_location": first}
    assert icebergds("list", "n", "--json", *place).json["tables"] == []

    catalog = load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    view = catalog.create_view("n.v", "id int", "SELECT 1 AS id")
    words = ("register", "n.w", view.metadata_location, "--view", "--yes")
    assert icebergds(*words, *place).status == 0
    assert icebergds("list", "n", "--json", *place).json["views"] == ["n.v", "n.w"]
    told = icebergds(*words, "--overwrite", *place)
    assert (told.status, "--overwrite replaces tables" in told.err) == (2, True)


def test_properties_are_set_and_removed(lake: Catalog, icebergds: Command) -> None:
    assert icebergds("set", "db.events", "a=1", "b=x=y", "--yes").status == 0
    properties = lake.load_table("db.events").properties
    assert (properties["a"], properties["b"]) == ("1", "x=y")
    done = icebergds("unset", "db.events", "a", "none", "--yes", "--json").json
    assert done == {"done": "removed", "table": "lake.db.events", "properties": ["a"]}
    assert "a" not in lake.load_table("db.events").properties


def test_branches_and_tags_are_made_moved_and_deleted(lake: Catalog, icebergds: Command) -> None:
    first, last = (each.snapshot_id for each in lake.load_table("db.events").snapshots())
    assert icebergds("branch", "db.events", "audit", first, "--yes").status == 0
    assert icebergds("tag", "db.events", "v1", "audit", "--keep-days", 2, "--yes").status == 0
    refs = lake.load_table("db.events").refs()
    assert (refs["audit"].snapshot_id, refs["v1"].snapshot_id) == (first, first)
    assert refs["v1"].max_ref_age_ms == 2 * 86_400_000
    assert icebergds("branch", "db.events", "audit", last, "--yes").status == 2
    assert icebergds("branch", "db.events", "audit", last, "--replace", "--yes").status == 0
    assert lake.load_table("db.events").refs()["audit"].snapshot_id == last
    assert icebergds("tag", "db.events", "v1", "--delete", "--yes").status == 0
    assert "v1" not in lake.load_table("db.events").refs()


def test_a_table_goes_back_and_takes_a_snapshot_again(lake: Catalog, icebergds: Command) -> None:
    first, last = (each.snapshot_id for each in lake.load_table("db.events").snapshots())
    assert icebergds("rollback", "db.events", "--snapshot", first, "--yes").status == 0
    assert ids(lake) == [1, 2]
    assert icebergds("cherry-pick", "db.events", last, "--yes").status == 0
    assert ids(lake) == [1, 2, 3]
    assert (
        icebergds("rollback", "db.events", "--timestamp", "2020-01-01T00:00:00Z", "-y").status == 2
    )
    assert icebergds("upgrade", "db.events", 3, "--yes", "--json").json["format_version"] == 3


def test_rows_and_files_are_added(lake: Catalog, icebergds: Command, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,id\nvier,4\n,5\n")
    (tmp_path / "a.json").write_text('[{"id": 6, "day": "2026-01-02"}, {"id": 7}]')
    pq.write_table(lake.load_table("db.events").scan("id = 1").to_arrow(), tmp_path / "a.parquet")
    assert icebergds("append", "db.events", tmp_path / "a.csv", "-y", "--json").json["rows"] == 2
    assert icebergds("append", "db.events", tmp_path / "a.json", "-y").status == 0
    assert icebergds("append", "db.events", tmp_path / "a.parquet", "-y").status == 0
    assert ids(lake) == [1, 1, 2, 3, 4, 5, 6, 7]
    icebergds("branch", "db.events", "b", "-y")
    icebergds("append", "db.events", tmp_path / "a.csv", "--branch", "b", "-y")
    assert len(ids(lake, branch="b")) == 10
    assert len(ids(lake)) == 8
    lake.create_table("db.plain", "id bigint, name string, day date")
    added = icebergds("add-files", "db.plain", tmp_path / "a.parquet", "-y", "--json").json
    assert added["files"] == 1
    assert ids(lake, "db.plain") == [1]


def test_rows_that_match_are_deleted(lake: Catalog, icebergds: Command) -> None:
    told = icebergds("delete", "db.events", "--where", "id = 2", "-y", "--json").json
    assert told["rows"] == 1
    assert told["snapshot_id"] == lake.load_table("db.events").current_snapshot().snapshot_id
    assert ids(lake) == [1, 3]
    assert icebergds("delete", "db.events", "--where", "upper(name) = 'ONE'", "-y").status == 2
    assert ids(lake) == [1, 3]


def test_a_pipe_is_refused_and_nothing_is_changed(lake: Catalog, icebergds: Command) -> None:
    before = lake.load_table("db.events").metadata_location
    for words in (
        ("set", "db.events", "a=1"),
        ("drop", "table", "db.events"),
        ("upgrade", "db.events", 3),
        ("branch", "db.events", "b"),
        ("delete", "db.events", "--where", "id = 1"),
    ):
        told = icebergds(*words)
        assert told.status == 2
        assert "nobody can be asked here; give --yes" in told.err
    assert lake.load_table("db.events").metadata_location == before


@pytest.mark.parametrize(("answer", "status", "value"), [("y", 0, "1"), ("n", 1, None)])
def test_a_terminal_is_asked(lake: Catalog, answer: str, status: int, value: str | None) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "r+b", buffering=0) as terminal:
        command = [sys.executable, "-c", _RUN, "set", "db.events", "a=1"]
        process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        while b"[y/N]" not in shown:
            shown += terminal.read(1000)
        terminal.write(f"{answer}\n".encode())
        assert process.wait() == status
    assert b": set a=1 of table lake.db.events" in shown
    assert lake.load_table("db.events").properties.get("a") == value


def test_a_question_that_is_not_answered_changes_nothing(lake: Catalog) -> None:
    for key, status, told in ((b"\x03", 130, b"interrupted"), (b"\x04", 1, b"nothing was changed")):
        ours, theirs = pty.openpty()
        with os.fdopen(ours, "r+b", buffering=0) as terminal:
            command = [sys.executable, "-c", _HEARING, "set", "db.events", "a=1\n[red]Do it"]
            process = subprocess.Popen(
                command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
            )
            shown = b""
            while b"[y/N]" not in shown:
                shown += terminal.read(1000)
            # A line break in a value must not look like another question.
            assert b"a=1\\n[red]Do it" in shown
            if key == b"\x03":
                process.send_signal(signal.SIGINT)
            else:
                terminal.write(key)
            assert process.wait() == status
            os.close(theirs)
            assert told in shown + terminal.read(1000)
    assert "a" not in lake.load_table("db.events").properties


def test_an_output_that_is_full_is_an_error(lake: Catalog) -> None:
    for words in (("count", "db.events", "--json"), ("count", "db.events")):
        with Path("/dev/full").open("w") as full:
            ran = subprocess.run(
                [sys.executable, "-c", _RUN, *words],
                stdout=full,
                stderr=subprocess.PIPE,
                check=False,
            )
        assert ran.returncode == 2
        assert ran.stderr.startswith(b"error: ")
        assert ran.stderr.count(b"\n") == 1


def test_wrong_options_are_told_as_json_if_that_is_asked_for(lake: Catalog) -> None:
    for words in (
        ("scan",),
        ("scan", "db.events", "--limit", "abc"),
        ("scan", "db.events", "--nope"),
        ("nosuch",),
        ("append", "db.events", "nofile.csv"),
    ):
        command = [sys.executable, "-c", _RUN, *words, "--json"]
        ran = subprocess.run(command, capture_output=True, check=False)
        assert ran.returncode == 2
        assert json.loads(ran.stdout)["error"]["message"]
    command = [sys.executable, "-c", _RUN, "count", "db.events", "--json"]
    assert json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
