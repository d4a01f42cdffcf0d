"""Models sort orders: how rows are sorted within data files (spec: Sorting)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from icebergds.display import WIDTH, html_table, joined
from icebergds.spec.read_only import ReadOnlyDict
from icebergds.spec.transforms import Transform


class SortDirection(StrEnum):
    """Ascending or descending."""

    ASC = "asc"
    DESC = "desc"


class NullOrder(StrEnum):
    """Where nulls are placed, in either direction."""

    NULLS_FIRST = "nulls-first"
    NULLS_LAST = "nulls-last"


@dataclass(frozen=True, slots=True)
class SortField:
    """A sort key: a transform of one source column, or of several since version 3.

    `unknown` keeps JSON members that the spec does not define, here and in the order's own object.
    """

    source_ids: tuple[int, ...]
    transform: Transform
    direction: SortDirection
    null_order: NullOrder
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    @property
    def source_id(self) -> int:
        """The first source column; supported transforms have only one."""
        return self.source_ids[0]


@dataclass(frozen=True, slots=True)
class SortOrder:
    """Sort keys, the most significant first; order id 0 is unsorted."""

    order_id: int = 0
    fields: tuple[SortField, ...] = ()
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def __repr__(self) -> str:
        shown = [" ".join(cells) for cells in self._rows()]
        fields = joined(shown, "field", WIDTH - 30) if shown else "unsorted"
        return f"SortOrder(order_id={self.order_id}, {fields})"

    def _repr_html_(self) -> str:
        kind = "" if self.fields else ": unsorted"
        header = ("transform(source column id)", "direction", "nulls")
        return html_table(f"Sort order {self.order_id}{kind}", header, self._rows(), "field")

    def _rows(self) -> list[tuple[str, str, str]]:
        return [
            (
                f"{key.transform}({', '.join(map(str, key.source_ids))})",
                key.direction.value,
                key.null_order.value,
            )
            for key in self.fields
        ]

    @property
    def is_sorted(self) -> bool:
        return bool(self.fields)
