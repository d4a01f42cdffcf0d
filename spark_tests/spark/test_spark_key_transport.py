"""Spark's users are told once if keys of encrypted files travel in clear."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from built.metadata import new_table
from pyspark import SparkConf

from icebergds.commit.operations import TableState
from icebergds.encryption.kms import load_kms
from icebergds.io.fileio import FileIO
from icebergds.spark import key_transport


@dataclass
class _Context:
    """What a context is asked for."""

    master: str
    conf: dict[str, str] = field(default_factory=dict)

    def getConf(self) -> SparkConf:
        return SparkConf(loadDefaults=False).setAll(list(self.conf.items()))


def _state(**properties: str) -> TableState:
    service = load_kms({"encryption.kms-type": "aws"}, "catalog lake")
    metadata = new_table(3, properties=properties)
    location = "/w/t/metadata/v1.metadata.json"
    return TableState("lake.t", location, metadata, FileIO(key_service=service))


_ENCRYPTED = _state(**{"encryption.key-id": "k"})


def _warned(
    master: str, conf: dict[str, str], state: TableState, caplog: pytest.LogCaptureFixture
) -> list[str]:
    # Starting a cluster would take long.
    session: Any = SimpleNamespace(sparkContext=_Context(master, conf))
    with caplog.at_level(logging.WARNING, "icebergds"):
        key_transport.warn_of_clear_keys(session, state)
        key_transport.warn_of_clear_keys(session, state)
    return [record.getMessage() for record in caplog.records]


@pytest.fixture(autouse=True)
def _not_warned_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_transport, "_warned", False)


def test_a_cluster_that_sends_in_clear_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    (said,) = _warned("yarn", {"spark.network.crypto.enabled": "false"}, _ENCRYPTED, caplog)
    assert "lake.t is encrypted" in said
    assert "set spark.network.crypto.enabled, or spark.ssl.rpc.enabled" in said


@pytest.mark.parametrize(
    ("master", "conf", "state"),
    [
        ("local[2]", {}, _ENCRYPTED),
        ("yarn", {"spark.network.crypto.enabled": "true"}, _ENCRYPTED),
        ("yarn", {"spark.ssl.rpc.enabled": "True"}, _ENCRYPTED),
        ("yarn", {}, _state()),
    ],
)
def test_nothing_is_said_without_need(
    master: str, conf: dict[str, str], state: TableState, caplog: pytest.LogCaptureFixture
) -> None:
    assert _warned(master, conf, state, caplog) == []
