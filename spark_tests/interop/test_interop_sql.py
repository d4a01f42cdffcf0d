"""Scripts of SQL give the same on Java Iceberg, and leave the same tables behind, as Java sees."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from effort import some
from java_process import JavaProcess, java_agrees
from java_sql_cases import JAVA_CASES
from oracles.java_environment import JavaEnvironment
from oracles.sql_program import create_namespaces, run_cases
from pyspark.sql import SparkSession
from sql_cases import CASES as SCRIPTS
from sql_definition_cases import DEFINITIONS

from icebergds import Catalog, Table, load_catalog, register
from icebergds.spec.json.name_mapping import NAME_MAPPING_PROPERTY
from icebergds.spec.snapshot import Snapshot, SnapshotRef

pytestmark = [pytest.mark.interop, pytest.mark.spark]
_ALL = {**SCRIPTS, **DEFINITIONS, **JAVA_CASES}
_CHOSEN = [*some([*SCRIPTS, *DEFINITIONS], 20), *some(list(JAVA_CASES), 4)]
CASES = {name: _ALL[name] for name in _CHOSEN}
# Of who created a table, Java's own defaults, which it writes out, and ours.
_NOT_COMPARED = {"owner", "created-by", "write.parquet.compression-codec", "write.upsert.mode"}


@pytest.fixture(scope="module")
def theirs(java: JavaEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse after Java Iceberg has run all cases, with the results."""
    directory = tmp_path_factory.mktemp("java")
    cases = {name: case.statements for name, case in CASES.items()}
    (directory / "cases.json").write_text(json.dumps(cases))
    java.run("-m", "oracles.sql_program", str(directory), timeout_seconds=1800)
    return directory


@pytest.fixture(scope="module")
def results(theirs: Path) -> Mapping[str, list[Any]]:
    found: dict[str, list[Any]] = json.loads((theirs / "results.json").read_text())
    return found


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    session = spark.newSession()
    session.conf.set("spark.icebergpy.catalog.lake.warehouse", str(tmp_path))
    session.conf.set("spark.icebergpy.catalog.views.uri", f"jdbc:sqlite:{tmp_path}/views.db")
    session.conf.set("spark.icebergpy.catalog.views.warehouse", str(tmp_path / "views"))
    session.conf.set("spark.sql.session.timeZone", "UTC")
    register(session, sql=True)
    yield session
    register(session)


@pytest.mark.parametrize("name", CASES)
def test_statements_give_what_java_gives(
    lake: SparkSession,
    tmp_path: Path,
    theirs: Path,
    results: Mapping[str, list[Any]],
    java_process: JavaProcess,
    name: str,
) -> None:
    case = CASES[name]
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    cases = {name: case.statements}
    create_namespaces(lake, cases)
    [ours] = run_cases(lake, cases, tmp_path / "files").values()
    differences = {}
    for number, text in enumerate(case.statements):
        given, expected = _comparable(ours[number]), _comparable(results[name][number])
        if (given == expected) == (number in case.differs):
            shown = (ours[number], results[name][number])
            differences[text] = f"ours {shown[0]}\njava {shown[1]}"
    assert not differences, "\n".join(f"{text}\n{both}" for text, both in differences.items())
    java = load_catalog("java", warehouse=str(theirs / "warehouse"))
    for table in case.tables:
        left, expected = _state(catalog, name, table), _state(java, name, table)
        assert left == expected
        left_table = catalog.load_table(f"{name}.{table}")
        # Without Spark, Java reads imported files by the places of their columns.
        if NAME_MAPPING_PROPERTY not in left_table.properties:
            java_agrees(java_process, left_table.location())
    if case.tables:
        operations = [_operations(each, name, case.tables) for each in (catalog, java)]
        assert (operations[0] != operations[1]) == bool(case.operations_differ)


def _comparable(result: Mapping[str, Any]) -> Any:
    """Messages and the kinds of errors are each engine's own; counts of changed rows are ours."""
    if "error" in result:
        return "error"
    if result["columns"] and result["columns"][0][0] == "num_affected_rows":
        return [], []
    return result["columns"], result["rows"]


def _state(catalog: Catalog, namespace: str, name: str) -> dict[str, Any]:
    table = catalog.load_table(f"{namespace}.{name}")
    return {
        "schema": table.schema().fields,
        "identifiers": table.schema().identifier_field_ids,
        "spec": [(str(f.transform), f.source_ids, f.name) for f in table.spec().fields],
        "order": [(str(f.transform), f.source_ids, f.direction) for f in table.sort_order().fields],
        "properties": {
            key: json.loads(value) if key == NAME_MAPPING_PROPERTY else value
            for key, value in table.properties.items()
            if key not in _NOT_COMPARED
        },
        "refs": {ref: _retention(r) for ref, r in table.refs().items()},
        "rows": _rows(table),
    }


def _operations(catalog: Catalog, namespace: str, names: tuple[str, ...]) -> list[list[str | None]]:
    """Of the snapshots that change something; Java commits others too."""
    tables = [catalog.load_table(f"{namespace}.{name}") for name in names]
    return [
        [
            snapshot.operation
            for snapshot in table.snapshots()
            if snapshot.operation == "replace" or _changes_files(snapshot)
        ]
        for table in tables
    ]


def _changes_files(snapshot: Snapshot) -> bool:
    return any(
        key.endswith("-files") and not key.startswith("total-") and int(count) > 0
        for key, count in snapshot.summary.items()
    )


def _retention(ref: SnapshotRef) -> tuple[object, ...]:
    return ref.ref_type, ref.max_ref_age_ms, ref.min_snapshots_to_keep, ref.max_snapshot_age_ms


def _rows(table: Table) -> Counter[str]:
    return Counter(map(str, table.scan().to_arrow().to_pylist()))
