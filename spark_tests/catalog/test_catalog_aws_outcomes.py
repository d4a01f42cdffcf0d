"""Operations of the catalogs in AWS tell their ends truly when requests or answers are lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty_proxy import FaultyProxy, Spoil
from moto_server import MotoServer
from spoilt_requests import OPERATIONS, Operation, check_spoilt

from icebergds.catalog.base import Catalog
from icebergds.catalog.loading import load_catalog

_SERVICES = ["glue", "dynamodb"]


@pytest.fixture(params=_SERVICES)
def service(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def catalog(moto: MotoServer, service: str, tmp_path: Path) -> Catalog:
    """A catalog with a direct connection."""
    return load_catalog("lake", moto.properties(service) | {"warehouse": str(tmp_path)})


def _proxied(
    moto: MotoServer, service: str, proxy: FaultyProxy, tmp_path: Path, retries: int
) -> Catalog:
    """The same catalog by way of the proxy."""
    properties = moto.properties(service, proxy.endpoint) | {"warehouse": str(tmp_path)}
    return load_catalog("lake", properties | {f"{service}.max-retries": str(retries)})


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
@pytest.mark.parametrize(
    "spoil", [s for s in Spoil if s is not Spoil.THROTTLED], ids=lambda s: s.name
)
def test_ends_are_told_truly(
    operation: Operation,
    spoil: Spoil,
    service: str,
    catalog: Catalog,
    moto: MotoServer,
    proxy: FaultyProxy,
    tmp_path: Path,
) -> None:
    once = _proxied(moto, service, proxy, tmp_path, retries=0)
    check_spoilt(operation, spoil, catalog, once, proxy, repaired=False)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_a_repeated_request_is_not_taken_for_a_conflict(
    operation: Operation,
    service: str,
    catalog: Catalog,
    moto: MotoServer,
    proxy: FaultyProxy,
    tmp_path: Path,
) -> None:
    twice = _proxied(moto, service, proxy, tmp_path, retries=1)
    check_spoilt(operation, Spoil.CUT_AFTER, catalog, twice, proxy, repaired=True)
