"""The same updates applied by another implementation give the same table."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from built.metadata import (
    SCHEMA,
    branch,
    changed,
    new_table,
    part,
    snapshot,
    sort_by,
    spec,
    tag,
)
from effort import examples
from hypothesis import given, strategies as st
from pydantic import TypeAdapter
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update import TableUpdate as PyUpdate, update_table_metadata

from icebergds.spec.json.metadata import metadata_from_json, metadata_to_json
from icebergds.spec.json.updates import update_to_json
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.schema import Schema
from icebergds.spec.statistics import PartitionStatisticsFile, StatisticsFile
from icebergds.spec.types import INT, NestedField
from icebergds.spec.updates.table_updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    TableUpdate,
    UpgradeFormatVersion,
)

COLUMNS = [NestedField(number, f"c{number}", INT) for number in range(9, 12)]
SCHEMAS = [Schema((*SCHEMA.fields, *COLUMNS[:count])) for count in range(1, 4)]
SPECS = [spec(part(2, "day", "d", 1000)), spec(part(1, "bucket[4]", "b", 1001))]


def applied_by_pyiceberg(table: TableMetadata, updates: list[TableUpdate]) -> TableMetadata:
    base = TableMetadataUtil.parse_obj(json.loads(json.dumps(metadata_to_json(table))))
    theirs = [
        TypeAdapter(PyUpdate).validate_json(json.dumps(update_to_json(update)))
        for update in updates
    ]
    result = update_table_metadata(base, tuple(theirs))  # type: ignore[arg-type]
    return metadata_from_json(json.loads(result.model_dump_json()), "t")


def comparable(table: TableMetadata) -> dict[str, Any]:
    obj = metadata_to_json(table)
    # Times of change are each implementation's own.
    del obj["last-updated-ms"]
    # PyIceberg leaves a gap in the log where a snapshot is removed; Java, as we do, what is after.
    obj["snapshot-log"] = [entry["snapshot-id"] for entry in obj["snapshot-log"]][-1:]
    # PyIceberg forgets parents that are removed; Java, as we do, keeps their ids.
    there = {listed["snapshot-id"] for listed in obj["snapshots"]}
    for listed in obj["snapshots"]:
        if listed.get("parent-snapshot-id") not in there:
            listed.pop("parent-snapshot-id", None)
    # PyIceberg keeps partition statistics of snapshots that are removed; Java, as we do, does not.
    obj["partition-statistics"] = [
        listed for listed in obj["partition-statistics"] if listed["snapshot-id"] in there
    ]
    return obj


@st.composite
def histories(draw: st.DrawFn) -> list[list[TableUpdate]]:
    """Commits to a table, each possible after those before it."""
    commits: list[list[TableUpdate]] = []
    table = new_table()
    for number in range(1, draw(st.integers(1, 8)) + 1):
        updates = draw(_commits(table, number))
        commits.append(updates)
        table = changed(table, *updates)
    return commits


def _commits(table: TableMetadata, number: int) -> st.SearchStrategy[list[TableUpdate]]:
    add = AddSnapshot(snapshot(table, number))
    # Ids are those that are next: the other implementation assigns none, and refuses known ones.
    schema_id, spec_id = len(table.schemas), len(table.partition_specs)
    kinds: list[list[TableUpdate]] = [
        [add, SetSnapshotRef("main", branch(number))],
        [add, SetSnapshotRef("dev", branch(number))],
        [SetProperties({"a": str(number)}), SetLocation(f"s3://b/t{number}")],
    ]
    if "a" in table.properties:
        kinds.append([RemoveProperties(("a",))])
    if not table.default_sort_order_id:
        kinds.append([AddSortOrder(sort_by(1)), SetDefaultSortOrder(-1)])
    kinds += [
        [AddSchema(replace(added, schema_id=schema_id)), SetCurrentSchema(-1)]
        for added in SCHEMAS
        if all(known.fields != added.fields for known in table.schemas)
    ]
    kinds += [
        [AddPartitionSpec(replace(added, spec_id=spec_id)), SetDefaultSpec(-1)]
        for added in SPECS
        if all(known.fields != added.fields for known in table.partition_specs)
    ]
    for known in table.snapshots:
        known_id = known.snapshot_id
        kinds += [
            [SetSnapshotRef("v1", tag(known_id))],
            [SetStatistics(StatisticsFile(known_id, "/s", 1, 1))],
            [SetPartitionStatistics(PartitionStatisticsFile(known_id, "/p", 1))],
        ]
        if all(ref.snapshot_id != known_id for ref in table.refs.values()):
            kinds.append([RemoveSnapshots((known_id,))])
    kinds += [[RemoveSnapshotRef(name)] for name in table.refs if name != "main"]
    kinds += [[RemoveStatistics(file.snapshot_id)] for file in table.statistics]
    kinds += [[RemovePartitionStatistics(file.snapshot_id)] for file in table.partition_statistics]
    return st.sampled_from(kinds)


@examples(60)
@given(histories())
def test_histories_end_in_the_same_table(commits: list[list[TableUpdate]]) -> None:
    table = new_table()
    for updates in commits:
        ours = changed(table, *updates)
        assert comparable(ours) == comparable(applied_by_pyiceberg(table, updates))
        table = ours


@pytest.mark.parametrize("version", [1, 2])
def test_upgrades_end_in_the_same_table(version: int) -> None:
    table = new_table(version, spec=spec(part(2, "day", "d")), sort_order=sort_by(1))
    upgrade: list[TableUpdate] = [UpgradeFormatVersion(2)]
    assert comparable(changed(table, *upgrade)) == comparable(applied_by_pyiceberg(table, upgrade))
