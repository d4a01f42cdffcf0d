"""Entry points of `Table` that change its schema, layout, properties, references and history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from icebergds.api.manage_snapshots import ManageSnapshots
from icebergds.api.table_base import TableBase
from icebergds.api.update_layout import UpdateSortOrder, UpdateSpec
from icebergds.api.update_schema import UpdateSchema
from icebergds.errors import InvalidOptionError
from icebergds.operations.evolution import properties as property_updates
from icebergds.operations.evolution.properties import upgrade_table
from icebergds.operations.options.arguments import mapping_argument, text_argument
from icebergds.operations.outcomes import nothing_committed


class TableEvolution(TableBase):
    """Changes of a table's schema, layout, properties, references and history."""

    __slots__ = ()

    def update_schema(
        self, allow_incompatible_changes: bool = False, case_sensitive: bool = True
    ) -> UpdateSchema:
        """Changes columns, in one commit at the end of a `with` block: see `UpdateSchema`.

        Args:
            allow_incompatible_changes: let columns become required, and be added as required
                without a default, and let names differ only by case; only for tables whose rows
                have the values.
            case_sensitive: whether names of columns must have the exact case.
        """
        return UpdateSchema.of(self, allow_incompatible_changes, case_sensitive)

    def update_spec(self) -> UpdateSpec:
        """Changes how new files are partitioned, in one commit: see `UpdateSpec`."""
        return UpdateSpec.of(self)

    def update_sort_order(self) -> UpdateSortOrder:
        """Replaces the sort order of new files, in one commit: see `UpdateSortOrder`."""
        return UpdateSortOrder(self)

    replace_sort_order = update_sort_order

    def manage_snapshots(self) -> ManageSnapshots:
        """Changes branches, tags and the current snapshot, in one commit: see `ManageSnapshots`."""
        return ManageSnapshots.of(self)

    def set_properties(self, properties: Mapping[str, str] | None = None, **more: Any) -> Self:
        """Sets properties of the table in one commit, and returns this table.

        Args:
            properties: values by name, such as `{"write.format.default": "orc"}`; numbers and
                booleans become text.
            more: properties whose names are identifiers.

        Raises:
            InvalidOptionError: a name is reserved, a value is wrong, or properties contradict each
                other; nothing was committed.
            CommitConflictError: concurrent commits won every retry.
            CommitStateUnknownError: it is not known whether the commit succeeded.
        """
        given = mapping_argument("properties", properties) | mapping_argument("properties", more)
        with nothing_committed(self.name):
            self._state = property_updates.set_properties(self._current(), given)
        return self

    def remove_properties(self, *names: str) -> Self:
        """Removes properties of the table in one commit, and returns this table.

        Names of missing properties are ignored. Errors are those of `set_properties`.
        """
        given = [text_argument("names", name) or "" for name in names]
        with nothing_committed(self.name):
            self._state = property_updates.remove_properties(self._current(), given)
        return self

    def update_location(self, location: str) -> Self:
        """Sets where new files of the table go, and returns this table; no file is moved.

        Errors are those of `set_properties`.
        """
        wanted = text_argument("location", location)
        if not wanted:
            raise InvalidOptionError(
                f"location = {location!r}: expected a location such as s3://a/b"
            )
        with nothing_committed(self.name):
            self._state = property_updates.update_location(self._current(), wanted)
        return self

    def upgrade(self, format_version: int) -> Self:
        """Upgrades the table's format version, and returns this table; this cannot be undone.

        Version 2 adds delete files; version 3 adds deletion vectors and row lineage.

        Raises:
            InvalidOptionError: the version does not exist, or is below the table's version.
        """
        with nothing_committed(self.name):
            self._state = upgrade_table(self._current(), format_version)
        return self
