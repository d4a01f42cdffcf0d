"""Checks the branch that a maintenance action commits to."""

from __future__ import annotations

from typing import Any

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.base import check_branch
from icebergds.commit.operations import TableState
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
        UnsupportedFeatureError: the table is encrypted, without a key service.
    """
    name = text_argument("branch", branch) or MAIN_BRANCH
    check_maintained_branch(table.state, name)
    properties = mapping_argument("snapshot_properties", snapshot_properties)
    return CommitOptions(name, None, properties, table.metadata.table_uuid)


def check_maintained_branch(state: TableState, branch: str) -> None:
    """Checks that a branch exists and can be committed to; main need not have a snapshot.

    Raises:
        InvalidOptionError: there is no such branch, or the name is a tag's.
        UnsupportedFeatureError: the table is encrypted, without a key service.
    """
    check_branch(state, branch)
    refs = state.metadata.refs
    known = {MAIN_BRANCH, *(r for r, ref in refs.items() if ref.ref_type is RefType.BRANCH)}
    if branch not in known:
        near = did_you_mean(branch, known)
        raise InvalidOptionError(
            f"table {state.name} has no branch {branch!r}, but {', '.join(sorted(known))}"
            + (f"; {near}" if near else "")
        )
