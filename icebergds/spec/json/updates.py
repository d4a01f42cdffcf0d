"""Reads and writes table updates and requirements as JSON (REST catalog specification)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never

from icebergds.errors import InvalidMetadataError, UnsupportedFeatureError
from icebergds.spec.json.encryption import encrypted_key_from_json, encrypted_key_to_json
from icebergds.spec.json.fields import integers, optional, required, string_map, strings, typed
from icebergds.spec.json.partition import partition_spec_from_json, partition_spec_to_json
from icebergds.spec.json.schema import schema_from_json, schema_to_json
from icebergds.spec.json.snapshot import (
    ref_from_json,
    ref_to_json,
    snapshot_from_json,
    snapshot_to_json,
)
from icebergds.spec.json.sort import sort_order_from_json, sort_order_to_json
from icebergds.spec.json.statistics import (
    partition_statistics_file_from_json,
    partition_statistics_file_to_json,
    statistics_file_from_json,
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


def update_from_json(obj: Any) -> TableUpdate:
    """Parses a table update from its JSON object.

    Raises InvalidMetadataError if it is malformed, UnsupportedFeatureError for an unknown action.
    """
    members = typed(obj, dict, "a table update")
    action = required(members, "action", str, "a table update")
    parse = _UPDATES.get(action)
    if parse is None:
        raise UnsupportedFeatureError(
            f"table update {action!r} is unknown; expected one of {', '.join(_UPDATES)}"
        )
    return parse(members, f"update {action!r}")


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


def requirement_from_json(obj: Any) -> TableRequirement:
    """Parses a table requirement from its JSON object.

    Raises InvalidMetadataError if it is malformed, UnsupportedFeatureError for an unknown type.
    """
    members = typed(obj, dict, "a table requirement")
    kind = required(members, "type", str, "a table requirement")
    parse = _REQUIREMENTS.get(kind)
    if parse is None:
        raise UnsupportedFeatureError(
            f"table requirement {kind!r} is unknown; expected one of {', '.join(_REQUIREMENTS)}"
        )
    return parse(members, f"requirement {kind!r}")


_Members = Mapping[str, Any]


def _spec_to_json(spec: PartitionSpec) -> dict[str, Any]:
    obj = partition_spec_to_json(spec)
    for field in obj["fields"]:
        if field["field-id"] == NO_FIELD_ID:
            del field["field-id"]
    return obj


def _add_spec(obj: _Members, where: str) -> TableUpdate:
    spec = required(obj, "spec", dict, where)
    # Unlike in table metadata, both ids may be left for the catalog to assign.
    fields = [
        {"field-id": NO_FIELD_ID, **typed(field, dict, f"a field of {where}")}
        for field in required(spec, "fields", list, where)
    ]
    return AddPartitionSpec(partition_spec_from_json({"spec-id": 0, **spec, "fields": fields}))


def _set_snapshot_ref(obj: _Members, where: str) -> TableUpdate:
    name = required(obj, "ref-name", str, where)
    ref = {key: value for key, value in obj.items() if key not in ("action", "ref-name")}
    return SetSnapshotRef(name, ref_from_json(ref, name))


def _set_properties(obj: _Members, where: str) -> TableUpdate:
    required(obj, "updates", dict, where)
    return SetProperties(string_map(obj, "updates", where))


def _assert_ref_snapshot_id(obj: _Members, where: str) -> TableRequirement:
    if "snapshot-id" not in obj:
        raise InvalidMetadataError(f"{where} lacks 'snapshot-id', expected an integer or null")
    ref = required(obj, "ref", str, where)
    return AssertRefSnapshotId(ref, optional(obj, "snapshot-id", int, where))


def _required_integers(obj: _Members, name: str, where: str) -> tuple[int, ...]:
    required(obj, name, list, where)
    return integers(obj, name, where)


def _required_strings(obj: _Members, name: str, where: str) -> tuple[str, ...]:
    required(obj, name, list, where)
    return strings(obj, name, where)


_UPDATES: dict[str, Callable[[_Members, str], TableUpdate]] = {
    "assign-uuid": lambda obj, where: AssignUuid(required(obj, "uuid", str, where)),
    "upgrade-format-version": lambda obj, where: UpgradeFormatVersion(
        required(obj, "format-version", int, where)
    ),
    "add-schema": lambda obj, where: AddSchema(
        schema_from_json(required(obj, "schema", dict, where))
    ),
    "set-current-schema": lambda obj, where: SetCurrentSchema(
        required(obj, "schema-id", int, where)
    ),
    "add-spec": _add_spec,
    "set-default-spec": lambda obj, where: SetDefaultSpec(required(obj, "spec-id", int, where)),
    "add-sort-order": lambda obj, where: AddSortOrder(
        sort_order_from_json(required(obj, "sort-order", dict, where))
    ),
    "set-default-sort-order": lambda obj, where: SetDefaultSortOrder(
        required(obj, "sort-order-id", int, where)
    ),
    "add-snapshot": lambda obj, where: AddSnapshot(
        snapshot_from_json(required(obj, "snapshot", dict, where))
    ),
    "set-snapshot-ref": _set_snapshot_ref,
    "remove-snapshots": lambda obj, where: RemoveSnapshots(
        _required_integers(obj, "snapshot-ids", where)
    ),
    "remove-snapshot-ref": lambda obj, where: RemoveSnapshotRef(
        required(obj, "ref-name", str, where)
    ),
    "set-location": lambda obj, where: SetLocation(required(obj, "location", str, where)),
    "set-properties": _set_properties,
    "remove-properties": lambda obj, where: RemoveProperties(
        _required_strings(obj, "removals", where)
    ),
    "set-statistics": lambda obj, where: SetStatistics(
        statistics_file_from_json(required(obj, "statistics", dict, where))
    ),
    "remove-statistics": lambda obj, where: RemoveStatistics(
        required(obj, "snapshot-id", int, where)
    ),
    "set-partition-statistics": lambda obj, where: SetPartitionStatistics(
        partition_statistics_file_from_json(required(obj, "partition-statistics", dict, where))
    ),
    "remove-partition-statistics": lambda obj, where: RemovePartitionStatistics(
        required(obj, "snapshot-id", int, where)
    ),
    "remove-partition-specs": lambda obj, where: RemovePartitionSpecs(
        _required_integers(obj, "spec-ids", where)
    ),
    "remove-schemas": lambda obj, where: RemoveSchemas(
        _required_integers(obj, "schema-ids", where)
    ),
    "add-encryption-key": lambda obj, where: AddEncryptionKey(
        encrypted_key_from_json(required(obj, "encryption-key", dict, where))
    ),
    "remove-encryption-key": lambda obj, where: RemoveEncryptionKey(
        required(obj, "key-id", str, where)
    ),
}

_REQUIREMENTS: dict[str, Callable[[_Members, str], TableRequirement]] = {
    "assert-create": lambda obj, where: AssertCreate(),
    "assert-table-uuid": lambda obj, where: AssertTableUuid(required(obj, "uuid", str, where)),
    "assert-ref-snapshot-id": _assert_ref_snapshot_id,
    "assert-last-assigned-field-id": lambda obj, where: AssertLastAssignedFieldId(
        required(obj, "last-assigned-field-id", int, where)
    ),
    "assert-current-schema-id": lambda obj, where: AssertCurrentSchemaId(
        required(obj, "current-schema-id", int, where)
    ),
    "assert-last-assigned-partition-id": lambda obj, where: AssertLastAssignedPartitionId(
        required(obj, "last-assigned-partition-id", int, where)
    ),
    "assert-default-spec-id": lambda obj, where: AssertDefaultSpecId(
        required(obj, "default-spec-id", int, where)
    ),
    "assert-default-sort-order-id": lambda obj, where: AssertDefaultSortOrderId(
        required(obj, "default-sort-order-id", int, where)
    ),
}
