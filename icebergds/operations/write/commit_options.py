"""Derives the options of a commit from those of its write, and checks where it commits to."""

from __future__ import annotations

from collections.abc import Mapping

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.base import check_branch
from icebergds.commit.operations import TableState
from icebergds.commit.options import CommitOptions
from icebergds.errors import InvalidOptionError
from icebergds.operations.conditions import Setting
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.snapshot import MAIN_BRANCH, RefType
from icebergds.spec.table_properties import WAP_ENABLED
from icebergds.suggestions import did_you_mean

_SETTINGS = ("wap.branch", "wap.id")


def commit_options(
    options: WriteOptions, table_uuid: str | None, summary: Mapping[str, str] | None = None
) -> CommitOptions:
    """The options of a commit.

    Args:
        table_uuid: the UUID of the table that the write was prepared for.
        summary: snapshot summary entries in addition to the user's.
    """
    return CommitOptions(
        options.branch,
        options.wap_id,
        {**options.snapshot_properties, **(summary or {})},
        table_uuid,
        options.idempotent_write,
    )


def check_target_branch(state: TableState, options: WriteOptions) -> None:
    """Checks that the branch of the options can be committed to, and that it exists.

    A commit would create it from the head of main, so that a misspelt name hides the rows.

    Raises:
        InvalidOptionError: the name is a tag's, or the branch does not exist and the options do
            not ask to create it.
        UnsupportedFeatureError: the table is encrypted, without a key service.
    """
    branch = options.branch
    check_branch(state, branch)
    refs = state.metadata.refs
    if branch in refs or branch == MAIN_BRANCH or options.create_branch:
        return
    known = {MAIN_BRANCH, *(name for name, ref in refs.items() if ref.ref_type is RefType.BRANCH)}
    near = did_you_mean(branch, known)
    raise InvalidOptionError(
        f"table {state.name} has no branch {branch!r}, but {', '.join(sorted(known))}; to create "
        "it from the head of main, set option 'create-branch' to 'true', or run ALTER TABLE ... "
        "CREATE BRANCH" + (f"; {near}" if near else "")
    )


def refuse_ignored_audit(setting: Setting, table: LoadedTable, options: WriteOptions) -> None:
    """Refuses to write to main if a setting of Java Iceberg names a branch or an id.

    Args:
        setting: looks up settings of the session; SQL statements follow them, other writes do not.

    Raises:
        InvalidOptionError: the table has `write.wap.enabled`, and the write says nothing else.
    """
    if not WAP_ENABLED.of(table.metadata.properties):
        return
    if options.names_branch or options.wap_id is not None:
        return
    for name in _SETTINGS:
        if value := setting(f"spark.{name}"):
            raise InvalidOptionError(
                f"table {table.name} has {WAP_ENABLED.name}, and the session has spark.{name} = "
                f"{value!r}, which is not read here; set the option {name!r} = {value!r} for the "
                "write, or 'branch' = 'main' to write to main"
            )
