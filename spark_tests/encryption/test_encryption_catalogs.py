"""Encrypted tables in every catalog: created, written, read, and refused where that is due."""

from __future__ import annotations

from pathlib import Path

import pytest
from encrypted_tables import KEY_ID, SCHEMA, catalog_with_keys, ids_of, rows, stored_files

from icebergds import delete_reachable_files, load_catalog, load_table
from icebergds.errors import InvalidOptionError, UnsupportedFeatureError
from icebergds.spec.table_properties import ENCRYPTION_DATA_KEY_LENGTH

_KMS = {"encryption.kms-impl": "key_services.MemoryClient"}
_ENCRYPTED = {"format-version": "3", KEY_ID: "keyA"}
_CATALOGS = ["filesystem", "sql", "glue", "dynamodb", "rest", "hive"]


def _properties(kind: str, directory: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """How a catalog of a kind is reached, without a key service."""
    warehouse = {"type": kind, "warehouse": str(directory / "warehouse")}
    match kind:
        case "sql":
            return {**warehouse, "uri": f"sqlite:///{directory}/catalog.db"}
        case "glue" | "dynamodb":
            server = request.getfixturevalue("moto")
            return {**server.properties(kind), **warehouse}
        case "rest":
            rest = request.getfixturevalue("rest")
            return {"type": kind, "uri": rest.uri(rest.new_catalog())}
        case "hive":
            return {**warehouse, "uri": request.getfixturevalue("conditional_metastore").uri}
    return warehouse


@pytest.mark.parametrize("kind", _CATALOGS)
def test_tables_of_a_catalog_are_encrypted(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    properties = _properties(kind, tmp_path, request)
    catalog = load_catalog("c", location_map=None, **properties, **_KMS)
    catalog.create_namespace_if_not_exists("db")
    table = catalog.create_table("db.t", SCHEMA, properties=_ENCRYPTED)
    table.append(rows(1, 2))
    table.append(rows(3))
    table.set_properties({"a": "b"})
    found = load_catalog("c", location_map=None, **properties, **_KMS).load_table("db.t")
    assert ids_of(found) == [1, 2, 3]
    assert {path.read_bytes()[:4] for path in stored_files(found)} == {b"AGS1", b"PARE"}
    plain = load_catalog("c", location_map=None, **properties)
    with pytest.raises(UnsupportedFeatureError, match=r"key 'keyA'; set encryption\.kms-type"):
        plain.load_table("db.t").append(rows(4))
    with pytest.raises(UnsupportedFeatureError, match=r"key 'keyA'; set encryption\.kms-type"):
        plain.create_table("db.u", SCHEMA, properties=_ENCRYPTED)
    assert not plain.table_exists("db.u")
    for change in ({KEY_ID: "keyB"}, {KEY_ID: ""}):
        with pytest.raises(InvalidOptionError, match="'keyA' cannot be changed"):
            found.set_properties(change)
    with pytest.raises(InvalidOptionError, match="'keyA' cannot be removed"):
        found.remove_properties(KEY_ID)
    assert ids_of(catalog.load_table("db.t")) == [1, 2, 3]


def test_a_table_at_a_location_has_the_key_service_of_its_options(tmp_path: Path) -> None:
    created = catalog_with_keys(tmp_path).create_table("db.t", SCHEMA, properties=_ENCRYPTED)
    location = created.location()
    table = load_table(location, properties=_KMS)
    table.append(rows(1))
    assert ids_of(load_table(location, properties=_KMS)) == [1]
    with pytest.raises(UnsupportedFeatureError, match=r"key 'keyA'; set encryption\.kms-type"):
        ids_of(load_table(location))
    with pytest.raises(InvalidOptionError, match=r"table .*both encryption\.kms-type"):
        load_table(location, properties={**_KMS, "encryption.kms-type": "aws"})


def test_a_catalog_may_prescribe_a_master_key(tmp_path: Path) -> None:
    prescribed = {
        "table-default.format-version": "3",
        f"table-override.{KEY_ID}": "keyB",
        "table-default.encryption.data-key-length": "32",
    }
    table = catalog_with_keys(tmp_path, **prescribed).create_table("db.t", SCHEMA)
    table.append(rows(1))
    assert table.properties[KEY_ID] == "keyB"
    assert ENCRYPTION_DATA_KEY_LENGTH.of(table.properties) == 32
    keys = table._state.metadata.encryption_keys
    assert {key.encrypted_by_id for key in keys} == {"keyB", keys[0].key_id}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format-version": "2"}, r"encryption\.key-id needs format version 3"),
        ({"encryption.data-key-length": "20"}, "'20', expected 16, 24 or 32"),
        ({KEY_ID: ""}, r"encryption\.key-id is '', expected the id of a key"),
        ({KEY_ID: " keyA"}, r"encryption\.key-id is ' keyA', expected .* without spaces"),
    ],
)
def test_what_cannot_be_encrypted_is_not_created(
    changes: dict[str, str], said: str, tmp_path: Path
) -> None:
    catalog = catalog_with_keys(tmp_path)
    with pytest.raises(InvalidOptionError, match=said):
        catalog.create_table("db.t", SCHEMA, properties={**_ENCRYPTED, **changes})
    assert not catalog.table_exists("db.t")


