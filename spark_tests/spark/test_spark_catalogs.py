"""Whole lives of tables in catalogs, by executors in processes of their own and through Connect.

Passwords and tokens stay with the driver; credentials of the storage reach executors, and nothing
else does.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from built.contents import snapshot_entries
from effort import IS_NIGHTLY
from spark_reads import run_program, spellings

from icebergds import load_catalog
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests

if TYPE_CHECKING:
    from hive_server import HiveServer
    from moto_server import MotoServer
    from rest_server import RestServer

    from icebergds.commit.operations import TableState

pytestmark = [
    pytest.mark.spark,
    pytest.mark.every_spark,
    pytest.mark.skipif(not IS_NIGHTLY, reason="whole lives are left to nightly runs"),
]

Seen = dict[str, Any]
SECRET = "hunter2-of-the-catalog"
MASTER_KEY = b"a master key of 24 bytes"
KINDS = ["cluster", "connect"]


def _rest(request: pytest.FixtureRequest, directory: Path) -> dict[str, str]:
    pytest.importorskip("requests", reason="requests is not installed")
    server: RestServer = request.getfixturevalue("rest")
    return {"uri": server.uri(server.new_catalog()), "token": SECRET}


def _sql(request: pytest.FixtureRequest, directory: Path) -> dict[str, str]:
    pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed")
    uri = f"sqlite:///{directory}/{SECRET}.db"
    # The storage does not need it.
    storage = {"adls.account-key": SECRET}
    return {"uri": uri, "warehouse": str(directory / "warehouse"), **storage}


def _hive(request: pytest.FixtureRequest, directory: Path) -> dict[str, str]:
    server: HiveServer = request.getfixturevalue("conditional_metastore")
    return {"uri": server.uri, "warehouse": str(directory / "hive"), "ugi": f"me:{SECRET}"}


def _of_aws(kind: str) -> Callable[[pytest.FixtureRequest, Path], dict[str, str]]:
    def properties(request: pytest.FixtureRequest, directory: Path) -> dict[str, str]:
        server: MotoServer = request.getfixturevalue("running_moto")
        keys = {f"{kind}.secret-access-key": SECRET, f"{kind}.session-token": f"{SECRET}-2"}
        if kind == "s3tables":
            return server.s3_tables_properties() | keys
        return server.properties(kind) | keys | {"warehouse": str(directory / kind)}

    return properties


def _encrypted(request: pytest.FixtureRequest, directory: Path) -> dict[str, str]:
    """All of its tables are encrypted."""
    pytest.importorskip("cryptography", reason="cryptography is not installed")
    pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed")
    store = directory / "keys.json"
    store.write_text(json.dumps({"a-master-key": base64.b64encode(MASTER_KEY).decode()}))
    store.chmod(0o600)
    return {
        "uri": f"sqlite:///{directory}/encrypted.db",
        "warehouse": str(directory / "encrypted"),
        "encryption.kms-type": "keystore",
        "kms.client.keystore.path": str(store),
        "kms.a-secret": SECRET,
        "table-default.format-version": "3",
        "table-default.encryption.key-id": "a-master-key",
        "table-default.write.delete.mode": "merge-on-read",
    }


_CATALOGS: dict[str, Callable[[pytest.FixtureRequest, Path], dict[str, str]]] = {
    "rest": _rest,
    "sql": _sql,
    "hive": _hive,
    "glue": _of_aws("glue"),
    "dynamodb": _of_aws("dynamodb"),
    "s3tables": _of_aws("s3tables"),
    "encrypted": _encrypted,
}
NAMES = list(_CATALOGS)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("catalogs")


@pytest.fixture(scope="module")
def configured(request: pytest.FixtureRequest, directory: Path) -> Iterator[list[str]]:
    """The catalogs that can be had here, configured in the environment of programs."""
    names = []
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES:
            try:
                properties = _CATALOGS[name](request, directory)
            except pytest.skip.Exception:
                continue
            names.append(name)
            for key, value in properties.items():
                variable = key.replace(".", "__").replace("-", "_").upper()
                patch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__{variable}", value)
        yield names


@pytest.fixture(scope="module")
def seen(configured: list[str], directory: Path) -> dict[str, Seen]:
    """What each kind of session saw of each catalog."""
    return {
        kind: run_program(
            "catalog_life.py",
            *(kind, str(directory), *configured),
            directory=directory,
            through_connect=kind == "connect",
        )
        for kind in KINDS
    }


@pytest.fixture(params=KINDS)
def life(request: pytest.FixtureRequest, seen: dict[str, Seen], name: str) -> Seen:
    part: Seen = seen[request.param]
    if name not in part:
        pytest.skip(f"there is no {name} catalog here")
    found: Seen = part[name]
    return found


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_rows_are_created_and_appended(life: Seen) -> None:
    created = [[i, f"v{i}"] for i in range(6)]
    assert life["created"] == created
    assert life["appended"] == [*created, [6, "new"], [7, "new"]]


def test_rows_are_deleted_updated_upserted_and_merged(life: Seen) -> None:
    assert life["changed"] == [
        [2, "changed"],
        *[[i, f"v{i}"] for i in range(3, 6)],
        [6, "new"],
        [7, "upserted"],
        [8, "merged"],
        [9, "merged"],
    ]


def test_the_table_evolves_streams_and_is_compacted(life: Seen) -> None:
    assert life["columns"] == ["id", "s", "more"]
    assert life["streamed"] == [*range(2, 10)]
    assert life["compacted"] == life["changed"]
    assert life["files"] is True


def test_tables_are_listed(life: Seen) -> None:
    assert [found.rpartition(".")[2] for found in life["tables"]] == ["copy", "t"]


def test_statements_of_sql_make_change_and_drop_a_table(life: Seen) -> None:
    assert life["by SQL"] == {"rows": [[1, 2025, None], [4, None, None]], "left": ["copy", "t"]}


@pytest.mark.usefixtures("seen")
def test_spark_tells_no_secret_of_a_catalog(directory: Path, configured: list[str]) -> None:
    """Neither in its event log, which has every plan and every property, nor in its UI."""
    if not configured:
        pytest.skip("there is no catalog here")
    told = [*directory.glob("events/*"), directory / "cluster.ui.json"]
    assert len(told) >= 2
    for file in told:
        text = file.read_bytes()
        assert b"icebergpy" in text
        assert not [spelling for spelling in spellings(SECRET.encode()) if spelling in text], file


def _keys_of(state: TableState) -> Iterator[bytes]:
    """The keys of a table's files in all of its snapshots, and those that encrypt them."""
    from icebergds.encryption.key_metadata import parse_key_metadata

    for key in state.metadata.encryption_keys:
        if key.encrypted_by_id == "a-master-key":
            assert state.keys is not None
            yield state.keys.kms.unwrap_key(key.encrypted_key_metadata, key.encrypted_by_id)
    for snapshot in state.metadata.snapshots:
        assert state.keys is not None
        assert snapshot.key_id is not None
        yield state.keys.list_key(state.metadata, snapshot.key_id).encryption_key
        for manifest in read_snapshot_manifests(state.io, snapshot):
            assert manifest.key_metadata is not None
            yield parse_key_metadata(manifest.key_metadata, "a manifest").encryption_key
        for entry in snapshot_entries(state.io, state.metadata, snapshot):
            assert entry.data_file.key_metadata is not None
            yield parse_key_metadata(entry.data_file.key_metadata, "a file").encryption_key


@pytest.mark.usefixtures("seen")
def test_spark_tells_no_key_of_an_encrypted_table(directory: Path, configured: list[str]) -> None:
    """Nor do the files of the table, but in other encrypted files."""
    if "encrypted" not in configured:
        pytest.skip("there is no encrypted table here")
    # With what asks the key service, whoever sees it could unwrap the keys.
    keys = {MASTER_KEY, SECRET.encode()}
    for kind in ("classic", "connect"):
        table = load_catalog("encrypted").load_table(f"db_{kind}.t")
        keys |= set(_keys_of(table._state))
    assert len(keys) > 20
    spelt = [spelling for key in keys for spelling in spellings(key)]
    stored = [path for path in (directory / "encrypted").rglob("*") if path.is_file()]
    plain = [path for path in stored if path.read_bytes()[:4] not in (b"AGS1", b"PARE")]
    assert {path.name.partition(".")[2] for path in plain} == {"metadata.json"}
    assert len(stored) > 2 * len(plain)
    told = [*directory.glob("events/*"), directory / "cluster.ui.json", *directory.glob("*.log")]
    for file in (*told, *plain):
        text = file.read_bytes()
        assert not [spelling for spelling in spelt if spelling in text], file
