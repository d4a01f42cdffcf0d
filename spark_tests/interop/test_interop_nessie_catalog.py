"""One Nessie server, with tokens and vended credentials, that is a catalog of both.

It is fetched for the nightly run only.
"""

from __future__ import annotations

import uuid

import pytest
from java_process import JavaProcess
from nessie_server import NessieServer
from shared_catalog import ROWS, Lake, SharedCatalog, rows

pytestmark = pytest.mark.interop


@pytest.fixture
def lake(lasting_nessie: NessieServer, java_in_aws: JavaProcess) -> Lake:
    identity = uuid.uuid4().hex
    properties = lasting_nessie.properties
    name, database = f"lake_{identity}", f"db_{identity}"
    # The server has the history of all tables itself.
    lake = Lake(name, java_in_aws, properties, database=database, keeps_history=False)
    # Without the header the server has Java ask for the signature of each request.
    delegation = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
    lake.open_in_java({"type": "rest", **properties, **delegation})
    lake.ours().create_namespace(lake.database)
    return lake


class TestNessieCatalog(SharedCatalog):
    pass


def test_views_are_shared(lake: Lake) -> None:
    lake.ours().create_table(lake.table("t"), ROWS).append(rows({1: "a", 2: "b"}))
    lake.ours().create_view(lake.table("ours"), ROWS, "SELECT id, s FROM t WHERE id > 1")
    assert lake.sql("SELECT * FROM {db}.ours") == [[2, "b"]]
    lake.sql("CREATE VIEW {db}.theirs AS SELECT 1 AS a")
    assert lake.ours().load_view(lake.table("theirs")).sql_for("spark") == "SELECT 1 AS a"
