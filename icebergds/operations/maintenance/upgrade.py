"""Upgrades a table's format version."""

from __future__ import annotations

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import Change, TableState
from icebergds.commit.retry import commit_change
from icebergds.errors import InvalidOptionError
from icebergds.operations.options.arguments import integer_argument
from icebergds.spec.updates.table_updates import UpgradeFormatVersion

_NEWEST = 3


def upgrade_table(table: LoadedTable, format_version: int) -> TableState:
    """Upgrades a table's format version; does nothing if the table already has it.

    Raises:
        InvalidOptionError: the version does not exist, or is below the table's version.
    """
    wanted = integer_argument("format_version", format_version)
    if wanted is None or not 1 <= wanted <= _NEWEST:
        raise InvalidOptionError(f"format_version = {wanted}: expected 1, 2 or {_NEWEST}")

    def is_upgraded(state: TableState) -> bool:
        return state.metadata.format_version >= wanted

    def produce(state: TableState) -> Change:
        version = state.metadata.format_version
        if version > wanted:
            raise InvalidOptionError(
                f"table {state.name} has format version {version} and cannot be downgraded to "
                f"{wanted}"
            )
        return Change([], [UpgradeFormatVersion(wanted)])

    if table.metadata.format_version == wanted:
        return table.state
    return commit_change(table.operations, produce, is_upgraded, table.state)
