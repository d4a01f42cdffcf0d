"""Derives the options of a commit from those of its write."""

from __future__ import annotations

from collections.abc import Mapping

from icebergds.commit.options import CommitOptions
from icebergds.operations.write.options import WriteOptions


def commit_options(
    options: WriteOptions, table_uuid: str | None, summary: Mapping[str, str] | None = None
) -> CommitOptions:
    """The options of a commit.

    Args:
        table_uuid: of the table that the write was prepared for.
        summary: snapshot summary entries in addition to the user's.
    """
    return CommitOptions(
        options.branch,
        options.wap_id,
        {**options.snapshot_properties, **(summary or {})},
        table_uuid,
        options.idempotent_write,
    )
