"""Checks the branch that a maintenance action commits to."""

from __future__ import annotations

from typing import Any

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.base import check_branch
from icebergds.commit.options import CommitOptions
from icebergds.errors import InvalidOptionError
from icebergds.operations.options.arguments import mapping_argument, text_argument
from icebergds.spec.snapshot import MAIN_BRANCH, RefType
from icebergds.suggestions import did_you_mean


def maintained_branch(table: LoadedTable, branch: Any, snapshot_properties: Any) -> CommitOptions:
    """The options of a commit to a branch that exists.

    Args:
        branch: main by default.
        snapshot_properties: entries to add to the snapshot summary.

    Raises:
        InvalidOptionError: there is no such branch, or an argument is malformed.
        UnsupportedFeatureError: the table is encrypted.
    """
    name = text_argument("branch", branch) or MAIN_BRANCH
    check_branch(table.state, name)
    refs = table.metadata.refs
    known = {MAIN_BRANCH, *(r for r, ref in refs.items() if ref.ref_type is RefType.BRANCH)}
    if name not in known:
        near = did_you_mean(name, known)
        raise InvalidOptionError(
            f"table {table.name} has no branch {name!r}, but {', '.join(sorted(known))}"
            + (f"; {near}" if near else "")
        )
    properties = mapping_argument("snapshot_properties", snapshot_properties)
    return CommitOptions(name, None, properties, table.metadata.table_uuid)
