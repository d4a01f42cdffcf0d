"""What the command shows of catalogs and of the metadata of tables."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pyarrow as pa
import pytest
from command_line import Command
from rest_newer import newer_server
from rest_server import RestServer
from sql_functions import function

from icebergds import Catalog, load_catalog


def test_namespaces_and_tables_are_listed(lake: Catalog, icebergds: Command) -> None:
    assert icebergds("list", "--json").json == {"namespaces": ["db"]}
    assert icebergds("list", "db", "--json").json == {"namespaces": [], "tables": ["db.events"]}
    # A name may begin with that of the catalog.
    assert icebergds("list", "lake.db").out == "kind   name\ntable  db.events\n"
    place = ("--catalog", "own", "--warehouse", lake.properties["warehouse"], "--json")
    assert icebergds("list", "own.db", *place).json["tables"] == ["db.events"]
    assert icebergds("list", "own", *place).json == {"namespaces": ["db"]}
    assert icebergds("health", "own", *place).json["table"] == "own.db.events"
    assert icebergds("count", "own.db.events", *place).json == {"count": 3}
    assert icebergds("describe", "own.db.events", *place).json["name"] == "own.db.events"


@pytest.mark.parametrize("name", ["db.events", "lake.db.events", "location", "metadata file"])
def test_a_table_is_found_by_its_name_and_its_location(
    lake: Catalog, icebergds: Command, name: str
) -> None:
    table = lake.load_table("db.events")
    places = {"location": table.location(), "metadata file": table.metadata_location}
    found = icebergds("describe", places.get(name, name), "--json").json
    assert found["location"] == table.location()
    assert found["metadata_location"] == table.metadata_location
    assert found["current_snapshot"]["snapshot-id"] == table.metadata.current_snapshot_id
    assert icebergds("count", places.get(name, name)).out == "3\n"


def test_options_of_the_catalog_stand_before_or_after_the_command(
    lake: Catalog, icebergds: Command
) -> None:
    warehouse = lake.properties["warehouse"]
    for place in (("--catalog", "other"), ()):
        given = (*place, "--warehouse", warehouse)
        for words in (("count", "db.events", *given), (*given, "count", "db.events")):
            assert icebergds(*words).out == "3\n"
    assert icebergds("count", "db.events", "-p", f"warehouse={warehouse}").out == "3\n"


def test_columns_partitions_and_properties_are_shown(lake: Catalog, icebergds: Command) -> None:
    assert icebergds("schema", "db.events").out == dedent(
        """\
        id  name  type              comment
         1  id    long    required  the key
         2  name  string
         3  day   date
        """
    )
    assert icebergds("schema", "db.events", "--json").json["fields"][0] == {
        "id": 1,
        "name": "id",
        "required": True,
        "type": "long",
        "doc": "the key",
    }
    assert icebergds("spec", "db.events").out == dedent(
        """\
          id  name       transform  column
        1000  id_bucket  bucket[2]  id
        """
    )
    table = lake.load_table("db.events")
    assert icebergds("properties", "db.events", "--json").json == dict(table.properties)
    assert icebergds("properties", "db.events", "write.parquet.compression-codec").out == "zstd\n"
    assert icebergds("uuid", "db.events").out == f"{table.metadata.table_uuid}\n"
    assert icebergds("location", "db.events").out == f"{table.location()}\n"


def test_snapshots_refs_and_files_are_listed(lake: Catalog, icebergds: Command) -> None:
    table = lake.load_table("db.events")
    ids = [each.snapshot_id for each in table.snapshots()]
    assert [
        each["snapshot-id"] for each in icebergds("snapshots", "db.events", "--json").json
    ] == ids
    assert [each["snapshot_id"] for each in icebergds("history", "db.events", "--json").json] == ids
    (main,) = icebergds("refs", "db.events", "--json").json
    assert (main["name"], main["type"], main["snapshot_id"]) == ("main", "BRANCH", ids[-1])
    assert icebergds("list-refs", "db.events", "--type", "tag", "--json").json == []
    paths = set(table.inspect.files()["file_path"].to_pylist())
    assert {each["file_path"] for each in icebergds("files", "db.events", "--json").json} == paths
    first = icebergds("files", "db.events", "--snapshot", ids[0], "--json").json
    assert sum(each["record_count"] for each in first) == 2
    shown = icebergds("files", "db.events", "--where", "record_count > 5", "--columns", "file_path")
    assert shown.out == "none\n"
    assert len(icebergds("manifests", "db.events", "--json").json) == 2
    partitions = icebergds("partitions", "db.events", "--json").json
    assert sum(each["record_count"] for each in partitions) == 3


def test_configured_catalogs_are_tried_and_their_secrets_hidden(
    lake: Catalog, icebergds: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__GONE__URI", f"sqlite:///{tmp_path}/no/where.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__GONE__S3__SECRET_ACCESS_KEY", "hush")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__S3__ENDPOINT", "http://user:hush@host")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__KMS__CLIENT__KEYSTORE__PATH", "/safe/keys.json")
    found = icebergds("catalogs", "--json")
    assert "/safe/keys.json" in found.out
    gone, works = found.json
    assert (gone["name"], gone["works"]) == ("gone", False)
    assert gone["error"]
    assert (works["name"], works["works"], works["error"]) == ("lake", True, None)
    assert found.status == 1
    assert "hush" not in found.out + icebergds("catalogs").out


def test_a_catalog_whose_configuration_is_malformed_is_told_and_passed_over(
    lake: Catalog, icebergds: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text("catalog:\n  bad: 5\n  worse:\n    uri: [1]\n")
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    found = icebergds("catalogs", "--json")
    assert found.status == 1
    assert [(each["name"], each["works"]) for each in found.json] == [
        ("bad", False),
        ("lake", True),
        ("worse", False),
    ]
    assert "catalog.worse.uri is a list, expected a string" in found.json[2]["error"]


def test_a_warehouse_that_is_not_there_is_told(
    lake: Catalog, icebergds: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    monkeypatch.setenv("PYICEBERG_CATALOG__GONE__WAREHOUSE", str(gone))
    missing = f"its warehouse {gone} does not exist; the first table creates it"
    found = icebergds("catalogs", "--json")
    assert found.status == 1
    assert [(each["name"], each["error"]) for each in found.json] == [
        ("gone", missing),
        ("lake", None),
    ]
    assert icebergds("list", "--catalog", "gone").out == f"catalog gone is empty: {missing}\n"
    gone.mkdir()
    assert icebergds("catalogs").status == 0
    assert icebergds("list", "--catalog", "gone").out == "catalog gone is empty\n"


def test_a_namespace_is_described_by_its_properties(lake: Catalog, icebergds: Command) -> None:
    found = icebergds("describe", "db", "--entity", "namespace", "--json")
    assert found.json == lake.load_namespace_properties("db")
    assert icebergds("describe", "db", "--json").json == found.json


def test_what_is_not_there_is_told_with_what_is_near(lake: Catalog, icebergds: Command) -> None:
    told = icebergds("describe", "db.event")
    assert told.status == 2
    assert told.err.startswith("error: table lake.db.event: ")
    assert told.err.endswith("did you mean db.events?\n")
    assert told.err.count("\n") == 1
    as_json = icebergds("describe", "db.event", "--json")
    assert as_json.status == 2
    assert as_json.json["error"]["type"] == "NoSuchTableError"
    assert "did you mean db.events?" in as_json.json["error"]["message"]
    assert not as_json.err


def test_functions_and_labels_of_a_server_are_shown(icebergds: Command, rest: RestServer) -> None:
    with newer_server(rest) as server:
        catalog = load_catalog("c", uri=server.uri)
        catalog.create_namespace("n")
        server.labels["t"] = {
            "object-labels": {"tier": "gold"},
            "fields": [{"field-id": 1, "labels": {"pii": "no"}}],
        }
        catalog.create_table("n.t", "id int").set_properties({"k": "v"})
        server.functions["n", "f"] = function()
        place = ("--catalog", "c", "--uri", server.uri)
        listed = icebergds("list", "n", "--json", *place).json
        assert (listed["tables"], listed["functions"]) == (["n.t"], ["n.f"])
        assert icebergds("describe", "n.t", "--json", *place).json["labels"] == {
            "object_labels": {"tier": "gold"},
            "fields": [{"field_id": 1, "labels": {"pii": "no"}}],
        }
        assert "tier = gold, id: pii = no" in icebergds("describe", "n.t", *place).out


def test_files_of_tables_without_partitions_are_listed(lake: Catalog, icebergds: Command) -> None:
    table = lake.create_table("db.whole", "id int")
    assert icebergds("files", "db.whole").out == "none\n"
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    (file,) = icebergds("files", "db.whole", "--json").json
    assert list(file) == [
        "content",
        "file_path",
        "file_format",
        "record_count",
        "file_size_in_bytes",
    ]
    assert len(icebergds("files", "db.whole", "--history", "--json").json) == 1


def test_names_that_are_shown_can_be_given(lake: Catalog, icebergds: Command) -> None:
    lake.create_table("`x.y`.`t.z`", "id int")
    (_, shown) = icebergds("health", "lake", "--json").json
    assert shown["table"] == "lake.`x.y`.`t.z`"
    assert icebergds("count", shown["table"]).out == "0\n"
    assert icebergds("health", "`x.y`", "--json").json["table"] == shown["table"]


@pytest.mark.parametrize("name", ["db.a:b", "x:y.t", "`db`.`a:b`", "lake.db.a:b"])
def test_names_may_have_colons(
    lake: Catalog, icebergds: Command, name: str, tmp_path: Path
) -> None:
    assert icebergds("create", "table", name, "id int", "--yes").status == 0
    (tmp_path / "rows.csv").write_text("id\n7\n")
    assert icebergds("append", name, tmp_path / "rows.csv", "--yes").status == 0
    for place in ((), ("--catalog", "lake")):
        assert icebergds("scan", name, "--json", *place).json == [{"id": 7}]
        assert icebergds("health", name, *place).status == 0
    assert icebergds("drop", "table", name, "--yes").status == 0
    assert icebergds("list", "x:y" if "x:y" in name else "db").status == 0


def test_names_with_slashes_are_in_backticks(icebergds: Command, tmp_path: Path) -> None:
    place = ("--catalog", "sq", "--uri", f"sqlite:///{tmp_path}/c.db", "--warehouse", tmp_path)
    table = ("create", "table", "db.`a/b`", "id int", "--location", tmp_path / "t", "--yes")
    assert icebergds("create", "namespace", "db", "--yes", *place).status == 0
    assert icebergds(*table, *place).status == 0
    assert icebergds("count", "db.`a/b`", *place).out == "0\n"
    # Without backticks, it is a location.
    assert "no metadata file" in icebergds("count", "db.a/b", *place).err
    assert "db.a/b is a location" in icebergds("drop", "table", "db.a/b", "-y", *place).err
