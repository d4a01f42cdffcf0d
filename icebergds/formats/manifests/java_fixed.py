"""Partition values of type fixed as Java Iceberg stores them.

Its manifests declare them as Avro's fixed, but hold, and are only read with, the length before the
bytes, as of Avro's bytes. So that is what such a manifest is to be read as.
"""

from __future__ import annotations

import json
from typing import Any


def with_lengths(schema_json: str) -> str | None:
    """A manifest's schema with bytes in place of fixed; None if it has no fixed values.

    Those of decimals and UUIDs are as they are declared.
    """
    names: set[str] = set()
    changed = _changed(json.loads(schema_json), names)
    return json.dumps(changed) if names else None


def _changed(kind: Any, names: set[str]) -> Any:
    """A type; `names` are those of the fixed types met before, to which it may refer."""
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
