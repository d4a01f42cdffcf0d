"""Reads and changes the views of a catalog (`View`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from icebergds.api.display import label_rows
from icebergds.api.table_definition import Columns, schema_argument
from icebergds.catalog.base import Identifier
from icebergds.catalog.views import ViewCatalog, ViewState
from icebergds.display import html_table
from icebergds.errors import CommitConflictError, InvalidOptionError, ValidationError
from icebergds.operations.options.arguments import mapping_argument
from icebergds.spec.labels import Labels
from icebergds.spec.schema import Schema
from icebergds.spec.updates.new_table import NO_PROPERTIES
from icebergds.spec.updates.table_updates import RemoveProperties, SetLocation, SetProperties
from icebergds.spec.values.dates import now_ms
from icebergds.spec.views.metadata import ViewHistoryEntry, ViewMetadata, ViewVersion
from icebergds.spec.views.new_version import new_version_updates
from icebergds.spec.views.updates import SetCurrentViewVersion, ViewUpdate

_LOG = logging.getLogger(__name__)
_ATTEMPTS = 5
SPARK = "spark"
"""The dialect of Spark's SQL."""


class View:
    """The state of a view when it was last loaded, refreshed or changed through this object."""

    def __init__(self, identifier: Identifier, state: ViewState, catalog: ViewCatalog) -> None:
        self._identifier = identifier
        self._state = state
        self._catalog = catalog

    @property
    def name(self) -> str:
        return self._state.name

    @property
    def metadata(self) -> ViewMetadata:
        return self._state.metadata

    @property
    def metadata_location(self) -> str:
        return self._state.metadata_location

    @property
    def uuid(self) -> str:
        return self.metadata.view_uuid

    @property
    def location(self) -> str:
        return self.metadata.location

    @property
    def properties(self) -> Mapping[str, str]:
        return self.metadata.properties

    @property
    def labels(self) -> Labels:
        """Labels that the catalog's server gave the view when it was loaded; mostly none."""
        return self._state.labels

    def __repr__(self) -> str:
        return f"View({self.name!r}, version {self.metadata.current_version_id})"

    def _repr_html_(self) -> str:
        columns = [f"{field.name} {field.field_type}" for field in self.schema().fields]
        rows = [
            ("version", str(self.metadata.current_version_id)),
            ("columns", "\n".join(columns)),
            *((f"SQL of {sql.dialect}", sql.sql) for sql in self.current_version().sqls),
            *label_rows(self.labels, self.schema()),
            ("location", self.location),
            ("metadata", self.metadata_location),
        ]
        return html_table(f"View {self.name}", (), rows)

    def schema(self) -> Schema:
        """The columns of the view."""
        return self.metadata.schema()

    def current_version(self) -> ViewVersion:
        """The definition of the view."""
        return self.metadata.current_version()

    def versions(self) -> Sequence[ViewVersion]:
        """The view's earlier and current definitions, as far as they are kept."""
        return self.metadata.versions

    def history(self) -> Sequence[ViewHistoryEntry]:
        """Which definition became the current one, and when."""
        return self.metadata.version_log

    def sql_for(self, dialect: str = SPARK) -> str:
        """The query of the view in a dialect.

        Raises:
            InvalidOptionError: the view has no query in this dialect.
        """
        sql = self.current_version().sql_for(dialect)
        if sql is None:
            known = [one.dialect for one in self.current_version().sqls]
            raise InvalidOptionError(
                f"view {self.name} has no query in the dialect {dialect!r}, only in "
                f"{', '.join(known) or 'none'}; add one with replace_version"
            )
        return sql

    def refresh(self) -> View:
        """Loads the current state of the view into this object. Raises NoSuchViewError."""
        self._state = self._catalog.load_view(self._identifier)
        return self

    def replace_version(
        self,
        sql: str | Mapping[str, str],
        schema: Columns | None = None,
        *,
        default_catalog: str | None = None,
        default_namespace: Sequence[str] | None = None,
        properties: Mapping[str, str] = NO_PROPERTIES,
        location: str | None = None,
    ) -> View:
        """Gives the view a new definition; earlier ones stay in its history.

        Args:
            sql: the query for Spark, or the same query by dialect.
            schema: its columns; None for those of the current definition.
            default_catalog: the catalog of names in the query without one; the view's own by
                default.
            default_namespace: the namespace of names in the query that are a single identifier;
                None for that of the current definition.
            properties: set in the same commit; others stay.
            location: the directory of its new metadata files; by default it stays.

        Raises:
            InvalidOptionError: there is no query, or one of a dialect that the view has is missing
                and its property `replace.drop-dialect.allowed` does not allow that.
            NoSuchViewError: the view does not exist any more.
            ValidationError: the view was dropped and re-created since it was loaded.
            CommitConflictError: other commits won every retry.
        """
        given = None if schema is None else schema_argument(schema)
        queries = queries_argument(sql)
        named = mapping_argument("properties", properties)

        def updates(metadata: ViewMetadata) -> Sequence[ViewUpdate]:
            before = metadata.current_version()
            version = new_version_updates(
                metadata.schema() if given is None else given,
                queries,
                default_catalog=default_catalog,
                default_namespace=before.default_namespace
                if default_namespace is None
                else default_namespace,
                summary=SUMMARY,
                now_ms=now_ms(),
            )
            return [
                *([SetLocation(_directory(location))] if location else []),
                *([SetProperties(named)] if named else []),
                *version,
            ]

        return self._commit(updates)

    def set_current_version(self, version_id: int) -> View:
        """Makes an earlier definition the current one.

        Raises:
            InvalidMetadataError: the view does not have this version.
        """
        return self._commit(lambda _: [SetCurrentViewVersion(version_id)])

    def set_properties(self, properties: Mapping[str, str] | None = None, **named: str) -> View:
        """Sets properties, such as `comment`."""
        given = {**mapping_argument("properties", properties or {}), **named}
        return self._commit(lambda _: [SetProperties(mapping_argument("properties", given))])

    def remove_properties(self, *names: str) -> View:
        """Removes properties; missing ones are ignored."""
        return self._commit(lambda _: [RemoveProperties(names)])

    def update_location(self, location: str) -> View:
        """Sets the directory of the view's new metadata files."""
        return self._commit(lambda _: [SetLocation(_directory(location))])

    def _commit(self, updates: Callable[[ViewMetadata], Sequence[ViewUpdate]]) -> View:
        state = self._current()
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                made = updates(state.metadata)
                self._state = self._catalog.commit_view(self._identifier, state, made)
                return self
            except CommitConflictError as conflict:
                _LOG.info("view %s: attempt %d failed: %s", self.name, attempt, conflict)
                if attempt == _ATTEMPTS:
                    raise
                state = self._current()
        raise AssertionError("the last attempt returns or raises")

    def _current(self) -> ViewState:
        """The view's current state. Raises ValidationError if the name belongs to another view."""
        state = self._catalog.load_view(self._identifier)
        if state.metadata.view_uuid != self.uuid:
            raise ValidationError(
                f"view {self.name} was dropped and re-created since it was loaded: its UUID is "
                f"{state.metadata.view_uuid}, expected {self.uuid}; load it again"
            )
        return state


def _directory(location: str) -> str:
    return location.rstrip("/") or location


SUMMARY = {"engine-name": "icebergds"}
"""The summary of a new definition, which names the engine."""


def queries_argument(sql: str | Mapping[str, str]) -> dict[str, str]:
    """The argument `sql`, as queries by dialect. Raises InvalidOptionError for other types."""
    if isinstance(sql, str):
        return {SPARK: sql}
    return dict(mapping_argument("sql", sql))
