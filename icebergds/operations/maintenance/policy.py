"""Defines which maintenance `Table.maintain` does, and how much of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

from icebergds.errors import InvalidOptionError
from icebergds.operations.maintenance.rewrite.options import check_strategy
from icebergds.operations.options.arguments import flag_argument, positive_argument
from icebergds.operations.options.moments import moment_or_age
from icebergds.spec.sort import SortOrder
from icebergds.suggestions import did_you_mean

# If time is limited, groups become only so many files: one that has begun is not interrupted.
_TIMED_GROUP_FILES = 8
_PURGING = (
    "convert_equality_deletes",
    "rewrite_data_files",
    "remove_dangling_deletes",
    "rewrite_manifests",
    "expire_snapshots",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenancePolicy:
    """Which actions `Table.maintain` takes if the table's health calls for them, and its budget.

    Attributes:
        convert_equality_deletes: whether equality deletes are converted.
        rewrite_data_files: whether data files are rewritten.
        rewrite_position_delete_files: whether files of position deletes are rewritten.
        remove_dangling_deletes: whether deletes that apply to nothing are removed.
        rewrite_manifests: whether manifests are rewritten.
        expire_snapshots: whether snapshots expire.
        remove_orphan_files: whether to remove orphan files last. Not by default: metadata does not
            show whether there are any, and files of writes under way are protected by their age
            alone.
        purge_deleted: whether deleted rows are to go for good: every data file with deletes is
            rewritten, and all snapshots expire but the newest of each branch and the tagged ones.
            The report's `kept` says which branches and tags keep files that may hold such rows.
        strategy: how data files are rewritten, as for `Table.rewrite_data_files`.
        sort_order: of the rows in them, likewise.
        expire_older_than: snapshots before this time may expire: an age as a timedelta, a datetime
            with a time zone, a timestamp such as `2026-01-31T12:00:00Z`, or milliseconds since
            1970. By default, the table's properties decide.
        retain_last: how many snapshots of each branch are kept, however old; by default as the
            table's properties say.
        orphans_older_than: only orphan files that are older are removed: a time as above, at least
            24 hours ago; 3 days ago by default.
        max_bytes: the size of the data and delete files that may be read to be replaced. What does
            not fit is left for the next time; the most useful files come first.
        max_seconds: after so many seconds, no action and no group of files is begun.

    Raises:
        InvalidOptionError: a value is of the wrong type, or out of range, or `purge_deleted`
            conflicts with another.
    """

    convert_equality_deletes: bool = True
    rewrite_data_files: bool = True
    rewrite_position_delete_files: bool = True
    remove_dangling_deletes: bool = True
    rewrite_manifests: bool = True
    expire_snapshots: bool = True
    remove_orphan_files: bool = False
    purge_deleted: bool = False
    strategy: str = "binpack"
    sort_order: str | SortOrder | None = None
    expire_older_than: datetime | timedelta | str | int | None = None
    retain_last: int | None = None
    orphans_older_than: datetime | timedelta | str | int | None = None
    max_bytes: int | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            if isinstance(field.default, bool):
                flag_argument(field.name, getattr(self, field.name))
        for name in ("expire_older_than", "orphans_older_than"):
            moment_or_age(name, getattr(self, name))
        for name in ("retain_last", "max_bytes"):
            positive_argument(name, getattr(self, name))
        _check_seconds(self.max_seconds)
        check_strategy(self.strategy)
        if self.purge_deleted:
            self._check_purge()

    def _check_purge(self) -> None:
        for name in _PURGING:
            if not getattr(self, name):
                raise InvalidOptionError(f"purge_deleted = True needs {name}, which is False")
        for name in ("expire_older_than", "retain_last"):
            if getattr(self, name) is not None:
                raise InvalidOptionError(
                    f"purge_deleted = True expires all snapshots but the newest of each branch and "
                    f"the tagged ones; leave out {name}"
                )

    def takes(self, action: str) -> bool:
        """Whether the policy includes an action, named as the method of `Table`."""
        return bool(getattr(self, action))

    def group_bytes(self, target_file_size: int) -> int | None:
        """The largest size of groups of files to rewrite; None for any size.

        Args:
            target_file_size: the size of new files, in bytes.
        """
        return None if self.max_seconds is None else _TIMED_GROUP_FILES * target_file_size


def policy_of(policy: Any, changes: Mapping[str, Any]) -> MaintenancePolicy:
    """A policy, or the default one if it is None, with some fields changed.

    Raises:
        InvalidOptionError: it is not a policy, a field is unknown, or a value is wrong.
    """
    if policy is not None and not isinstance(policy, MaintenancePolicy):
        raise InvalidOptionError(
            f"policy = {policy!r} is of type {type(policy).__name__}, expected a MaintenancePolicy"
        )
    known = [field.name for field in fields(MaintenancePolicy)]
    for name in changes:
        if name not in known:
            near = did_you_mean(name, known, shown=repr)
            raise InvalidOptionError(
                f"maintain: unknown argument {name!r}; "
                + (f"{near} " if near else "")
                + f"Known arguments: {', '.join(known)}"
            )
    return replace(policy or MaintenancePolicy(), **changes)


def _check_seconds(value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidOptionError(
            f"max_seconds = {value!r} is of type {type(value).__name__}, expected a number of "
            "seconds"
        )
    if not (isfinite(value) and value > 0):
        raise InvalidOptionError(f"max_seconds = {value}: expected a number of seconds above 0")
