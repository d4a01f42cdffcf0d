"""Updates and requirements as the JSON of the REST catalog."""

from __future__ import annotations

import json
from typing import Any

import pytest
from built.metadata import (
    SCHEMA,
    UUID,
    branch,
    new_table,
    part,
    snapshot,
    sort_by,
    spec,
    tag,
)
from hypothesis import given, strategies as st
from pydantic import TypeAdapter
from pyiceberg.table.update import TableRequirement as PyRequirement, TableUpdate as PyUpdate

from icebergds.errors import InvalidMetadataError, UnsupportedFeatureError
from icebergds.spec.encryption import EncryptedKey
from icebergds.spec.json.updates import (
    requirement_from_json,
    requirement_to_json,
    update_from_json,
    update_to_json,
)
from icebergds.spec.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from icebergds.spec.updates.requirements import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUuid,
    TableRequirement,
)
from icebergds.spec.updates.table_updates import (
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUuid,
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
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

BLOB = BlobMetadata("apache-datasketches-theta-v1", 1, 1, (1,), {"ndv": "3"})
LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
NAMES = st.text(max_size=8)

UPDATES: st.SearchStrategy[TableUpdate] = st.one_of(
    st.builds(AssignUuid, NAMES),
    st.builds(UpgradeFormatVersion, INTS),
    st.just(AddSchema(SCHEMA)),
    st.builds(SetCurrentSchema, INTS),
    st.just(AddPartitionSpec(spec(part(1, "identity", "id", 1000), part(2, "day", "d")))),
    st.builds(SetDefaultSpec, INTS),
    st.just(AddSortOrder(sort_by(1))),
    st.builds(SetDefaultSortOrder, INTS),
    st.sampled_from([AddSnapshot(snapshot(new_table(version), 1)) for version in (1, 2, 3)]),
    st.builds(
        SetSnapshotRef,
        NAMES,
        st.one_of(st.builds(branch, LONGS), st.builds(tag, LONGS, max_ref_age_ms=LONGS)),
    ),
    st.builds(RemoveSnapshots, st.lists(LONGS).map(tuple)),
    st.builds(RemoveSnapshotRef, NAMES),
    st.builds(SetLocation, NAMES),
    st.builds(SetProperties, st.dictionaries(NAMES, NAMES)),
    st.builds(RemoveProperties, st.lists(NAMES).map(tuple)),
    st.just(SetStatistics(StatisticsFile(1, "/s", 2, 3, (BLOB,), "a2V5"))),
    st.builds(RemoveStatistics, LONGS),
    st.builds(SetPartitionStatistics, st.builds(PartitionStatisticsFile, LONGS, NAMES, LONGS)),
    st.builds(RemovePartitionStatistics, LONGS),
    st.builds(RemovePartitionSpecs, st.lists(INTS).map(tuple)),
    st.builds(RemoveSchemas, st.lists(INTS).map(tuple)),
    st.builds(AddEncryptionKey, st.builds(EncryptedKey, NAMES, st.binary(max_size=8))),
    st.builds(RemoveEncryptionKey, NAMES),
)
REQUIREMENTS: st.SearchStrategy[TableRequirement] = st.one_of(
    st.just(AssertCreate()),
    st.builds(AssertTableUuid, NAMES),
    st.builds(AssertRefSnapshotId, NAMES, st.none() | LONGS),
    st.builds(AssertLastAssignedFieldId, INTS),
    st.builds(AssertCurrentSchemaId, INTS),
    st.builds(AssertLastAssignedPartitionId, INTS),
    st.builds(AssertDefaultSpecId, INTS),
    st.builds(AssertDefaultSortOrderId, INTS),
)
EXAMPLES: list[TableUpdate] = [
    AssignUuid(UUID),
    UpgradeFormatVersion(2),
    AddSchema(SCHEMA),
    SetCurrentSchema(-1),
    AddPartitionSpec(spec(part(1, "identity", "id", 1000))),
    SetDefaultSpec(-1),
    AddSortOrder(sort_by(1)),
    SetDefaultSortOrder(-1),
    AddSnapshot(snapshot(new_table(), 1)),
    SetSnapshotRef("main", branch(1, min_snapshots_to_keep=2)),
    RemoveSnapshots((1, 2)),
    RemoveSnapshotRef("v1"),
    SetLocation("s3://b/t"),
    SetProperties({"a": "b"}),
    RemoveProperties(("a",)),
    SetStatistics(StatisticsFile(1, "/s", 2, 3, (BLOB,))),
    RemoveStatistics(1),
    SetPartitionStatistics(PartitionStatisticsFile(1, "/p", 2)),
    RemovePartitionStatistics(1),
    RemovePartitionSpecs((1,)),
    RemoveSchemas((1,)),
]


@given(UPDATES)
def test_an_update_survives_its_json(update: TableUpdate) -> None:
    assert update_from_json(json.loads(json.dumps(update_to_json(update)))) == update


@given(REQUIREMENTS)
def test_a_requirement_survives_its_json(requirement: TableRequirement) -> None:
    text = json.dumps(requirement_to_json(requirement))
    assert requirement_from_json(json.loads(text)) == requirement


@pytest.mark.parametrize("update", EXAMPLES, ids=lambda update: type(update).__name__)
def test_another_client_reads_and_writes_the_same_json(update: TableUpdate) -> None:
    ours = update_to_json(update)
    theirs = TypeAdapter(PyUpdate).validate_json(json.dumps(ours))
    assert theirs.action == ours["action"]  # type: ignore[attr-defined]
    assert update_from_json(json.loads(theirs.model_dump_json())) == update  # type: ignore[attr-defined]


@given(REQUIREMENTS.filter(lambda r: not isinstance(r, AssertTableUuid)))
def test_another_client_reads_and_writes_the_same_requirements(
    requirement: TableRequirement,
) -> None:
    theirs = TypeAdapter(PyRequirement).validate_json(json.dumps(requirement_to_json(requirement)))
    text = theirs.model_dump_json()  # type: ignore[attr-defined]
    assert requirement_from_json(json.loads(text)) == requirement


def test_a_reference_that_must_not_exist_is_a_null_not_an_absence() -> None:
    assert requirement_to_json(AssertRefSnapshotId("main", None)) == {
        "type": "assert-ref-snapshot-id",
        "ref": "main",
        "snapshot-id": None,
    }
    with pytest.raises(InvalidMetadataError, match="lacks 'snapshot-id'"):
        requirement_from_json({"type": "assert-ref-snapshot-id", "ref": "main"})


def test_ids_of_specs_may_be_left_to_the_catalog() -> None:
    field = {"source-id": 2, "transform": "day", "name": "d"}
    obj = {"action": "add-spec", "spec": {"fields": [field]}}
    update = AddPartitionSpec(spec(part(2, "day", "d")))
    assert update_from_json(obj) == update
    assert update_to_json(update)["spec"]["fields"] == [field]


@pytest.mark.parametrize(
    ("obj", "error", "message"),
    [
        ([], InvalidMetadataError, "a table update is"),
        ({}, InvalidMetadataError, "lacks 'action'"),
        (
            {"action": "add-view-version"},
            UnsupportedFeatureError,
            "'add-view-version' is unknown",
        ),
        ({"action": "remove-snapshots"}, InvalidMetadataError, "lacks 'snapshot-ids'"),
        ({"action": "set-properties"}, InvalidMetadataError, "lacks 'updates'"),
        ({"action": "set-location", "location": 1}, InvalidMetadataError, "'location' of update"),
    ],
)
def test_malformed_updates_are_named(obj: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        update_from_json(obj)


def test_unknown_requirements_are_named() -> None:
    with pytest.raises(UnsupportedFeatureError, match="'assert-view-uuid' is unknown"):
        requirement_from_json({"type": "assert-view-uuid", "uuid": "x"})
