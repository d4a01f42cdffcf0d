"""Adapts the schema of manifests in which Java Iceberg stored partition values of type fixed.

Java declares them as Avro's fixed, but writes and expects a length before the bytes, as Avro's
bytes have. So such a manifest is read as if it declared bytes.
"""

from __future__ import annotations

import json
from typing import Any


def with_fixed_as_bytes(schema_json: str) -> str | None:
    """A manifest's schema with bytes instead of fixed; None if it has no fixed values.

    Decimals and UUIDs are stored as declared.
    """
    names: set[str] = set()
    changed = _changed(json.loads(schema_json), names)
    return json.dumps(changed) if names else None


def _changed(kind: Any, names: set[str]) -> Any:
    """The type with bytes instead of fixed; `names` are the fixed types it may refer to."""
    match kind:
        case {"type": "fixed", "name": name} if "logicalType" not in kind:
            names.add(name)
            return "bytes"
        case str():
            return "bytes" if kind in names else kind
        case list():
            return [_changed(branch, names) for branch in kind]
        case {"fields": fields}:
            changed = [{**field, "type": _changed(field["type"], names)} for field in fields]
            return {**kind, "fields": changed}
        case {"items": items}:
            return {**kind, "items": _changed(items, names)}
    return kind
