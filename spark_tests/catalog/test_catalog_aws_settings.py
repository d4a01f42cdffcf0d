"""How the catalogs that are services of AWS are reached, and what they say if they are not."""

from __future__ import annotations

import os
import re
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty_proxy import FaultyProxy, Refusal
from moto_server import REGION, MotoServer, has_moto, moto_server

from icebergds.catalog.base import Catalog
from icebergds.catalog.loading import load_catalog
from icebergds.errors import (
    InvalidOptionError,
    NoSuchTableError,
    StorageError,
    UnsupportedFeatureError,
)
from icebergds.io.aws_session import botocore_client

SERVICES = ["glue", "dynamodb", "s3tables"]
_ARN = "arn:aws:s3tables:us-east-1:123456789012:bucket/lake"


@pytest.fixture(autouse=True)
def _nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials, region or profile of whoever runs the tests."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def properties(service: str, **given: str) -> dict[str, str]:
    """Properties of a catalog that nobody answers for.

    Args:
        given: properties of the service, with `_` for `-`.
    """
    own = {f"{service}.{name.replace('_', '-')}": value for name, value in given.items()}
    own = {f"{service}.max-retries": "0"} | own
    return {"type": service, "warehouse": _ARN if service == "s3tables" else "/w"} | own


def error_of(catalog: Catalog) -> str:
    """What a catalog that cannot be used says, with its causes."""
    with pytest.raises(StorageError) as raised:
        catalog.list_namespaces()
    assert "super-secret" not in "".join(traceback.format_exception(raised.value))
    return str(raised.value)


KEYS = {
    "access_key_id": "AKIA1",
    "secret_access_key": "super-secret",
    "session_token": "super-secret-2",
}


# Servers that do not answer, or refuse.


@pytest.mark.parametrize("service", SERVICES)
def test_a_server_out_of_reach_is_named(service: str) -> None:
    given = properties(service, endpoint="http://127.0.0.1:1", region=REGION, **KEYS)
    said = error_of(load_catalog("lake", given))
    assert said.startswith(f"catalog lake: {service} (http://127.0.0.1:1) gave no valid answer to ")
    assert f"check {service}.endpoint and the region" in said


def test_a_server_without_tls_is_recognised(moto: MotoServer) -> None:
    endpoint = moto.endpoint.replace("http://", "https://")
    given = properties("glue", endpoint=endpoint, region=REGION, max_retries="0", **KEYS)
    said = error_of(load_catalog("lake", given))
    assert "if the server does not speak TLS, begin glue.endpoint with http://" in said


@pytest.mark.parametrize("service", SERVICES)
def test_missing_credentials_are_named_with_what_to_set(service: str) -> None:
    given = properties(service, endpoint="http://127.0.0.1:1", region=REGION)
    said = error_of(load_catalog("lake", given))
    assert "Unable to locate credentials" in said
    assert f"set {service}.access-key-id and {service}.secret-access-key" in said


@pytest.mark.parametrize(
    ("code", "message", "remedy"),
    [
        (
            "AccessDeniedException",
            "User: arn:aws:iam::1:user/me is not authorized to perform it",
            r"allow {service}:\w+ to whom the credentials belong, or give others",
        ),
        (
            "UnrecognizedClientException",
            "The security token included in the request is invalid.",
            "check the access key, its secret and session token, and the region",
        ),
        (
            "InvalidSignatureException",
            "The request signature we calculated does not match.\n\nThe Canonical String should "
            "have been\nx-amz-security-token:super-secret-2",
            "check the access key, its secret and session token, and the region",
        ),
        ("ExpiredTokenException", "The security token is expired", "renew the session token"),
        ("ThrottlingException", "Rate exceeded", r"raise {service}\.max-retries"),
    ],
)
@pytest.mark.parametrize("service", SERVICES)
def test_what_aws_refuses_is_said_with_a_remedy(
    service: str, code: str, message: str, remedy: str, proxy: FaultyProxy
) -> None:
    given = properties(service, endpoint=proxy.endpoint, region=REGION, **KEYS)
    proxy.spoil("", Refusal(400, code, message))
    said = error_of(load_catalog("lake", given))
    first, *_ = message.split("\n")
    assert said.startswith(f"catalog lake: {service} ({proxy.endpoint}) refused ")
    assert f"{first} ({code})" in said
    assert re.search(remedy.format(service=service), said)


