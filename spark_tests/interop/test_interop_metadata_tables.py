"""Metadata tables are those of Java Iceberg, and summaries say what manifests list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

import metadata_rows
import pytest
import written_tables  # noqa: F401  (registers the tables)
from effort import examples, some
from hypothesis import Phase, given, strategies as st
from java_process import JavaProcess
from our_tables import OUR_TABLES, OurTable, Writer
from strategies.evolving_table import EvolvingTable

from icebergds.api.table import Table
from icebergds.operations.metadata_tables.kinds import MetadataTable

pytestmark = pytest.mark.interop

# Java has no metadata tables of files where Spark lacks a type, and cannot show bounds of UUIDs.
_REFUSED = (
    "Spark does not support time fields",
    "Cannot convert unsupported type to Spark",
    "Cannot cast java.util.UUID",
)
# Java has no values for the bounds of shapes.
_REFUSED_OF_SHAPES = 'because "v" is null'
_TABLES = (
    "branches_and_staged",
    "branches_and_staged_v3",
    "empty",
    "empty_append",
    "evolved_spec_v1",
    "evolved_specs",
    "evolved_specs_v3",
    "history",
    "history_of_merged_manifests",
    "history_of_merged_manifests_v3",
    "history_v1",
    "sorted_rows",
    "tagged_snapshots",
    "upgraded",
)
_ALL_KINDS = tuple(MetadataTable)
_FILES_AND_MORE = (
    MetadataTable.FILES,
    MetadataTable.ENTRIES,
    MetadataTable.PARTITIONS,
    MetadataTable.MANIFESTS,
)


@pytest.mark.parametrize("name", some(_TABLES, 7))
def test_metadata_tables_are_those_of_java(
    java_process: JavaProcess, our_tables: Mapping[str, OurTable], name: str
) -> None:
    _assert_same(java_process, our_tables[name].table, name, _ALL_KINDS)


@pytest.mark.parametrize("name", some(sorted(set(OUR_TABLES) - set(_TABLES)), 20))
def test_files_and_partitions_of_all_types_are_those_of_java(
    java_process: JavaProcess, our_tables: Mapping[str, OurTable], name: str
) -> None:
    for kind in _FILES_AND_MORE:
        try:
            _assert_same(java_process, our_tables[name].table, name, [kind])
        except RuntimeError as error:
            of_shapes = name.startswith("geo") and _REFUSED_OF_SHAPES in str(error)
            if not of_shapes and not any(text in str(error) for text in _REFUSED):
                raise


@pytest.mark.parametrize("version", [2, 3])
def test_metadata_tables_of_deletes_are_those_of_java(
    java_process: JavaProcess, our_writer: Writer, version: int
) -> None:
    name = f"deletes_v{version}"
    columns = [("id!", "long"), ("s", "string"), ("v", "double"), ("dropped", "int")]
    mode = {"write__delete__mode": "merge-on-read"}
    made = our_writer.create(name, columns, partition="s", version=version, **mode)
    table, target = made.table, f"oracle.db.{name}"

    def java(statement: str) -> None:
        java_process.ask("sql", statement=statement)
        table.refresh()

    table.append(made.arrow([{"id": i, "s": "ab"[i % 2], "v": i / 2} for i in range(10)]))
    java(f"DELETE FROM {target} WHERE id = 3")
    table.upsert(made.arrow([{"id": 4, "s": "a", "v": 1.5}]), ["id", "s"])
    with table.update_spec() as update:
        update.add_field("bucket(4, id)")
    with table.update_schema() as schema:
        schema.delete_column("dropped")
        schema.add_column("added", "int")
    table.append(made.arrow([{"id": 20 + i, "s": "c", "v": None} for i in range(3)]))
    _assert_same(java_process, table, name, _ALL_KINDS)
    java(f"DELETE FROM {target} WHERE id IN (20, 21, 5)")
    java(f"INSERT INTO {target} VALUES (40, 'd', double('NaN'), 1)")
    java(f"ALTER TABLE {target} CREATE TAG t RETAIN 3 DAYS")
    _assert_same(java_process, table, name, _ALL_KINDS)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_metadata_tables_of_evolved_tables_are_those_of_java(
    java_process: JavaProcess, our_writer: Writer, version: int
) -> None:
    numbers = count()

    # The same tables each time.
    @examples(16, derandomize=True, phases=[Phase.generate])
    @given(st.data())
    def check(data: st.DataObject) -> None:
        name = f"inspected_v{version}_{next(numbers)}"
        made = EvolvingTable(data.draw, our_writer.directory / "warehouse", name, version)
        for _ in range(data.draw(st.integers(5, 14))):
            made.step()
        _assert_same(java_process, made.table.refresh(), name, _ALL_KINDS)

    check()


def _assert_same(
    java: JavaProcess, table: Table, name: str, kinds: Iterable[MetadataTable]
) -> None:
    for kind in kinds:
        statement = f"SELECT to_json(struct(*)) FROM oracle.db.{name}.{kind}"
        expected = [json.loads(text) for (text,) in java.ask("sql", statement=statement)]
        ours = metadata_rows.json_rows(getattr(table.inspect, kind)())
        if kind.is_of_all_snapshots:
            _drop_first_row_ids([*expected, *ours])
        assert _comparable(ours) == _comparable(expected), kind


@pytest.mark.parametrize("name", _TABLES)
def test_summaries_count_what_manifests_list(our_tables: Mapping[str, OurTable], name: str) -> None:
    table = our_tables[name].table
    counted = {
        "changed-partition-count",
        "removed-files-size",
        *(f"{verb}-{what}" for verb in ("total", "added") for what in ("records", "files-size")),
        *(f"{verb}-data-files" for verb in ("total", "added", "deleted")),
        "deleted-records",
    }
    for snapshot in table.snapshots():
        said = {k: v for k, v in snapshot.summary.items() if k in counted and v != "0"}
        assert said == metadata_rows.summary_counts(table, snapshot), snapshot.snapshot_id


@pytest.mark.parametrize("name", _TABLES)
def test_manifest_lists_say_what_manifests_hold(
    our_tables: Mapping[str, OurTable], name: str
) -> None:
    table = our_tables[name].table
    for manifest in metadata_rows.manifests_of(table):
        assert manifest == metadata_rows.counted(table, manifest)


def _comparable(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as texts, in order, without what is null or empty, and with paths without a scheme."""
    texts = (json.dumps(_without_nothing(row), sort_keys=True) for row in rows)
    return sorted(text.replace('"file:/', '"/') for text in texts)


def _drop_first_row_ids(rows: Iterable[dict[str, Any]]) -> None:
    """Java takes a manifest from any manifest list that has it, of whatever version.

    Those of version 2 have no first row id for it, and which list comes first is a race of threads.
    """
    for row in rows:
        row.get("data_file", row).pop("first_row_id", None)


def _without_nothing(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nothing(element) for element in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _without_nothing(member) for key, member in value.items()}
    return {key: member for key, member in kept.items() if member not in (None, [], {})}
