from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icebergds import Catalog, load_catalog
from icebergds.errors import NoSuchTableError
from icebergds.operations.metadata_tables.kinds import MetadataTable
from icebergds.statements.names.scope import CatalogName, NameScope
from icebergds.statements.names.tables import find_table

if TYPE_CHECKING:
    from rest_server import RestServer

_NO_SESSION: Any = None


@pytest.fixture
def scope(tmp_path: Path) -> NameScope:
    """A scope with a catalog in which every table is in a namespace."""
    uri = f"sqlite:///{tmp_path}/c.db"
    catalog: Catalog = load_catalog("lake", type="sql", uri=uri, warehouse=str(tmp_path))
    catalog.create_namespace("db")
    catalog.create_table("db.t", "id bigint")
    return NameScope(_NO_SESSION, _loaded={"lake": catalog})


def test_the_last_part_of_a_name_may_select_of_the_table(scope: NameScope) -> None:
    found = find_table(scope, CatalogName("lake", ("db", "t", "snapshots")))
    assert (str(found.name), found.metadata_table) == ("lake.db.t", MetadataTable.SNAPSHOTS)
    found = find_table(scope, CatalogName("lake", ("db", "t", "branch_b")))
    assert (str(found.name), found.branch) == ("lake.db.t", "b")
    found = find_table(scope, CatalogName("lake", ("db", "t", "changes")))
    assert (str(found.name), found.options) == ("lake.db.t", {"read-change-feed": "true"})


def test_a_name_of_which_one_part_is_left_is_of_no_table(rest: RestServer) -> None:
    catalog = load_catalog("lake", uri=rest.uri(rest.new_catalog()))
    with pytest.raises(NoSuchTableError, match=r"lake\.t\.snapshots"):
        find_table(
            NameScope(_NO_SESSION, _loaded={"lake": catalog}),
            CatalogName("lake", ("t", "snapshots")),
        )


def test_a_misspelt_metadata_table_is_said_to_be_one(scope: NameScope) -> None:
    with pytest.raises(NoSuchTableError, match=r"lake\.db\.t has no .* did you mean snapshots\?"):
        find_table(scope, CatalogName("lake", ("db", "t", "snapshot")))


@pytest.mark.parametrize("name", [("db", "u", "file"), ("db", "u", "files"), ("db", "u")])
def test_a_table_that_is_not_there_is_named_whole(scope: NameScope, name: tuple[str, ...]) -> None:
    with pytest.raises(NoSuchTableError, match=r"lake\." + r"\.".join(name)):
        find_table(scope, CatalogName("lake", name))
