"""Snapshots, references and logs to and from JSON."""

from __future__ import annotations

from typing import Any

import pytest

from icebergds.errors import InvalidMetadataError
from icebergds.spec.json.snapshot import (
    metadata_log_entry_from_json,
    metadata_log_entry_to_json,
    ref_from_json,
    ref_to_json,
    snapshot_from_json,
    snapshot_log_entry_from_json,
    snapshot_log_entry_to_json,
    snapshot_to_json,
)
from icebergds.spec.snapshot import RefType, Snapshot, SnapshotRef

FULL = {
    "snapshot-id": 7,
    "parent-snapshot-id": 6,
    "sequence-number": 3,
    "timestamp-ms": 1_600_000_000_000,
    "summary": {"operation": "append", "added-records": "5"},
    "manifest-list": "s3://b/list.avro",
    "schema-id": 1,
    "first-row-id": 100,
    "added-rows": 5,
    "key-id": "k1",
    "x-new": {"a": [1]},
}


def without(obj: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if name not in names}


def test_a_snapshot_of_version_3_survives_its_json() -> None:
    snapshot = snapshot_from_json(FULL)
    assert snapshot.first_row_id == 100
    assert snapshot.key_id == "k1"
    assert snapshot_to_json(snapshot, 3) == FULL


def test_an_old_snapshot_lists_its_manifests() -> None:
    obj = {"snapshot-id": 1, "timestamp-ms": 5, "manifests": ["a.avro", "b.avro"]}
    snapshot = snapshot_from_json(obj)
    assert snapshot == Snapshot(1, 5, manifests=("a.avro", "b.avro"))
    assert snapshot.operation is None
    assert snapshot_to_json(snapshot, 1) == obj


def test_a_manifest_list_wins_over_manifests() -> None:
    snapshot = snapshot_from_json({**FULL, "manifests": ["a.avro"]})
    assert snapshot.manifests == ()


def test_a_snapshot_without_any_manifests_is_refused() -> None:
    with pytest.raises(InvalidMetadataError, match="snapshot 7 has neither 'manifest-list'"):
        snapshot_from_json(without(FULL, "manifest-list"))


def test_sequence_numbers_are_zero_before_version_2_and_written_from_then_on() -> None:
    snapshot = snapshot_from_json(without(FULL, "sequence-number"))
    assert snapshot.sequence_number == 0
    assert "sequence-number" not in snapshot_to_json(snapshot, 1)
    assert snapshot_to_json(snapshot, 2)["sequence-number"] == 0


def test_null_members_are_absent_ones() -> None:
    nulls = dict.fromkeys(("parent-snapshot-id", "schema-id", "first-row-id", "key-id"))
    assert snapshot_from_json({**FULL, **nulls}) == snapshot_from_json(without(FULL, *nulls))


def test_a_summary_without_an_operation_promises_nothing() -> None:
    assert snapshot_from_json({**FULL, "summary": {"a": "b"}}).operation == "overwrite"
    assert snapshot_from_json({**FULL, "summary": {}}).operation is None


def test_numbers_in_a_summary_become_text() -> None:
    snapshot = snapshot_from_json({**FULL, "summary": {"added-records": 5, "x": None, "y": True}})
    assert snapshot.summary == {"added-records": "5", "y": "true"}


@pytest.mark.parametrize(
    "obj",
    [
        {"snapshot-id": 7, "type": "branch"},
        {
            "snapshot-id": 7,
            "type": "branch",
            "min-snapshots-to-keep": 2,
            "max-snapshot-age-ms": 10,
            "max-ref-age-ms": 20,
        },
        {"snapshot-id": 7, "type": "tag", "max-ref-age-ms": 20, "x-new": 1},
    ],
    ids=str,
)
def test_a_reference_survives_its_json(obj: dict[str, Any]) -> None:
    assert ref_to_json(ref_from_json(obj, "r")) == obj


def test_the_type_of_a_reference_may_be_in_capitals() -> None:
    ref = ref_from_json({"snapshot-id": 7, "type": "TAG"}, "r")
    assert ref == SnapshotRef(7, RefType.TAG)


def test_references_are_branches_or_tags() -> None:
    with pytest.raises(InvalidMetadataError, match="ref 'r' is 'pointer', expected one of branch"):
        ref_from_json({"snapshot-id": 7, "type": "pointer"}, "r")


def test_log_entries_survive_their_json() -> None:
    moved = {"timestamp-ms": 5, "snapshot-id": 7, "x-new": 1}
    assert snapshot_log_entry_to_json(snapshot_log_entry_from_json(moved)) == moved
    previous = {"timestamp-ms": 5, "metadata-file": "v1.metadata.json", "x-new": 1}
    assert metadata_log_entry_to_json(metadata_log_entry_from_json(previous)) == previous


@pytest.mark.parametrize("name", ["snapshot-id", "timestamp-ms"])
@pytest.mark.parametrize("value", [None, "7", 7.5, True])
def test_ids_and_times_are_integers(name: str, value: Any) -> None:
    with pytest.raises(InvalidMetadataError, match=f"'{name}'"):
        snapshot_from_json({**FULL, name: value})
