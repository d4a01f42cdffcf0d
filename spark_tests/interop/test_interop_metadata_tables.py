"""Java's metadata tables of what icebergds wrote, and summaries, say what its manifests say."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import metadata_rows
import pytest
import written_tables  # noqa: F401  (registers the tables)
from java_process import JavaProcess
from our_tables import OurTable

from icebergds.api.table import Table

pytestmark = pytest.mark.interop

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
_METADATA_TABLES: Mapping[str, Callable[[Table], list[dict[str, Any]]]] = {
    "files": metadata_rows.file_rows,
    "entries": metadata_rows.entry_rows,
    "all_entries": metadata_rows.all_entry_rows,
    "manifests": metadata_rows.manifest_rows,
    "all_manifests": metadata_rows.all_manifest_rows,
    "partitions": metadata_rows.partition_rows,
    "snapshots": metadata_rows.snapshot_rows,
    "refs": metadata_rows.reference_rows,
    "history": metadata_rows.history_rows,
}


@pytest.mark.parametrize("metadata_table", _METADATA_TABLES)
@pytest.mark.parametrize("name", _TABLES)
def test_java_sees_in_metadata_tables_what_we_read(
    java_process: JavaProcess, our_tables: Mapping[str, OurTable], name: str, metadata_table: str
) -> None:
    statement = f"SELECT to_json(struct(*)) FROM oracle.db.{name}.{metadata_table}"
    java = [json.loads(text) for (text,) in java_process.ask("sql", statement=statement)]
    for row in java:
        row.pop("readable_metrics", None)  # Made from the others.
    ours = _METADATA_TABLES[metadata_table](our_tables[name].table)
    assert _comparable(ours) == _comparable(java)


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
    """Rows as texts, in order, without what is null or empty."""
    return sorted(json.dumps(_without_nothing(row), sort_keys=True) for row in rows)


def _without_nothing(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nothing(element) for element in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _without_nothing(member) for key, member in value.items()}
    return {key: member for key, member in kept.items() if member not in (None, [], {})}
