"""Reads catalog properties from the Spark session, the environment and PyIceberg's configuration.

The properties of a catalog `lake` come from variables such as `PYICEBERG_CATALOG__LAKE__URI` and
from

    catalog:
      lake:
        uri: postgresql://db.example.org/lake

in the first `.pyiceberg.yaml` in the directories that PyIceberg searches.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from icebergds.errors import InvalidOptionError

__all__ = [
    "SessionCatalogs",
    "catalog_properties",
    "catalogs_of_active_session",
    "configured_catalogs",
    "default_catalog_name",
    "is_configured",
    "mention_catalogs",
    "set_session_catalogs",
]


def catalog_properties(name: str, given: Mapping[str, str]) -> dict[str, str]:
    """The properties of a catalog from all sources.

    Args:
        name: the catalog's name, in any case.
        given: properties that override those of the session, which override the environment, which
            overrides the file; empty values do not override.

    Raises:
        InvalidOptionError: the configuration file cannot be read or is malformed, unless PyYAML is
            not installed and the file is not needed; or sessions define the catalog differently
            and none of these is active.
    """
    others = _from_environment(name) | _session_catalogs.properties(name, given)
    is_complete = any(given.get(key) or others.get(key) for key in _SUFFICIENT)
    found = _from_file(name, is_needed=not is_complete) | others
    for key, value in given.items():
        found[key] = value or found.get(key, value)
    return found


@dataclass(frozen=True, slots=True)
class SessionCatalogs:
    """The catalogs from the configurations of this process's Spark sessions.

    Attributes:
        by_session: properties by the session's id and the catalog's name.
        active: returns the id of the active session; None if there is none, or it has no id.
    """

    by_session: Mapping[str, Mapping[str, Mapping[str, str]]] = field(
        default_factory=dict, repr=False
    )
    active: Callable[[], str | None] = lambda: None

    def properties(self, name: str, given: Mapping[str, str]) -> dict[str, str]:
        """The properties of a catalog; empty if no session defines it.

        If sessions define it differently, the definition that `given` contains counts, or else the
        active session's. Definitions are never mixed.

        Raises:
            InvalidOptionError: the active session has no definition, and `given` is not complete.
        """
        found = {key: dict(every[name]) for key, every in self.by_session.items() if name in every}
        chosen = next(iter(found.values()), {})
        if all(one == chosen for one in found.values()):
            return chosen
        named = {key: value for key, value in given.items() if value}
        if all(one.keys() <= named.keys() for one in found.values()):
            return {}
        for one in found.values():
            if one.items() <= named.items():
                return one
        active = self.active()
        if active is None or active not in found:
            raise InvalidOptionError(
                f"catalog {name}: {len(found)} Spark sessions define it, and not all alike, but "
                "the active session does not; pass the properties of the catalog that you mean, "
                "or make its session the active one"
            )
        return found[active]

    def of_active(self) -> frozenset[str]:
        """The names of the active session's catalogs."""
        return frozenset(self.by_session.get(self.active() or "", ()))


def catalogs_of_active_session() -> frozenset[str]:
    """The names of the catalogs that the active Spark session configures, with their case."""
    return _session_catalogs.of_active()


def set_session_catalogs(catalogs: SessionCatalogs) -> None:
    """Sets the catalogs of this process's Spark sessions, replacing all earlier ones."""
    global _session_catalogs
    _session_catalogs = catalogs


def mention_catalogs(names: Iterable[str]) -> None:
    """Adds catalogs that are known to the process with the session to this process's errors."""
    global _mentioned
    _mentioned = frozenset(names)


def configured_catalogs() -> list[str]:
    """The names of the catalogs that a session, the environment or the file configures, sorted.

    Includes the catalogs that this process only mentions in errors.

    Raises:
        InvalidOptionError: the configuration file cannot be read or is malformed.
    """
    of_environment = {path[1] for path, _ in _variables() if len(path) == 3 and path[0] == _CATALOG}
    of_sessions = {name for every in _session_catalogs.by_session.values() for name in every}
    return sorted(of_environment | of_sessions | _mentioned | _catalogs_of_file()[1].keys())


def is_configured(name: str) -> bool:
    """Whether a catalog of this name is configured. Raises as `configured_catalogs` does."""
    if any(name in every for every in _session_catalogs.by_session.values()):
        return True
    # Names from the environment and the file are in lower case, and matched ignoring case.
    return bool(_from_environment(name)) or name.lower() in _catalogs_of_file()[1]


def default_catalog_name() -> str:
    """The `default-catalog` of the environment or the configuration file, or else `default`.

    Raises:
        InvalidOptionError: the configuration file cannot be read or is malformed.
    """
    for path, value in _variables():
        if path == [_DEFAULT] and value:
            return value
    file, configured = _configuration()
    return _text(file, _DEFAULT, configured.get(_DEFAULT, "")) or "default"


