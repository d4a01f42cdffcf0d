"""Credentials by prefixes of locations, as an option."""

from __future__ import annotations

import gc
import json
import time
import weakref
from collections.abc import Mapping
from typing import Any

import pytest

from icebergds.errors import InvalidOptionError, StorageError
from icebergds.io import vended_credentials
from icebergds.io.file_systems import use_file_system
from icebergds.io.fileio import FileIO
from icebergds.io.vended_credentials import (
    PrefixCredentials,
    Vended,
    VendedCredentials,
    renewed,
)

_OPTION = "storage-credentials"


def test_credentials_come_as_an_option() -> None:
    member = {"prefix": "s3://bucket/db", "config": {"s3.access-key-id": "key"}}
    io = FileIO({_OPTION: json.dumps([member]), "s3.region": "here"})
    assert io.vended is not None
    assert io.vended.at("s3://bucket/db/t", io.properties)["s3.access-key-id"] == "key"
    assert "s3.access-key-id" not in io.vended.at("s3://other/t", io.properties)
    # What is passed on to other processes gives the same.
    copy = FileIO(io.all_properties)
    assert copy.all_properties == io.all_properties


@pytest.mark.parametrize(
    "text", ["s3cr3t", "{}s3cr3t", '["s3cr3t"]', '[{"prefix": "s3cr3t"}]', '[{"config": "s3cr3t"}]']
)
def test_malformed_credentials_are_refused_and_not_shown(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=_OPTION) as raised:
        FileIO({_OPTION: text})
    assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize(
    ("vended", "own", "kept"),
    [
        ({"s3.access-key-id": "v"}, {"s3.session-token": "o", "s3.region": "r"}, {"s3.region"}),
        ({"s3.access-key-id": "v"}, {"client.assume-role.arn": "o"}, set()),
        ({"s3.endpoint": "v"}, {"s3.access-key-id": "o"}, {"s3.access-key-id"}),
        ({"adls.sas-token.account": "v"}, {"adls.account-key": "o"}, set()),
        (
            {"gcs.oauth2.token": "v"},
            {"gcs.no-auth": "true", "gcs.project-id": "p"},
            {"gcs.project-id"},
        ),
    ],
)
def test_vended_credentials_replace_those_of_their_kind(
    vended: dict[str, str], own: dict[str, str], kept: set[str]
) -> None:
    credentials = VendedCredentials([PrefixCredentials("", vended)])
    assert credentials.at("s3://bucket/t", own).keys() == vended.keys() | kept


@pytest.mark.parametrize(
    ("vended", "own"),
    [
        ({"gcs.service.host": "http://h"}, {"gcs.oauth2.token": "o"}),
        ({"gcs.endpoint": "http://h"}, {}),
        ({"adls.account-host": "h"}, {"adls.token": "o"}),
        ({"adls.blob-storage-authority": "h"}, {"adls.sas-token": "o"}),
        ({"adls.connection-string.a": "https://h/a"}, {"adls.account-key": "o"}),
    ],
)
def test_only_vended_credentials_go_to_the_catalogs_servers(
    vended: dict[str, str], own: dict[str, str]
) -> None:
    def merged(vended: dict[str, str]) -> Mapping[str, str]:
        credentials = VendedCredentials([PrefixCredentials("", vended)])
        return credentials.at("gs://bucket/t", own)

    assert merged(vended) == own
    kind = "gcs.oauth2.token" if "gcs" in str(vended) else "adls.sas-token.a"
    assert merged({**vended, kind: "v"}) == {**vended, kind: "v"}


def test_a_connection_string_with_a_key_is_a_credential() -> None:
    for text in ("AccountName=a;AccountKey=k", "https://h/a?sig=k"):
        vended = {"adls.connection-string": text}
        credentials = VendedCredentials([PrefixCredentials("", vended)])
        assert credentials.at("abfss://c@a/t", {"adls.token": "o"}) == vended


def test_a_catalog_cannot_name_the_file_of_a_service_account() -> None:
    vended = {"gcs.oauth2.token": "/etc/account.json"}
    with pytest.raises(InvalidOptionError, match=r"path of a file as gcs\.oauth2\.token"):
        VendedCredentials([PrefixCredentials("", vended)]).at("gs://bucket/t", {})


def test_a_failed_renewal_pauses() -> None:
    asked = []

    def renew() -> list[PrefixCredentials]:
        asked.append(1)
        raise StorageError("not now")

    soon = {"s3.access-key-id": "key", "s3.session-token-expires-at-ms": "1"}
    credentials = VendedCredentials([PrefixCredentials("", soon)], renew)
    for _ in range(10):
        assert credentials.at("s3://bucket/t", {})["s3.access-key-id"] == "key"
    assert len(asked) == 1


def _expiring_in(seconds: float) -> dict[str, str]:
    at_ms = str(int((time.time() + seconds) * 1000))
    return {"s3.access-key-id": f"key of {seconds}", "s3.session-token-expires-at-ms": at_ms}


def test_the_first_credentials_of_the_table_do_not_count_after_a_renewal() -> None:
    asked = []
    whole = {**_expiring_in(0), "s3.endpoint": "http://store"}

    def renew() -> Vended:
        asked.append(1)
        return renewed(whole, [PrefixCredentials("s3://bucket", _expiring_in(3600))])

    credentials = VendedCredentials([PrefixCredentials("", whole)], renew)
    assert credentials.at("s3://bucket/t", {})["s3.access-key-id"] == "key of 3600"
    assert not credentials.expires_soon
    assert credentials.at("s3://bucket/t", {})["s3.endpoint"] == "http://store"
    # Those of other locations stay.
    assert credentials.at("s3://other/t", {})["s3.access-key-id"] == "key of 0"
    assert len(asked) == 1


def test_a_clock_that_is_ahead_asks_for_credentials_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def renew() -> Vended:
        asked.append(1)
        return [PrefixCredentials("", _expiring_in(-60))]

    credentials = VendedCredentials(renew(), renew)
    for _ in range(10):
        credentials.current()
    assert len(asked) == 2
    monkeypatch.setattr(vended_credentials, "_PAUSE_S", 0)
    time.sleep(2)
    credentials.current()
    assert len(asked) == 3


def test_file_systems_of_old_credentials_are_let_go() -> None:
    old, new = ({"s3.access-key-id": key, "s3.secret-access-key": "x"} for key in ("OLD1", "NEW1"))
    soon = {**old, "s3.session-token-expires-at-ms": "1"}
    credentials = VendedCredentials(
        [PrefixCredentials("", soon)], lambda: [PrefixCredentials("", new)]
    )

    def opened(properties: Mapping[str, str]) -> weakref.ref[Any]:
        return use_file_system("s3://bucket/t", properties, lambda fs, _: weakref.ref(fs))

    before, others = opened(old), opened({**old, "s3.access-key-id": "OTHER1"})
    credentials.current()
    gc.collect()
    assert before() is None
    assert others() is not None
