"""Processes that change one table in every other way than by rows, at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hive_tables
import pytest
from built.api_tables import catalog_in, create_table, ids_of, open_table, rows
from built.contents import unused_files
from effort import IS_NIGHTLY, scaled
from race_writers import PATIENT, id_of, race, shape, transact

_OF_EACH_KIND = 4 if IS_NIGHTLY else 2
_NEAR = ["filesystem", "sqlite", "postgresql"]
# Their commits are raced for in each change, by their own tests.
_SERVICES = ["mariadb", "rest", "hive", "hive with locks", "glue", "dynamodb", "s3tables"]


@pytest.fixture(params=[*_NEAR, *(_SERVICES if IS_NIGHTLY else [])])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Properties of a catalog of each kind."""

    def server(name: str) -> Any:
        return request.getfixturevalue(name)

    match request.param:
        case "filesystem":
            return catalog_in(tmp_path)
        case "sqlite":
            return catalog_in(tmp_path, f"sqlite:///{tmp_path}/catalog.db")
        case "postgresql":
            return catalog_in(tmp_path, server("postgres").uri(server("postgres").new_database()))
        case "mariadb":
            uri = server("mariadb").uri(server("mariadb").new_database())
            return catalog_in(tmp_path, f"{uri}?ssl_disabled=true")
        case "rest":
            return {"type": "rest", "uri": server("rest").uri(server("rest").new_catalog())}
        case "s3tables":
            properties: dict[str, str] = server("moto").s3_tables_properties()
            return properties
        case "glue" | "dynamodb" as service:
            return {**catalog_in(tmp_path), **server("moto").properties(service)}
    kind = "locking_metastore" if "locks" in request.param else "conditional_metastore"
    hive_tables.empty(server(kind))
    return {**catalog_in(tmp_path), "type": "hive", "uri": server(kind).uri}


def test_no_update_and_no_transaction_of_many_processes_is_lost(catalog: dict[str, str]) -> None:
    create_table(catalog, **PATIENT).append(rows(90_000))
    commits = scaled(16) if catalog.get("type", "sql") == "sql" else 4
    race([*[shape] * _OF_EACH_KIND, *[transact] * _OF_EACH_KIND], commits, catalog)
    shapers = range(_OF_EACH_KIND)
    transactors = range(_OF_EACH_KIND, 2 * _OF_EACH_KIND)
    table = open_table(catalog)
    written = [id_of(w, n) for w in transactors for n in range(2 * commits)]
    assert ids_of(table) == [*written, 90_000]
    shaped = {f"u{w}_{n}" for w in shapers for n in range(commits)}
    tagged = {f"t{w}_{n}" for w in transactors for n in range(commits)}
    assert shaped <= {field.name for field in table.schema().fields}
    assert shaped <= set(table.properties)
    assert set(table.refs()) == {"main"} | shaped | tagged
    for name in tagged:
        writer, _, number = name[1:].partition("_")
        last = id_of(int(writer), 2 * int(number) + 1)
        assert {last - 1, last} <= set(ids_of(table, tag=name))
    ids = [field.field_id for field in table.schema().fields]
    assert len(set(ids)) == len(ids) == table.metadata.last_column_id
    if Path(table.location()).is_dir():
        assert unused_files(table) == set()