_session_catalogs = SessionCatalogs()
_mentioned: frozenset[str] = frozenset()
_FILE = ".pyiceberg.yaml"
_PREFIX = "pyiceberg_"
_CATALOG = "catalog"
_DEFAULT = "default-catalog"
# Any one of these configures a catalog.
_SUFFICIENT = ("type", "uri", "warehouse")
_NEEDS_YAML = "it needs PyYAML: pip install 'icebergds[yaml]', or remove the file"
_LOG = logging.getLogger(__name__)


@lru_cache(maxsize=16)
def _warn_once(message: str) -> None:
    _LOG.warning(message)


def _from_environment(name: str) -> dict[str, str]:
    found = {}
    for path, value in _variables():
        if len(path) == 3 and path[:2] == [_CATALOG, name.lower()]:
            found[path[2]] = value
    return found


def _variables() -> Iterator[tuple[list[str], str]]:
    """The environment variables, as paths into the configuration file and values."""
    for variable, value in os.environ.items():
        if variable.lower().startswith(_PREFIX):
            parts = variable.lower().removeprefix(_PREFIX).split("__", maxsplit=2)
            yield [part.replace("__", ".").replace("_", "-") for part in parts], value


def _from_file(name: str, *, is_needed: bool) -> dict[str, str]:
    if not is_needed and not _has_yaml():
        for file in _files():
            _warn_once(f"the configuration file {file} is not read: {_NEEDS_YAML}")
        return {}
    file, catalogs = _catalogs_of_file()
    key = f"{_CATALOG}.{name.lower()}"
    properties = _mapping(file, key, catalogs.get(name.lower()) or {})
    flat: dict[str, Any] = {}
    try:
        for k, value in properties.items():
            flat |= dict(_flattened(k, value)) if k in _NESTED else {k: value}
    except RecursionError:
        # A YAML alias can refer to a node that contains it.
        raise _too_deep(file) from None
    return {k: _text(file, f"{key}.{k}", value) for k, value in flat.items()}


# PyIceberg reads these properties as mappings.
_NESTED = ("auth", "ssl")


def _flattened(key: str, value: object) -> Iterator[tuple[str, object]]:
    """The properties in a mapping, with nested keys joined by dots and lists by commas."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flattened(f"{key}.{name}", inner)
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        yield key, ",".join(value)
    else:
        yield key, value


def _catalogs_of_file() -> tuple[Path, dict[str, Any]]:
    file, configured = _configuration()
    return file, _mapping(file, _CATALOG, configured.get(_CATALOG) or {})


def _configuration() -> tuple[Path, Mapping[str, Any]]:
    """The first configuration file that exists and is not empty, and its content."""
    for file in _files():
        if content := _parsed(file):
            return file, _mapping(file, "the file", content)
    return Path(_FILE), {}


def _files() -> list[Path]:
    """The files of this name in the directories that PyIceberg searches, in its order."""
    directories = [os.environ.get("PYICEBERG_HOME"), os.path.expanduser("~"), os.getcwd()]
    files = [Path(directory, _FILE) for directory in directories if directory]
    return [file for file in files if file.is_file()]


def _has_yaml() -> bool:
    try:
        import_module("yaml")
    except ImportError:
        return False
    return True


def _parsed(file: Path) -> Any:
    try:
        yaml = import_module("yaml")
    except ImportError as error:
        raise InvalidOptionError(
            f"the configuration file {file} cannot be read: {_NEEDS_YAML}"
        ) from error
    try:
        # BaseLoader keeps every scalar a string, as catalog properties are strings.
        return yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOptionError(
            f"the configuration file {file} cannot be read: {error}"
        ) from error
    except RecursionError:
        raise _too_deep(file) from None
    except yaml.YAMLError as error:
        # The message is neither shown nor chained: it quotes the line, which may contain a
        # password.
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        raise InvalidOptionError(
            f"the configuration file {file} cannot be read{where}: it is not valid YAML; quote "
            "values with special characters"
        ) from None


def _too_deep(file: Path) -> InvalidOptionError:
    return InvalidOptionError(
        f"the configuration file {file} is malformed: its values are nested too deeply"
    )


def _mapping(file: Path, key: str, value: object) -> dict[str, Any]:
    """The mapping with its keys in lower case."""
    if not isinstance(value, dict):
        raise InvalidOptionError(
            f"the configuration file {file} is malformed: {key} is {_kind(value)}, expected "
            f"`{_CATALOG}:`, below it catalog names, and below these properties such as uri"
        )
    return {str(k).lower(): v for k, v in value.items()}


def _text(file: Path, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidOptionError(
            f"the configuration file {file} is malformed: {key} is {_kind(value)}, expected a "
            "string; write nested properties with dots, such as s3.endpoint"
        )
    return value


def _kind(value: object) -> str:
    """The kind of a value, for messages; the value itself may be a password."""
    if isinstance(value, str):
        return "a string"
    return "a mapping" if isinstance(value, dict) else "a list"
