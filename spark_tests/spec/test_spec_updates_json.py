"""Updates and requirements as the JSON of the REST catalog."""

from __future__ import annotations

import json
from typing import Any

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
from hypothesis import example, given, strategies as st
from pydantic import TypeAdapter
from pyiceberg.table.update import TableRequirement as PyRequirement, TableUpdate as PyUpdate

from icebergds.spec.encryption import EncryptedKey
from icebergds.spec.json.updates import (
    requirement_to_json,
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
    st.just(AddPartitionSpec(spec(part(1, "identity", "id", 1000), part(2, "day", "d", 1001)))),
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


def bare(obj: Any) -> Any:
    """JSON without members that may be left out: null, empty lists, and the number of version 1."""
    if isinstance(obj, dict):
        left = {name: value for name, value in obj.items() if value not in (None, [])}
        if left.get("sequence-number") == 0:
            del left["sequence-number"]
        return {name: bare(value) for name, value in left.items()}
    return [bare(value) for value in obj] if isinstance(obj, list) else obj


# PyIceberg takes no text for a UUID that is none, and knows no keys.
_ELSEWHERE = (AssignUuid, AddEncryptionKey, RemoveEncryptionKey)


@given(UPDATES.filter(lambda update: not isinstance(update, _ELSEWHERE)))
@example(AssignUuid(UUID))
def test_another_client_reads_the_updates(update: TableUpdate) -> None:
    ours = update_to_json(update)
    theirs = TypeAdapter(PyUpdate).validate_json(json.dumps(ours))
    assert bare(json.loads(theirs.model_dump_json())) == bare(ours)  # type: ignore[attr-defined]


def test_keys_are_sent_as_base64() -> None:
    assert update_to_json(AddEncryptionKey(EncryptedKey("k", b"key"))) == {
        "action": "add-encryption-key",
        "encryption-key": {"key-id": "k", "encrypted-key-metadata": "a2V5"},
    }
    assert update_to_json(RemoveEncryptionKey("k")) == {
        "action": "remove-encryption-key",
        "key-id": "k",
    }


@given(REQUIREMENTS.filter(lambda r: not isinstance(r, AssertTableUuid)))
@example(AssertTableUuid(UUID))
def test_another_client_reads_the_requirements(requirement: TableRequirement) -> None:
    ours = requirement_to_json(requirement)
    theirs = TypeAdapter(PyRequirement).validate_json(json.dumps(ours))
    assert bare(json.loads(theirs.model_dump_json())) == bare(ours)  # type: ignore[attr-defined]


def test_a_reference_that_must_not_exist_is_a_null_not_an_absence() -> None:
    assert requirement_to_json(AssertRefSnapshotId("main", None)) == {
        "type": "assert-ref-snapshot-id",
        "ref": "main",
        "snapshot-id": None,
    }


def test_ids_of_specs_may_be_left_to_the_catalog() -> None:
    update = AddPartitionSpec(spec(part(2, "day", "d")))
    assert update_to_json(update)["spec"]["fields"] == [
        {"source-id": 2, "transform": "day", "name": "d"}
    ]