@pytest.fixture(scope="module")
def strict() -> Iterator[MotoServer]:
    """A server that checks signatures."""
    if not has_moto():
        pytest.skip("moto is not installed")
    with moto_server(INITIAL_NO_AUTH_ACTION_COUNT="0") as server:
        yield server


@pytest.mark.parametrize("service", SERVICES)
def test_an_answer_without_an_explanation_is_said_with_remedies(
    service: str, strict: MotoServer
) -> None:
    given = properties(service, endpoint=strict.endpoint, region=REGION, **KEYS)
    said = error_of(load_catalog("lake", given))
    assert re.search(r"refused \w+: error 403; check the access key.* or allow ", said)


@pytest.mark.parametrize(
    ("service", "listing"),
    [("glue", "GetTables"), ("dynamodb", "Query"), ("s3tables", "GET namespace=")],
)
def test_a_missing_table_is_said_to_be_missing_to_whom_may_not_list(
    service: str, listing: str, moto: MotoServer, proxy: FaultyProxy, tmp_path: Path
) -> None:
    given = moto.properties(service) | {"warehouse": str(tmp_path)}
    if service == "s3tables":
        given = moto.s3_tables_properties()
    load_catalog("lake", given).create_namespace(("db",), {})
    denied = Refusal(400, "AccessDeniedException", "not authorized")
    proxy.spoil(listing, denied, denied)
    catalog = load_catalog("lake", given | {f"{service}.endpoint": proxy.endpoint})
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.t does not exist"):
        catalog.load(("db", "t"))
    assert any(listing.rpartition(" ")[2] in request for request in proxy.seen)


# Settings.


@pytest.mark.parametrize("service", ["glue", "dynamodb"])
def test_a_missing_region_is_asked_for(service: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"catalog lake: .*set {service}\.region or"):
        load_catalog("lake", properties(service, **KEYS))


@pytest.mark.parametrize("service", SERVICES)
def test_a_missing_profile_is_named(service: str) -> None:
    given = properties(service, profile_name="nowhere", region=REGION)
    with pytest.raises(InvalidOptionError, match=r"\(nowhere\) could not be found; check "):
        load_catalog("lake", given)


@pytest.mark.parametrize("service", SERVICES)
def test_half_a_key_is_refused(service: str) -> None:
    given = properties(service, region=REGION, access_key_id="AKIA1")
    with pytest.raises(InvalidOptionError, match=rf"{service}\.secret-access-key is missing"):
        load_catalog("lake", given)


@pytest.mark.parametrize("service", SERVICES)
def test_a_mistyped_property_is_refused_with_the_right_one(service: str) -> None:
    given = properties(service, region=REGION, acess_key_id="AKIA1")
    expected = rf"no property '{service}\.acess-key-id'; did you mean '{service}\.access-key-id'"
    with pytest.raises(InvalidOptionError, match=expected):
        load_catalog("lake", given)
    given = properties(service, region=REGION) | {"client.regio": "x"}
    with pytest.raises(InvalidOptionError, match=r"did you mean 'client\.region'"):
        load_catalog("lake", given)


@pytest.mark.parametrize("name", ["client.factory", "client.credentials-provider", "lock-impl"])
@pytest.mark.parametrize("service", SERVICES)
def test_what_needs_java_is_refused_by_name(service: str, name: str) -> None:
    given = properties(service, region=REGION) | {name: "org.example.Mine"}
    with pytest.raises(UnsupportedFeatureError, match=f"property '{name}' is not supported"):
        load_catalog("lake", given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("endpoint", "super-secret"),
        ("endpoint", "http://me:super-secret@host"),
        ("max_retries", "many"),
        ("max_retries", "-1"),
        ("retry_mode", "patient"),
    ],
)
@pytest.mark.parametrize("service", SERVICES)
def test_malformed_settings_are_named(service: str, name: str, value: str) -> None:
    option = f"{service}.{name.replace('_', '-')}"
    with pytest.raises(
        InvalidOptionError, match=rf"catalog lake: {option} is .*expected"
    ) as raised:
        load_catalog("lake", properties(service, region=REGION) | {option: value})
    assert "super-secret" not in str(raised.value)


