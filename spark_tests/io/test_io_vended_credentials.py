"""Credentials by prefixes of locations, as an option."""

from __future__ import annotations

import json

import pytest

from icebergds.errors import InvalidOptionError, StorageError
from icebergds.io.fileio import FileIO
from icebergds.io.vended_credentials import PrefixCredentials, VendedCredentials

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
