"""Commits changes of a table's properties, location and format version."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import Change, TableState
from icebergds.commit.retry import commit_change
from icebergds.errors import InvalidOptionError
from icebergds.operations.evolution.commit import commit_update
from icebergds.operations.options.arguments import integer_argument
from icebergds.operations.write.create import check_properties
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import FORMAT_VERSION, is_known, nearest_known
from icebergds.spec.updates.apply_updates import apply_updates
from icebergds.spec.updates.table_updates import (
    RemoveProperties,
    SetLocation,
    SetProperties,
    TableUpdate,
    UpgradeFormatVersion,
)
from icebergds.spec.values.dates import now_ms
from icebergds.suggestions import did_you_mean

_LOG = logging.getLogger(__name__)


def set_properties(table: LoadedTable, properties: Mapping[str, str]) -> TableState:
    """Sets properties of a table in one commit; warns of names that are nearly known ones.

    Raises:
        InvalidOptionError: a name is reserved, a value is wrong, or properties contradict each
            other or the table; nothing was committed.
        CommitConflictError: all retries lost against other commits.
        CommitStateUnknownError: whether they were set is not known.
    """
    stored = {name: value for name, value in properties.items() if name != FORMAT_VERSION}

    def is_set(metadata: TableMetadata) -> bool:
        wanted = properties.get(FORMAT_VERSION, str(metadata.format_version))
        return wanted.strip() == str(metadata.format_version) and all(
            metadata.properties.get(name) == value for name, value in stored.items()
        )

    def produce(state: TableState) -> Change:
        return _checked(state.metadata, SetProperties(dict(properties)), is_set(state.metadata))

    committed = commit_update(table, produce, lambda state: is_set(state.metadata))
    _warn_of_names(table.name, [name for name in stored if name not in table.metadata.properties])
    return committed


def remove_properties(table: LoadedTable, names: Sequence[str]) -> TableState:
    """Removes properties of a table in one commit; ones that it does not have are ignored.

    Raises:
        InvalidOptionError: what is left contradicts itself.
        CommitConflictError: all retries lost against other commits.
        CommitStateUnknownError: whether they were removed is not known.
    """
    for name in names:
        near = did_you_mean(name, table.metadata.properties)
        if name not in table.metadata.properties and near:
            _LOG.warning("table %s: there is no property %r to remove; %s", table.name, name, near)

    def is_removed(state: TableState) -> bool:
        return not any(name in state.metadata.properties for name in names)

    def produce(state: TableState) -> Change:
        return _checked(state.metadata, RemoveProperties(tuple(names)), is_removed(state))

    return commit_update(table, produce, is_removed)


def update_location(table: LoadedTable, location: str) -> TableState:
    """Sets where new files of a table go; existing files stay where they are.

    Raises:
        InvalidOptionError, InvalidMetadataError: the location is empty.
        CommitConflictError: all retries lost against other commits.
        CommitStateUnknownError: whether it was set is not known.
    """
    wanted = location.rstrip("/") or location

    def is_set(state: TableState) -> bool:
        return state.metadata.location == wanted

    def produce(state: TableState) -> Change:
        return Change([], [] if is_set(state) else [SetLocation(wanted)])

    return commit_update(table, produce, is_set)


def _checked(metadata: TableMetadata, update: TableUpdate, is_done: bool) -> Change:
    if is_done:
        return Change([], [])
    changed = apply_updates(metadata, [update], now_ms=now_ms())
    try:
        check_properties(changed)
    except InvalidOptionError:
        # What was wrong before does not prevent other properties from being corrected.
        if not _is_wrong(metadata):
            raise
    return Change([], [update])


def _is_wrong(metadata: TableMetadata) -> bool:
    try:
        check_properties(metadata)
    except InvalidOptionError:
        return True
    return False


def _warn_of_names(table: str, given: Sequence[str]) -> None:
    for name in given:
        near = "" if is_known(name) else nearest_known(name)
        if near:
            _LOG.warning("table %s: icebergds does not read property %r; %s", table, name, near)


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