def test_flags_of_glue_are_true_or_false() -> None:
    with pytest.raises(InvalidOptionError, match=r"glue\.skip-archive is 'maybe', expected true"):
        load_catalog("lake", properties("glue", region=REGION, skip_archive="maybe"))


# Where credentials come from.


@pytest.fixture
def callers(moto: MotoServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives the access key with which a catalog signs, by the settings."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", moto.endpoint)

    def key_of(given: dict[str, str]) -> str:
        catalog: Any = load_catalog("lake", given)
        catalog.list_namespaces()
        client = botocore_client(catalog.client.settings)
        return str(client._request_signer._credentials.get_frozen_credentials().access_key)

    return key_of


def test_keys_of_the_service_precede_those_of_all_clients(moto: MotoServer, callers: Any) -> None:
    common = {"client.access-key-id": "AKIACOMMON", "client.secret-access-key": "x"}
    assert callers(moto.properties("glue") | common) == "tester"
    given = {k: v for k, v in moto.properties("glue").items() if "key" not in k}
    assert callers(given | common) == "AKIACOMMON"


def test_a_profile_has_keys_and_a_region(moto: MotoServer, callers: Any, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[profile lake]\nregion = eu-west-1\n")
    (tmp_path / "credentials").write_text(
        "[lake]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = x\n"
    )
    given = {"type": "glue", "glue.endpoint": moto.endpoint, "client.profile-name": "lake"}
    assert callers(given) == "AKIAPROFILE"
    common = {"client.access-key-id": "AKIACOMMON", "client.secret-access-key": "x"}
    assert callers(given | common) == "AKIACOMMON"
    assert callers(given | common | {"glue.profile-name": "lake"}) == "AKIAPROFILE"


@pytest.mark.parametrize("name", ["client.role-arn", "client.assume-role.arn"])
def test_a_role_is_assumed(moto: MotoServer, callers: Any, name: str) -> None:
    role = {
        name: "arn:aws:iam::123456789012:role/lake",
        "client.assume-role.session-name": "tests",
        "client.assume-role.external-id": "x-1",
        "client.assume-role.timeout-sec": "900",
        "client.assume-role.tags.team": "events",
    }
    key = callers(moto.properties("glue") | role)
    assert key.startswith("ASIA")


def test_a_role_that_cannot_be_assumed_is_named(
    moto: MotoServer, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", proxy.endpoint)
    role = {"client.role-arn": "arn:aws:iam::123456789012:role/lake"}
    given = moto.properties("glue") | role | {"glue.max-retries": "0"}
    proxy.spoil("", Refusal(403, "AccessDenied", "not authorized", xml=True))
    assert "refused AssumeRole" in error_of(load_catalog("lake", given))


def test_another_account_is_asked_by_its_id(moto: MotoServer) -> None:
    given = moto.properties("glue") | {"glue.id": "210987654321"}
    catalog: Any = load_catalog("lake", given)
    assert catalog.client.common == {"CatalogId": "210987654321"}
    catalog.create_namespace(("db",), {})


def test_a_forked_process_has_connections_of_its_own(moto: MotoServer) -> None:
    catalog: Any = load_catalog("lake", moto.properties("glue"))
    catalog.create_namespace(("db",), {})
    client = botocore_client(catalog.client.settings)
    with warnings.catch_warnings():
        # Of forking a process that has threads, as tests may have.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        others = botocore_client(catalog.client.settings) is not client
        os._exit(0 if others and catalog.list_namespaces() == [("db",)] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert botocore_client(catalog.client.settings) is client
    assert catalog.list_namespaces() == [("db",)]