def test_a_plain_table_stays_plain_where_there_is_a_key_service(tmp_path: Path) -> None:
    table = catalog_with_keys(tmp_path).create_table("db.t", SCHEMA)
    table.append(rows(1))
    assert {path.read_bytes()[:4] for path in stored_files(table)} == {b"Obj\x01", b"PAR1"}
    with pytest.raises(InvalidOptionError, match="cannot be set on a table that exists"):
        table.set_properties({**_ENCRYPTED})


def test_the_files_of_a_metadata_file_are_deleted_with_the_keys_of_its_lists(
    tmp_path: Path,
) -> None:
    table = catalog_with_keys(tmp_path).create_table("db.t", SCHEMA, properties=_ENCRYPTED)
    table.append(rows(1))
    table.append(rows(2))
    file = table.metadata_location
    before = stored_files(table)
    with pytest.raises(UnsupportedFeatureError, match=r"key 'keyA'; set encryption\.kms-type"):
        delete_reachable_files(file)
    assert stored_files(table) == before
    assert delete_reachable_files(file, properties=_KMS).failed_files_count == 0
    assert stored_files(table) == []


def test_a_table_is_purged(tmp_path: Path) -> None:
    catalog = catalog_with_keys(tmp_path)
    table = catalog.create_table("db.t", SCHEMA, properties=_ENCRYPTED)
    table.append(rows(1))
    catalog.purge_table("db.t")
    assert stored_files(table) == []


def test_the_command_line_finds_the_key_service_of_a_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = pytest.importorskip("typer.testing").CliRunner()
    from icebergds.cli.app import app

    table = catalog_with_keys(tmp_path).create_table("db.t", SCHEMA, properties=_ENCRYPTED)
    table.append(rows(1, 2))
    for name, value in _KMS.items():
        variable = name.replace(".", "__").replace("-", "_").upper()
        monkeypatch.setenv(f"PYICEBERG_CATALOG__SAFE__{variable}", value)
    monkeypatch.setenv("PYICEBERG_CATALOG__SAFE__WAREHOUSE", str(tmp_path / "warehouse"))
    for words in (("safe.db.t",), ("--catalog", "safe", table.location())):
        assert runner.invoke(app, ["count", *words]).stdout == "2\n"
        shown = runner.invoke(app, ["scan", *words])
        assert shown.exit_code == 0, shown.output
    refused = runner.invoke(app, ["scan", table.location()])
    assert refused.exit_code != 0
    assert "set encryption.kms-type" in refused.output
