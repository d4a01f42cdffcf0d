"""Writes table updates and requirements as JSON (REST catalog specification)."""

from __future__ import annotations

from typing import Any, assert_never

from icebergds.spec.json.encryption import encrypted_key_to_json
from icebergds.spec.json.partition import partition_spec_to_json
from icebergds.spec.json.schema import schema_to_json
from icebergds.spec.json.snapshot import ref_to_json, snapshot_to_json
from icebergds.spec.json.sort import sort_order_to_json
from icebergds.spec.json.statistics import (
    partition_statistics_file_to_json,
    statistics_file_to_json,
)
from icebergds.spec.partition import NO_FIELD_ID, PartitionSpec
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


def update_to_json(update: TableUpdate) -> dict[str, Any]:
    """The JSON object of a table update."""
    match update:
        case AssignUuid(uuid=uuid):
            return {"action": "assign-uuid", "uuid": uuid}
        case UpgradeFormatVersion(format_version=version):
            return {"action": "upgrade-format-version", "format-version": version}
        case AddSchema(schema=schema):
            return {"action": "add-schema", "schema": schema_to_json(schema)}
        case SetCurrentSchema(schema_id=schema_id):
            return {"action": "set-current-schema", "schema-id": schema_id}
        case AddPartitionSpec(spec=spec):
            return {"action": "add-spec", "spec": _spec_to_json(spec)}
        case SetDefaultSpec(spec_id=spec_id):
            return {"action": "set-default-spec", "spec-id": spec_id}
        case AddSortOrder(sort_order=order):
            return {"action": "add-sort-order", "sort-order": sort_order_to_json(order)}
        case SetDefaultSortOrder(sort_order_id=order_id):
            return {"action": "set-default-sort-order", "sort-order-id": order_id}
        case AddSnapshot(snapshot=snapshot):
            # As in version 1: a sequence number of 0 is left out; later versions start at 1.
            return {"action": "add-snapshot", "snapshot": snapshot_to_json(snapshot, 1)}
        case SetSnapshotRef(name=name, ref=ref):
            return {"action": "set-snapshot-ref", "ref-name": name, **ref_to_json(ref)}
        case RemoveSnapshots(snapshot_ids=snapshot_ids):
            return {"action": "remove-snapshots", "snapshot-ids": list(snapshot_ids)}
        case RemoveSnapshotRef(name=name):
            return {"action": "remove-snapshot-ref", "ref-name": name}
        case SetLocation(location=location):
            return {"action": "set-location", "location": location}
        case SetProperties(updates=updates):
            return {"action": "set-properties", "updates": dict(updates)}
        case RemoveProperties(removals=removals):
            return {"action": "remove-properties", "removals": list(removals)}
        case SetStatistics(statistics=file):
            return {
                "action": "set-statistics",
                # Deprecated, but older servers require it.
                "snapshot-id": file.snapshot_id,
                "statistics": statistics_file_to_json(file),
            }
        case RemoveStatistics(snapshot_id=snapshot_id):
            return {"action": "remove-statistics", "snapshot-id": snapshot_id}
        case SetPartitionStatistics(partition_statistics=partition_file):
            return {
                "action": "set-partition-statistics",
                "partition-statistics": partition_statistics_file_to_json(partition_file),
            }
        case RemovePartitionStatistics(snapshot_id=snapshot_id):
            return {"action": "remove-partition-statistics", "snapshot-id": snapshot_id}
        case RemovePartitionSpecs(spec_ids=spec_ids):
            return {"action": "remove-partition-specs", "spec-ids": list(spec_ids)}
        case RemoveSchemas(schema_ids=schema_ids):
            return {"action": "remove-schemas", "schema-ids": list(schema_ids)}
        case AddEncryptionKey(encryption_key=key):
            return {"action": "add-encryption-key", "encryption-key": encrypted_key_to_json(key)}
        case RemoveEncryptionKey(key_id=key_id):
            return {"action": "remove-encryption-key", "key-id": key_id}
        case _:
            assert_never(update)


def requirement_to_json(requirement: TableRequirement) -> dict[str, Any]:
    """The JSON object of a table requirement."""
    match requirement:
        case AssertCreate():
            return {"type": "assert-create"}
        case AssertTableUuid(uuid=uuid):
            return {"type": "assert-table-uuid", "uuid": uuid}
        case AssertRefSnapshotId(ref=ref, snapshot_id=snapshot_id):
            return {"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": snapshot_id}
        case AssertLastAssignedFieldId(last_assigned_field_id=number):
            return {"type": "assert-last-assigned-field-id", "last-assigned-field-id": number}
        case AssertCurrentSchemaId(current_schema_id=number):
            return {"type": "assert-current-schema-id", "current-schema-id": number}
        case AssertLastAssignedPartitionId(last_assigned_partition_id=number):
            return {
                "type": "assert-last-assigned-partition-id",
                "last-assigned-partition-id": number,
            }
        case AssertDefaultSpecId(default_spec_id=number):
            return {"type": "assert-default-spec-id", "default-spec-id": number}
        case AssertDefaultSortOrderId(default_sort_order_id=number):
            return {"type": "assert-default-sort-order-id", "default-sort-order-id": number}
        case _:
            assert_never(requirement)


def _spec_to_json(spec: PartitionSpec) -> dict[str, Any]:
    obj = partition_spec_to_json(spec)
    for field in obj["fields"]:
        if field["field-id"] == NO_FIELD_ID:
            del field["field-id"]
    return obj
