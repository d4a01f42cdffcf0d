"""Reads which maintenance the tables of a fleet get, from a TOML file (`FleetPolicy`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from icebergds.cli.place import moment
from icebergds.errors import InvalidOptionError
from icebergds.operations.maintenance.policy import MaintenancePolicy, policy_of
from icebergds.suggestions import nearest_of

_TIMES = ("expire_older_than", "orphans_older_than")
_WINDOW = re.compile(r"(\d\d:\d\d)-(\d\d:\d\d)")


@dataclass(frozen=True, slots=True)
class Window:
    """A time of the day, local time; it may go beyond midnight."""

    begins: time
    ends: time

    def has(self, moment: time) -> bool:
        """Whether a time is in it."""
        if self.begins <= self.ends:
            return self.begins <= moment < self.ends
        return moment >= self.begins or moment < self.ends


@dataclass(frozen=True, slots=True)
class Rule:
    """What tables get whose names match a pattern.

    Attributes:
        match: a pattern of names such as `lake.sales.*`, with `*`, `?` and `[...]`.
        skip: leave the tables alone.
        changes: fields of `MaintenancePolicy`.
    """

    match: str
    skip: bool
    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FleetPolicy:
    """Which maintenance the tables of a fleet get.

    Attributes:
        rules: in the order of the file; of those that match a table, later ones win, key by key.
        max_bytes: how much may be read in all to be replaced; None for any amount.
        max_seconds: when no other table is begun; None for no end.
        windows: when tables may be begun; at any time if there are none.
    """

    rules: tuple[Rule, ...] = ()
    max_bytes: int | None = None
    max_seconds: float | None = None
    windows: tuple[Window, ...] = field(default=())

    def of_table(self, name: str) -> MaintenancePolicy | None:
        """The policy of a table; None if it is left alone."""
        changes: dict[str, Any] = {}
        skip = False
        for rule in self.rules:
            if fnmatchcase(name, rule.match):
                changes.update(rule.changes)
                skip = rule.skip
        return None if skip else policy_of(None, changes)

    def unmatched(self, names: Iterable[str]) -> list[Rule]:
        """The rules that match none of the names."""
        names = list(names)
        return [
            rule for rule in self.rules if not any(fnmatchcase(name, rule.match) for name in names)
        ]

    @property
    def needs_spark(self) -> bool:
        """Whether data files of some tables are sorted, which Spark does."""
        return any(rule.changes.get("strategy", "binpack") != "binpack" for rule in self.rules)

    def is_open(self, now: datetime) -> bool:
        """Whether a table may be begun at this local time."""
        return not self.windows or any(window.has(now.time()) for window in self.windows)


def read_policy(file: Path) -> FleetPolicy:
    """Reads and checks a policy.

    Raises:
        InvalidOptionError: the file cannot be read, or a key or value of it is wrong.
    """
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidOptionError(f"policy {file}: {error.strerror or error}") from None
    except ValueError as error:
        raise InvalidOptionError(f"policy {file}: {error}") from None
    except RecursionError:
        raise InvalidOptionError(f"policy {file}: its values are nested too deeply") from None
    _check_keys(file, "", given, ("defaults", "budget", "tables"))
    budget = _table(file, "budget", given.get("budget", {}))
    _check_keys(file, "budget", budget, ("max_bytes", "max_seconds", "windows"))
    tables = given.get("tables", [])
    if not isinstance(tables, list):
        raise InvalidOptionError(f"policy {file}: tables: expected [[tables]], one for each rule")
    # It has the checks of numbers.
    limits = _checked(file, "budget", {k: v for k, v in budget.items() if k != "windows"})
    return FleetPolicy(
        rules=(
            _rule(file, "defaults", given.get("defaults", {}), match="*"),
            *(_rule(file, f"tables {at}", each) for at, each in enumerate(tables, start=1)),
        ),
        max_bytes=limits.max_bytes,
        max_seconds=limits.max_seconds,
        windows=tuple(_window(file, text) for text in _texts(file, budget.get("windows", []))),
    )


def _rule(file: Path, where: str, given: Any, match: str | None = None) -> Rule:
    table = _table(file, where, given)
    known = [each.name for each in fields(MaintenancePolicy)]
    own = ("skip",) if match is not None else ("match", "skip")
    _check_keys(file, where, table, (*own, *known))
    match, skip = match or table.get("match"), table.get("skip", False)
    if not isinstance(match, str):
        raise InvalidOptionError(f'policy {file}: {where}: it needs match, such as "lake.db.*"')
    if not isinstance(skip, bool):
        raise InvalidOptionError(f"policy {file}: {where}: skip = {skip!r}: expected true or false")
    changes = {
        key: moment(value) if key in _TIMES and isinstance(value, str) else value
        for key, value in table.items()
        if key in known
    }
    _checked(file, where, changes)
    return Rule(match, skip, changes)


def _checked(file: Path, where: str, changes: Mapping[str, Any]) -> MaintenancePolicy:
    try:
        return policy_of(None, changes)
    except InvalidOptionError as error:
        raise InvalidOptionError(f"policy {file}: {where}: {error}") from None


def _check_keys(file: Path, where: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    for key in given:
        if key not in known:
            place = f"{where}: " if where else ""
            raise InvalidOptionError(
                f"policy {file}: {place}unknown key {key!r}; {nearest_of(key, known)}"
            )


def _table(file: Path, where: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InvalidOptionError(f"policy {file}: {where}: expected a table of keys and values")
    return given


def _texts(file: Path, given: Any) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise InvalidOptionError(
            f'policy {file}: budget: windows = {given!r}: expected such as ["22:00-06:00"]'
        )
    return given


def _window(file: Path, text: str) -> Window:
    found = _WINDOW.fullmatch(text)
    try:
        if found is not None and found[1] != found[2]:
            return Window(time.fromisoformat(found[1]), time.fromisoformat(found[2]))
    except ValueError:
        pass
    raise InvalidOptionError(
        f'policy {file}: budget: window {text!r}: expected such as "22:00-06:00", local time; '
        "leave windows out to begin tables at any time"
    )
