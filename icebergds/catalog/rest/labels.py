"""Reads the labels in the server's answers (REST catalog: `labels` of a load)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icebergds.spec.json.fields import optional, required, string_map, typed
from icebergds.spec.labels import Labels

_MEMBER = "labels"


def has_labels(body: Mapping[str, Any]) -> bool:
    """Whether an answer has labels, even if there are none in them."""
    return body.get(_MEMBER) is not None


def labels_in(body: Mapping[str, Any], where: str) -> Labels:
    """The labels in an answer; empty ones if it has none.

    Args:
        where: names the answer in messages.

    Raises:
        InvalidMetadataError: they are malformed.
    """
    given = optional(body, _MEMBER, dict, where) or {}
    where = f"{_MEMBER!r} of {where}"
    fields: dict[int, dict[str, str]] = {}
    for member in optional(given, "fields", list, where) or ():
        each = typed(member, dict, f"a member of 'fields' in {where}")
        labels = fields.setdefault(required(each, "field-id", int, where), {})
        labels.update(string_map(each, _MEMBER, where))
    return Labels(string_map(given, "object-labels", where), fields)
