"""Merges manifests after commits that leave them as they are, so that their number has a limit."""

from __future__ import annotations

import logging

from icebergds.catalog.address import TableAddress
from icebergds.commit.merge_manifests import can_merge
from icebergds.commit.options import CommitOptions
from icebergds.commit.rewrite_manifests import MergeManifests
from icebergds.commit.snapshot_commit import Committed, commit_snapshot
from icebergds.errors import CommitConflictError, ValidationError
from icebergds.spec.manifest import ManifestContent

_LOG = logging.getLogger(__name__)


def merge_manifests_after(
    committed: Committed, address: TableAddress, branch: str
) -> Committed | None:
    """Merges the manifests of a branch if a commit left enough of them. Never raises.

    The commit stands, whatever happens here; the next one tries again.

    Returns:
        None if nothing was merged.
    """
    try:
        return _merge(committed, address, branch)
    except (ValidationError, CommitConflictError) as error:
        # Of several streams that find the same manifests, one merges them.
        _LOG.info("manifests of table %s were not merged: %s", committed.state.name, error)
        return None
    except Exception as error:
        _LOG.warning("manifests of table %s were not merged: %s", committed.state.name, error)
        return None


def _merge(committed: Committed, address: TableAddress, branch: str) -> Committed | None:
    metadata = committed.state.metadata
    kinds = (
        [manifest for manifest in committed.manifests if manifest.content is content]
        for content in ManifestContent
    )
    if not any(can_merge(metadata.properties, manifests) for manifests in kinds):
        return None
    options = CommitOptions(branch, table_uuid=metadata.table_uuid)
    return commit_snapshot(address.operations(), MergeManifests(), options, committed.state)
