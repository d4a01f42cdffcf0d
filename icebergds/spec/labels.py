"""Describes what a catalog says of a table or view beside its metadata (`Labels`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from icebergds.spec.read_only import ReadOnlyDict


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels that a catalog's server gave a table or view when it was loaded.

    They are notes of the catalog, such as a classification of columns. They are not part of the
    metadata, and nothing that reads or writes heeds them.

    Attributes:
        object_labels: of the table or view itself.
        field_labels: of columns, by field id; the ids may be of columns that were dropped.
    """

    object_labels: Mapping[str, str] = field(default_factory=ReadOnlyDict)
    field_labels: Mapping[int, Mapping[str, str]] = field(default_factory=ReadOnlyDict)

    def __bool__(self) -> bool:
        return bool(self.object_labels or any(self.field_labels.values()))


NO_LABELS = Labels()
