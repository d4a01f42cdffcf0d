"""Operations of the catalogs in AWS tell their ends truly when requests or answers are lost."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import botocore.endpoint
import pytest
from effort import some
from faulty_proxy import FaultyProxy, Spoil
from moto_server import MotoServer
from spoilt_requests import CHANGE_NAMESPACE, OPERATIONS, Operation, check_spoilt

from icebergds.catalog.loading import load_catalog


@pytest.fixture(params=["glue", "dynamodb", "s3tables"])
def service(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def properties(moto: MotoServer, service: str, tmp_path: Path) -> dict[str, str]:
    if service == "s3tables":
        return moto.s3_tables_properties()
    return moto.properties(service) | {"warehouse": str(tmp_path)}


def check(
    operation: Operation,
    spoil: Spoil,
    properties: dict[str, str],
    proxy: FaultyProxy,
    *,
    retries: int,
) -> None:
    """Spoils the operation's requests, of which each is sent once and `retries` times more."""
    service = properties["type"]
    if service == "s3tables" and operation is CHANGE_NAMESPACE:
        pytest.skip("namespaces of S3 Tables cannot be changed")
    proxied = properties | {
        f"{service}.endpoint": proxy.endpoint,
        f"{service}.max-retries": str(retries),
    }
    check_spoilt(
        operation,
        spoil,
        load_catalog("lake", properties),
        load_catalog("lake", proxied),
        proxy,
        repaired=retries > 0,
        deletes_files=service != "s3tables",
    )


@pytest.mark.parametrize(
    ("operation", "spoil"),
    some([(operation, spoil) for spoil in Spoil for operation in OPERATIONS], 6),
    ids=lambda part: part.name,
)
def test_ends_are_told_truly(
    operation: Operation, spoil: Spoil, properties: dict[str, str], proxy: FaultyProxy
) -> None:
    check(operation, spoil, properties, proxy, retries=0)


@pytest.mark.parametrize("operation", some(OPERATIONS, 2), ids=str)
def test_a_repeated_request_is_not_taken_for_a_conflict(
    operation: Operation,
    properties: dict[str, str],
    proxy: FaultyProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(botocore.endpoint, "time", SimpleNamespace(sleep=lambda seconds: None))
    check(operation, Spoil.CUT_AFTER, properties, proxy, retries=1)
