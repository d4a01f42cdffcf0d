"""Models view metadata (view spec: View Metadata)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from icebergds.display import block, html_table, time_text
from icebergds.spec.read_only import ReadOnlyDict, set_read_only
from icebergds.spec.schema import Schema

VIEW_FORMAT_VERSION = 1
"""The only format version of views."""


@dataclass(frozen=True, slots=True)
class SQLViewRepresentation:
    """The definition of a view as the text of a query in one dialect."""

    sql: str
    dialect: str
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class UnknownViewRepresentation:
    """A definition of a type that the specification does not define, as its JSON object."""

    members: Mapping[str, Any]

    def __post_init__(self) -> None:
        set_read_only(self, "members")


ViewRepresentation: TypeAlias = SQLViewRepresentation | UnknownViewRepresentation
"""One of several equivalent definitions of a version of a view."""


@dataclass(frozen=True, slots=True)
class ViewVersion:
    """The definition of a view at some time; `timestamp_ms` is in milliseconds since the epoch.

    Attributes:
        default_catalog: of names in the definition that have no catalog; None for the catalog that
            the view is in.
        default_namespace: of names in the definition that are a single identifier.
    """

    version_id: int
    schema_id: int
    timestamp_ms: int
    summary: Mapping[str, str]
    representations: tuple[ViewRepresentation, ...]
    default_namespace: tuple[str, ...]
    default_catalog: str | None = None
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def __post_init__(self) -> None:
        set_read_only(self, "summary")

    def _repr_html_(self) -> str:
        rows = [
            ("created", time_text(self.timestamp_ms)),
            ("schema", str(self.schema_id)),
            *((f"SQL of {sql.dialect}", sql.sql) for sql in self.sqls),
            *self.summary.items(),
        ]
        return html_table(f"Version {self.version_id} of a view", (), rows)

    def sql_for(self, dialect: str) -> str | None:
        """The query in a dialect, whose name may be in any case; None if there is none."""
        return next((one.sql for one in self.sqls if one.dialect.lower() == dialect.lower()), None)

    @property
    def sqls(self) -> tuple[SQLViewRepresentation, ...]:
        """The representations that are queries."""
        return tuple(r for r in self.representations if isinstance(r, SQLViewRepresentation))


@dataclass(frozen=True, slots=True)
class ViewHistoryEntry:
    """When a version became the current one, in milliseconds since the epoch."""

    timestamp_ms: int
    version_id: int
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def __repr__(self) -> str:
        return (
            f"ViewHistoryEntry({time_text(self.timestamp_ms)}, timestamp_ms={self.timestamp_ms}, "
            f"version_id={self.version_id})"
        )


@dataclass(frozen=True)
class ViewMetadata:
    """One state of a view.

    `unknown` keeps JSON members that the specification does not define, so that they are written
    back.
    """

    view_uuid: str
    location: str
    schemas: tuple[Schema, ...]
    current_version_id: int
    versions: tuple[ViewVersion, ...]
    version_log: tuple[ViewHistoryEntry, ...]
    properties: Mapping[str, str] = field(default_factory=ReadOnlyDict)
    format_version: int = VIEW_FORMAT_VERSION
    unknown: Mapping[str, Any] = field(default_factory=ReadOnlyDict, compare=False, repr=False)

    def __post_init__(self) -> None:
        set_read_only(self, "properties")

    def __repr__(self) -> str:
        return block("ViewMetadata", [": ".join(row) for row in self._rows()], "member")

    def _repr_html_(self) -> str:
        return html_table("View metadata", (), self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("view_uuid", self.view_uuid),
            ("location", self.location),
            ("versions", f"{len(self.versions):,}, current {self.current_version_id}"),
            ("schemas", f"{len(self.schemas):,}, current {self.current_version().schema_id}"),
        ]

    def current_version(self) -> ViewVersion:
        """The version that readers use."""
        return self.versions_by_id[self.current_version_id]

    def schema(self) -> Schema:
        """The columns of the current version."""
        return self.schemas_by_id[self.current_version().schema_id]

    @cached_property
    def versions_by_id(self) -> Mapping[int, ViewVersion]:
        return ReadOnlyDict({version.version_id: version for version in self.versions})

    @cached_property
    def schemas_by_id(self) -> Mapping[int, Schema]:
        return ReadOnlyDict({schema.schema_id: schema for schema in self.schemas})
