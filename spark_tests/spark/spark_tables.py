"""Tables that several test modules read."""

from __future__ import annotations

from pathlib import Path

from built.tables import TableBuilder

from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, STRING, TIMESTAMPTZ, NestedField

PEOPLE = Schema(
    (
        NestedField(1, "id", LONG, True),
        NestedField(2, "name", STRING),
        NestedField(3, "at", TIMESTAMPTZ),
    )
)
LIVE_PEOPLE = [1, 2, 4, 5, 6, 7, 8, 9]
ALL_PEOPLE = list(range(10))
DELETED_PEOPLE = [0, 3]


def people(location: Path) -> TableBuilder:
    """Ids 0 to 9 in two files of snapshot 1001; 0 and 3 deleted by 1002, by position and by name.

    `at` is as many seconds after 1970 as the id says; from id 6 on it is null and the name is z.
    """
    table = TableBuilder(location, PEOPLE)
    first = table.data_file([(i, "abcdef"[i], i * 1_000_000) for i in range(6)])
    table.commit(first, table.data_file([(i, "z", None) for i in range(6, 10)]))
    by_position = table.position_deletes({first.file_path: [0]})
    table.commit(by_position, table.equality_deletes(["name"], [("d",)]))
    return table
