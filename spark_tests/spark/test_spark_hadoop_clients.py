"""Tables on S3 and Azure by properties, which Spark reads by Hadoop's clients if it has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from effort import IS_NIGHTLY
from spark_reads import run_program

if TYPE_CHECKING:
    from azure_server import AzureServer
    from entra_server import EntraServer
    from s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

_CACHE = Path(__file__).resolve().parents[2] / ".cache/java"
Seen = dict[str, Any]


@dataclass(frozen=True)
class Storage:
    """A storage, and what Spark is given to read from it.

    Attributes:
        location: where tables may be.
        client: the scheme of Hadoop's client.
        package: in which it is.
        properties, other_properties: lead there.
        settings: Spark's own, which lead elsewhere.
        secrets: among the properties, not to be shown.
        java_options: of JVMs that reach it.
    """

    location: str
    client: str
    package: str
    properties: dict[str, str]
    other_properties: dict[str, str]
    settings: dict[str, str]
    secrets: tuple[str, ...]
    java_options: str = ""


def _s3(server: S3Server) -> Storage:
    location, secret = server.new_location(), "not to be shown"
    given = {
        "endpoint": "http://127.0.0.1:1",
        "access.key": "another",
        "secret.key": "another",
        "path.style.access": "false",
        "attempts.maximum": "1",
        "retry.limit": "1",
    }
    ofs = ("fs.s3a", f"fs.s3a.bucket.{location.split('/')[2]}")
    return Storage(
        location,
        "s3a",
        "hadoop-aws",
        {**server.properties, "s3.secret-access-key": secret},
        {**server.racing_properties, "s3.secret-access-key": secret},
        {f"{of}.{name}": value for of in ofs for name, value in given.items()},
        (secret,),
    )


def _azure(server: AzureServer) -> Storage:
    location = server.new_location()
    container = location.split("/")[2].partition("@")[0]
    signature = server.signature(container, permission="rwdl")
    address = {key: value for key, value in server.properties.items() if "storage" in key}
    return Storage(
        location,
        "abfs",
        "hadoop-azure",
        server.properties,
        {**address, "adls.sas-token": signature},
        _elsewhere(location),
        (server.properties["adls.account-key"], signature),
    )


def _entra(server: EntraServer) -> Storage:
    location = server.azure.new_location()
    return Storage(
        location,
        "abfs",
        "hadoop-azure",
        server.properties,
        server.azure.properties,
        _elsewhere(location),
        (server.properties["adls.client-secret"],),
        server.java_options,
    )


def _elsewhere(location: str) -> dict[str, str]:
    """Settings of ABFS that do not lead to a location on Azure."""
    container, _, host = location.split("/")[2].partition("@")
    given = {
        "account.auth.type": "SAS",
        "sas.fixed.token": "another",
        "account.key": "YW5vdGhlcg==",
        "abfs.endpoint": "127.0.0.1:1",
        "io.retry.max.retries": "1",
    }
    settings = {
        f"fs.azure.{name}{of}": value for name, value in given.items() for of in ("", f".{host}")
    }
    return {**settings, f"fs.azure.sas.fixed.token.{container}.{host}": "another"}


# Each starts a Spark of its own, which takes minutes on a busy machine.
_IN_EACH_CHANGE = ("s3", "classic")
_STORAGES: dict[str, Callable[[Any], Storage]] = {"s3": _s3, "azure": _azure, "entra": _entra}


@pytest.fixture(scope="module", params=_STORAGES)
def storage(request: pytest.FixtureRequest) -> Storage:
    _skip_unless(request.param in _IN_EACH_CHANGE)
    return _STORAGES[request.param](request.getfixturevalue(request.param))


@pytest.fixture(scope="module", params=["classic", "connect"])
def seen(
    storage: Storage, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Seen:
    _skip_unless(request.param in _IN_EACH_CHANGE)
    location = f"{storage.location}/a lake%20 {request.param}"
    jars = _jars(storage.package)
    return run_program(
        "remote_reads.py",
        location,
        json.dumps(storage.properties),
        json.dumps(storage.other_properties),
        str(jars),
        json.dumps(storage.settings),
        request.param,
        through_connect=request.param == "connect",
        directory=tmp_path_factory.mktemp(storage.client),
        java_options=storage.java_options,
    )


def _skip_unless(is_in_each_change: bool) -> None:
    if not (is_in_each_change or IS_NIGHTLY):
        pytest.skip("the other storages and ways are left to the nightly profile")


def _jars(package: str) -> Path:
    """Hadoop's client, of the version that Spark needs."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    jars = _CACHE / jar.stem.replace("hadoop-client-api", package)
    if not jars.exists():
        pytest.skip(f"no {jars.name}; run .ci/servers.sh")
    return jars


def test_spark_reads_columns_by_their_ids(seen: Seen, storage: Storage) -> None:
    rows = [[1, "a", 1, None], [2, "b", 1, None], [3, None, 2, None], [4, "d", 2, None]]
    assert seen["people"]["rows"] == rows
    # Columns have got the names of others, by which Spark finds them through Connect.
    assert seen["through"] == "connect" or _is_native(seen["people"], storage)


def test_spark_leaves_deleted_rows_out(seen: Seen, storage: Storage) -> None:
    assert [row[0] for row in seen["deleted"]["rows"]] == [2, 3]
    assert _is_native(seen["deleted"], storage)


def test_keys_of_equality_deletes_are_read_by_spark_too(seen: Seen, storage: Storage) -> None:
    assert [row[:2] for row in seen["keyed"]["rows"]] == [[1, "a"], [2, "z"], [3, None], [4, "d"]]
    assert _is_native(seen["keyed"], storage)


def test_conditions_narrow_what_is_read(seen: Seen) -> None:
    assert seen["filtered"] == [[3], [4]]


def test_tables_are_joined(seen: Seen) -> None:
    assert seen["joined"] == [[2], [3]]


def test_many_small_files_are_read_by_icebergds(seen: Seen) -> None:
    assert seen["small"] == {"rows": [[1, "a", 1]] * 9, "schemes": []}


def test_each_storage_is_reached_by_its_own_properties(seen: Seen) -> None:
    """Hadoop keeps the client of a scheme and bucket that it made first."""
    first, other, again = seen["in turns"]
    assert first == again != other


def test_the_plan_says_that_spark_reads(seen: Seen) -> None:
    assert "Spark's own Parquet reader reads 2 of 2 files" in seen["explained"]


def test_rows_of_files_that_are_larger_than_manifests_say_are_read(
    seen: Seen, storage: Storage
) -> None:
    assert len(seen["grown"]["rows"]) == 200
    assert _is_native(seen["grown"], storage)


def test_all_files_are_found_where_spark_keeps_no_list(seen: Seen) -> None:
    assert seen["not kept"] == seen["people"]["rows"]


def test_all_files_are_found_when_spark_looks_for_them_again(seen: Seen) -> None:
    assert seen["refreshed"] == seen["people"]["rows"]


def test_plans_do_not_show_keys(seen: Seen, storage: Storage) -> None:
    assert "FileScan parquet" in seen["plans"]
    assert not [secret for secret in storage.secrets if secret in seen["plans"]]


def test_rows_that_spark_changed_are_read(seen: Seen) -> None:
    assert [row[1] for row in seen["changed"]] == ["x", "b", None, "d"]


def _is_native(seen: Seen, storage: Storage) -> bool:
    (scheme,) = seen["schemes"]
    return bool(scheme.startswith(f"{storage.client}-"))
