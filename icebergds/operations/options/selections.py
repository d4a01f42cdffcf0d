"""Reads the last part of a name that selects a branch, tag, snapshot or time, as in Java."""

from __future__ import annotations

import re
from collections.abc import Mapping

from icebergds.errors import (
    InvalidFilterError,
    InvalidOptionError,
    NoSuchNamespaceError,
    NoSuchTableError,
)
from icebergds.expr.names import quote_name, split_name
from icebergds.operations.options.values import address_of

_FORMS = {
    "branch": re.compile(r"branch_(.+)", re.DOTALL),
    "tag": re.compile(r"tag_(.+)", re.DOTALL),
    "snapshot-id": re.compile(r"snapshot_id_(\d+)"),
    "as-of-timestamp": re.compile(r"at_timestamp_(\d+)"),
}


def selection_of(last: str) -> tuple[str, str] | None:
    """The read option that the last part of a name stands for, and its value; None if none.

    >>> selection_of("branch_audit")
    ('branch', 'audit')
    """
    for option, form in _FORMS.items():
        if (match := form.fullmatch(last)) is not None:
            return option, match[1]
    return None


def with_selection(given: Mapping[str, str]) -> Mapping[str, str]:
    """Options whose path names a table of a catalog, with its selection moved to an option.

    A table of the whole name takes precedence: `events.branch_b` may be in a namespace `events`.

    Args:
        given: options by names in lower case.

    Raises:
        InvalidOptionError: an option selects something too.
        IcebergError: the catalog cannot be asked.
    """
    if given.get("catalog") is None:
        return given
    path = given["path"]
    try:
        *table, last = split_name(path)
    except InvalidFilterError:
        return given
    selected = selection_of(last) if table else None
    if selected is None or _is_table(given, path) or not _is_table(given, quote_name(table)):
        return given
    option, value = selected
    if others := sorted(_FORMS.keys() & given.keys()):
        raise InvalidOptionError(
            f"option {others[0]!r} and the name {path}, which ends with {last}, both select of the "
            "table; give one of them"
        )
    return {**given, "path": quote_name(table), option: value}


def _is_table(given: Mapping[str, str], path: str) -> bool:
    try:
        address_of(given, path).load()
    except (NoSuchTableError, NoSuchNamespaceError, InvalidOptionError):
        # Or the names before the last one are not those of a namespace.
        return False
    return True
