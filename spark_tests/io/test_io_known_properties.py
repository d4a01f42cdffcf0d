"""Which properties of storages are known by name, and which values they may have."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from icebergds.errors import InvalidOptionError
from icebergds.io.fsspec_options import fsspec_options
from icebergds.io.known_properties import is_known, warn_of_names

DOCS = Path(__file__).parents[2] / "docs" / "catalogs.md"


def test_all_documented_properties_are_known() -> None:
    storage = DOCS.read_text().partition("\n## Storage\n")[2].partition("\n## ")[0]
    named = re.findall(r"`((?:s3|gcs|adls|hdfs|client)\.[a-z0-9_.<>-]+)`", storage)
    assert len(named) > 40
    unknown = [name for name in named if not is_known(name.replace("<name>", "x"))]
    assert unknown == []


def test_a_nearly_known_one_gets_a_warning_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        warn_of_names(["s3.endpiont", "s3.endpiont", "s3.checksum-enabled", "endpiont"])
    (record,) = caplog.records
    assert "'s3.endpiont'" in record.getMessage()
    assert "did you mean s3.endpoint?" in record.getMessage()


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        ("s3", "s3.path-style-access"),
        ("s3", "s3.anonymous"),
        ("s3", "s3.requester-pays"),
        ("s3", "s3.remote-signing-enabled"),
        ("s3", "s3.delete-enabled"),
        ("gs", "gcs.no-auth"),
        ("abfs", "adls.anon"),
    ],
)
def test_a_boolean_is_true_or_false(protocol: str, name: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"'{name}' = 'yes': expected true or false"):
        fsspec_options(protocol, "container@account.host", {name: "yes"})
