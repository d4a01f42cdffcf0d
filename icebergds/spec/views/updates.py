"""Models the updates of view metadata (REST catalog: `ViewUpdate`) and applies them, as Java does.

Those that tables have too are theirs, as is `LAST_ADDED`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never
from uuid import uuid4

from icebergds.errors import InvalidMetadataError, InvalidOptionError, UnsupportedFeatureError
from icebergds.spec.schema import Schema
from icebergds.spec.table_properties import BOOLEAN, Property, at_least
from icebergds.spec.updates.table_updates import (
    LAST_ADDED,
    AddSchema,
    AssignUuid,
    RemoveProperties,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)
from icebergds.spec.views.metadata import (
    VIEW_FORMAT_VERSION,
    ViewHistoryEntry,
    ViewMetadata,
    ViewVersion,
)

_KEPT_VERSIONS = Property("version.history.num-entries", at_least(1), 10)
_MAY_DROP_DIALECTS = Property("replace.drop-dialect.allowed", BOOLEAN, False)


@dataclass(frozen=True, slots=True)
class AddViewVersion:
    """Adds a version with a new id, or reuses one with the same definition."""

    view_version: ViewVersion


@dataclass(frozen=True, slots=True)
class SetCurrentViewVersion:
    """Sets the current version; `LAST_ADDED` for the one added before."""

    view_version_id: int


ViewUpdate: TypeAlias = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion
)


def apply_view_updates(
    base: ViewMetadata | None, updates: Sequence[ViewUpdate], *, now_ms: int
) -> ViewMetadata:
    """Applies updates in order.

    Args:
        base: None for a new view.
        now_ms: milliseconds since the epoch.

    Returns:
        The new metadata, without versions beyond the number to keep; the same object if nothing
        changes.

    Raises:
        InvalidMetadataError: an update refers to a version or schema that does not exist, the UUID
            would change, or a new view has no location or no version.
        InvalidOptionError: a dialect is defined twice, or dropped though the property
            `replace.drop-dialect.allowed` does not allow that; or a property has a wrong value.
        UnsupportedFeatureError: a format version other than 1.
    """
    changing = _Changing(base, now_ms)
    for update in updates:
        changing.apply(update)
    changed = changing.result()
    return base if base is not None and changed == base else changed


class _Changing:
    """Metadata after some of the updates."""

    def __init__(self, base: ViewMetadata | None, now_ms: int) -> None:
        self._base, self._now_ms = base, now_ms
        self._uuid = None if base is None else base.view_uuid
        self._location = None if base is None else base.location
        self._properties = {} if base is None else dict(base.properties)
        self._schemas = [] if base is None else list(base.schemas)
        self._versions = {} if base is None else dict(base.versions_by_id)
        self._current = None if base is None else base.current_version_id
        self._added_schema: int | None = None
        self._last_version: int | None = None
        self._added_versions = set[int]()

    def apply(self, update: ViewUpdate) -> None:
        match update:
            case AssignUuid(uuid=uuid):
                if self._uuid is not None and self._uuid.lower() != uuid.lower():
                    raise InvalidMetadataError(
                        f"UUID {uuid} cannot be assigned: the view already has {self._uuid}, which "
                        "cannot change"
                    )
                self._uuid = self._uuid or uuid
            case UpgradeFormatVersion(format_version=version):
                if version != VIEW_FORMAT_VERSION:
                    raise UnsupportedFeatureError(
                        f"format version {version} of views is not supported, only "
                        f"{VIEW_FORMAT_VERSION}"
                    )
            case AddSchema(schema=schema):
                self._added_schema = self._add_schema(schema)
            case SetLocation(location=location):
                if not location:
                    raise InvalidMetadataError("the location of a view must not be empty")
                self._location = location
            case SetProperties(updates=properties):
                self._properties.update(properties)
            case RemoveProperties(removals=names):
                for name in names:
                    self._properties.pop(name, None)
            case AddViewVersion(view_version=view_version):
                self._last_version = self._add_version(view_version)
            case SetCurrentViewVersion(view_version_id=version_id):
                self._current = self._known_version(version_id)
            case _:
                assert_never(update)

    def result(self) -> ViewMetadata:
        if self._location is None or self._current is None:
            lacking = "location" if self._location is None else "current version"
            raise InvalidMetadataError(f"a view cannot be created without a {lacking}")
        base = self._base
        if base is not None:
            self._check_dialects(base.current_version(), self._versions[self._current])
        kept = self._kept_versions()
        return ViewMetadata(
            view_uuid=self._uuid or str(uuid4()),
            location=self._location,
            schemas=tuple(self._schemas),
            current_version_id=self._current,
            versions=kept,
            version_log=self._log({version.version_id for version in kept}),
            properties=self._properties,
            unknown={} if base is None else base.unknown,
        )

    def _add_schema(self, schema: Schema) -> int:
        for known in self._schemas:
            if known.has_same_columns(schema):
                return known.schema_id
        schema_id = max((known.schema_id for known in self._schemas), default=-1) + 1
        self._schemas.append(replace(schema, schema_id=schema_id))
        return schema_id

    def _add_version(self, version: ViewVersion) -> int:
        if version.schema_id == LAST_ADDED:
            if self._added_schema is None:
                raise InvalidMetadataError("the updates of the view add no schema to refer to")
            version = replace(version, schema_id=self._added_schema)
        if all(schema.schema_id != version.schema_id for schema in self._schemas):
            raise InvalidMetadataError(
                f"the new version of the view has schema {version.schema_id}, which the view has "
                "not"
            )
        _check_dialects_differ(version)
        for known in self._versions.values():
            if _is_same(known, version):
                return known.version_id
        version_id = max(version.version_id, max(self._versions, default=0) + 1)
        self._versions[version_id] = replace(version, version_id=version_id)
        self._added_versions.add(version_id)
        return version_id

    def _known_version(self, version_id: int) -> int:
        if version_id == LAST_ADDED:
            if self._last_version is None:
                raise InvalidMetadataError("the updates of the view add no version to refer to")
            return self._last_version
        if version_id not in self._versions:
            raise InvalidMetadataError(
                f"the view has no version {version_id}, only {sorted(self._versions)}"
            )
        return version_id

    def _check_dialects(self, before: ViewVersion, now: ViewVersion) -> None:
        if _MAY_DROP_DIALECTS.of(self._properties):
            return
        kept = {one.dialect.lower() for one in now.sqls}
        dropped = [one.dialect for one in before.sqls if one.dialect.lower() not in kept]
        if dropped:
            raise InvalidOptionError(
                f"the new version of the view has no query in the dialect {dropped[0]}, which the "
                "view has now; give one for each dialect, or allow it with the property "
                f"{_MAY_DROP_DIALECTS.name} = true"
            )

    def _kept_versions(self) -> tuple[ViewVersion, ...]:
        """The newest versions, and always the current one and new ones, as they were listed."""
        size = _KEPT_VERSIONS.of(self._properties)
        always = {self._current, *self._added_versions}
        others = sorted(self._versions.keys() - always, reverse=True)
        kept = always | set(others[: max(0, size - len(always))])
        return tuple(version for key, version in self._versions.items() if key in kept)

    def _log(self, kept: set[int]) -> tuple[ViewHistoryEntry, ...]:
        """The log with the change of the current version, from the last unknown version on."""
        base = self._base
        log = [] if base is None else list(base.version_log)
        if base is None or base.current_version_id != self._current:
            assert self._current is not None, "it was checked"
            is_new = self._current in self._added_versions
            at = self._versions[self._current].timestamp_ms if is_new else self._now_ms
            log.append(ViewHistoryEntry(at, self._current))
        unknown = [at for at, entry in enumerate(log) if entry.version_id not in kept]
        return tuple(log[unknown[-1] + 1 :] if unknown else log)


def _check_dialects_differ(version: ViewVersion) -> None:
    dialects = [one.dialect.lower() for one in version.sqls]
    twice = {dialect for dialect in dialects if dialects.count(dialect) > 1}
    if twice:
        raise InvalidOptionError(
            f"the new version of the view has more than one query in the dialect {min(twice)}; "
            "give one for each dialect"
        )


def _is_same(one: ViewVersion, other: ViewVersion) -> bool:
    """Whether two versions have the same definition, whatever their ids and times."""
    return replace(one, version_id=0, timestamp_ms=0) == replace(
        other, version_id=0, timestamp_ms=0
    )
