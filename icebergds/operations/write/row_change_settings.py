"""Reads the table properties of statements that change rows.

The statements are named as in the properties: `delete`, `update` and `merge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from icebergds.commit.options import IsolationLevel
from icebergds.spec.table_properties import choice_property

STATEMENTS = ("delete", "update", "merge")


class RowChangeMode(StrEnum):
    """How rows change: a value of `write.delete.mode`, `write.update.mode`, `write.merge.mode`."""

    COPY_ON_WRITE = "copy-on-write"
    MERGE_ON_READ = "merge-on-read"


def row_change_mode(properties: Mapping[str, str], statement: str) -> RowChangeMode:
    """How a statement changes rows; copy-on-write by default.

    Raises:
        InvalidOptionError: the table property is neither of the two modes.
    """
    name = f"write.{statement}.mode"
    default = RowChangeMode.COPY_ON_WRITE
    return RowChangeMode(choice_property(properties, name, default, RowChangeMode))


def isolation_level(properties: Mapping[str, str], statement: str) -> IsolationLevel:
    """The isolation level of a statement; serializable by default.

    Raises:
        InvalidOptionError: the table property is not an isolation level.
    """
    name = f"write.{statement}.isolation-level"
    default = IsolationLevel.SERIALIZABLE
    return IsolationLevel(choice_property(properties, name, default, IsolationLevel))
