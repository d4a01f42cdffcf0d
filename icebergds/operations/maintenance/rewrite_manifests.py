"""Rewrites manifests so that planning opens few of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.commit.operations import TableState
from icebergds.commit.options import NothingToCommitError
from icebergds.commit.rewrite_manifests import RewriteManifests
from icebergds.commit.snapshot_commit import commit_snapshot
from icebergds.display import html_result
from icebergds.errors import InvalidOptionError
from icebergds.operations.maintenance.maintained_branch import maintained_branch
from icebergds.operations.options.arguments import integer_argument, names_argument
from icebergds.reporting import stage
from icebergds.spec.partition import PartitionSpec
from icebergds.suggestions import did_you_mean


@dataclass(frozen=True, slots=True)
class RewrittenManifests:
    """What a rewrite of manifests did.

    Attributes:
        rewritten_manifests_count: the number of manifests that were replaced.
        added_manifests_count: the number of manifests that replace them.
    """

    rewritten_manifests_count: int
    added_manifests_count: int

    def _repr_html_(self) -> str:
        return html_result("Rewritten manifests", self)


def rewrite_manifests(
    table: LoadedTable,
    spec_id: Any = None,
    sort_by: Any = None,
    *,
    branch: Any = None,
    snapshot_properties: Mapping[str, str] | None = None,
    drop_removed: bool = False,
) -> tuple[RewrittenManifests, TableState]:
    """Rewrites the manifests of one partition spec; does nothing if there is one small manifest.

    Args:
        spec_id: the current spec by default.
        sort_by: names of partition fields to cluster by first.
        drop_removed: as for `RewriteManifests`.

    Raises:
        InvalidOptionError: the table has no such spec, partition field or branch.
        CommitConflictError, CommitStateUnknownError: as for other commits.
    """
    options = maintained_branch(table, branch, snapshot_properties)
    spec = _spec(table, spec_id)
    leading = tuple(_field_ids(table, spec, sort_by))
    action = RewriteManifests(spec.spec_id, leading, drop_removed)
    try:
        with stage("rewrite manifests"):
            committed = commit_snapshot(table.operations, action, options, table.state)
    except NothingToCommitError as nothing:
        return RewrittenManifests(0, 0), nothing.state
    summary = committed.snapshot.summary
    counts = RewrittenManifests(
        int(summary["manifests-replaced"]), int(summary["manifests-created"])
    )
    return counts, committed.state


def _spec(table: LoadedTable, spec_id: Any) -> PartitionSpec:
    wanted = integer_argument("spec_id", spec_id)
    if wanted is None:
        return table.metadata.spec()
    spec = table.metadata.specs_by_id.get(wanted)
    if spec is None:
        raise InvalidOptionError(
            f"spec_id = {wanted}: table {table.name} has the partition specs "
            f"{', '.join(map(str, sorted(table.metadata.specs_by_id)))}"
        )
    return spec


def _field_ids(table: LoadedTable, spec: PartitionSpec, sort_by: Any) -> Iterator[int]:
    ids = {part.name: part.field_id for part in spec.fields}
    for name in _names(sort_by):
        if name not in ids:
            near = did_you_mean(name, ids, shown=repr)
            hint = f"; {near}" if near else ""
            raise InvalidOptionError(
                f"sort_by: partition spec {spec.spec_id} of table {table.name} has no field "
                f"{name!r}{hint} (its fields: {', '.join(ids) or 'none'})"
            )
        yield ids[name]


def _names(sort_by: Any) -> Sequence[str]:
    names = names_argument("sort_by", sort_by)
    if isinstance(names, str):
        return [name.strip() for name in names.split(",")]
    return names or []
