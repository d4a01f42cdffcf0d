"""Measures what a read of a table costs beyond the least possible, and advises what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

from icebergds.commit.base import commit_base
from icebergds.commit.file_selection import file_key
from icebergds.commit.operations import TableState
from icebergds.commit.retention import ExpiryRequest
from icebergds.display import WIDTH, counted, html_table, printable, size_text
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.operations.maintenance.deletes.dangling_deletes import find_dangling_deletes
from icebergds.operations.maintenance.health.advice import Advice, Findings, advise
from icebergds.operations.maintenance.health.figures import (
    DataFileHealth,
    DeleteHealth,
    ManifestHealth,
    MetadataHealth,
    equality_deletes,
    expirable,
    measure_deletes,
    measure_files,
    measure_manifests,
    measure_metadata,
    position_deletes,
    suspected_deletes,
)
from icebergds.operations.maintenance.health.history import TableHistory, measure_history
from icebergds.operations.maintenance.health.layout import FileLayout, measure_layout
from icebergds.operations.maintenance.listed_paths import ListedPaths
from icebergds.operations.maintenance.rewrite.options import RewriteOptions
from icebergds.operations.maintenance.rewrite.plan import FileGroup, plan_groups
from icebergds.operations.maintenance.rewrite.shared_deletes import SharedDeletes
from icebergds.operations.read.time_travel import TimeTravel, resolve_snapshot
from icebergds.reporting import stage
from icebergds.scan.plan.files import all_manifests
from icebergds.scan.plan.live_deletes import live_deletes
from icebergds.scan.plan.packed_files import PackedFiles, plan_packed_files
from icebergds.spec.manifest import ManifestEntry, ManifestFile
from icebergds.spec.snapshot import MAIN_BRANCH
from icebergds.spec.values.dates import now_ms

_INDENT = 11
_ROOM = WIDTH - _INDENT
_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class TableHealth:
    """What a read of a branch costs beyond the least possible; `str` shows it as text.

    Attributes:
        table, branch: their names.
        files: the data files: `count`, `rows`, `size_in_bytes`, `target_size`, `small`, `large`,
            `to_rewrite`, `to_rewrite_bytes`, `other_specs`, `in_other_specs`, `unsorted`,
            `unsorted_bytes`.
        deletes: the delete files: `position_delete_files`, `deletion_vectors`,
            `equality_delete_files`, `count`, `size_in_bytes`, `dangling`, `mean_per_data_file`,
            `most_per_data_file`, `deleted_rows`, `deleted_share`, `data_files_with_keys`,
            `equality_keys`, `overhead_bytes`.
        manifests: `count`, `of_deletes`, `size_in_bytes`, `mean_size`, `target_size`.
        metadata: for all branches: `snapshots`, `oldest_age_ms`, `expirable_snapshots`,
            `expirable_refs`, `metadata_bytes`.
        advice: the actions that are worth it, in the order in which to run them.
        layout: how files are distributed: `sizes`, `rows`, `deletes`, `with_deletes`, `partitions`,
            `largest`, `skew`.
        history: for all branches: `commits`, `operations`, `refs`, `held_bytes`, `expirable_bytes`,
            `unrecorded`; and of the branch: `growth`.
    """

    table: str
    branch: str
    files: DataFileHealth
    deletes: DeleteHealth
    manifests: ManifestHealth
    metadata: MetadataHealth
    advice: tuple[Advice, ...]
    layout: FileLayout
    history: TableHistory

    @property
    def is_healthy(self) -> bool:
        """Whether there is no advice."""
        return not self.advice

    def to_html(self) -> str:
        """One HTML page with charts, which needs no network; `Table.report` writes it to a file.

        Raises:
            ImportError: jinja2 or matplotlib is not installed.
        """
        from icebergds.operations.maintenance.fleet.cost import report_of
        from icebergds.operations.maintenance.fleet.page import render_page

        title = f"Health of {self.table}"
        return render_page(title, [report_of(self)], measured_ms=now_ms())

    def __str__(self) -> str:
        lines = ["== Iceberg Health =="]
        for name, texts in _lines(self):
            wrapped = [line for text in texts for line in wrap(printable(text), _ROOM)]
            lines += [
                f"{'' if index else name:<{_INDENT}}{text}" for index, text in enumerate(wrapped)
            ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(name, "\n".join(texts)) for name, texts in _lines(self)]
        return html_table(f"Health of {self.table}, branch {self.branch}", (), rows)


def health(state: TableState, branch: str | None = None) -> TableHealth:
    """Measures a branch, main by default, from metadata alone.

    Costs the time of planning a scan of all rows, and about 400 bytes of memory for each data file;
    reads the delete manifests once more. Only if there are delete files that apply to nothing, data
    manifests are read again.

    Raises:
        NoSuchSnapshotError: the table has no such branch.
        InvalidOptionError: a table property is malformed.
        MissingFileError, CorruptFileError: a manifest list or manifest is missing or damaged.
    """
    options = RewriteOptions.of({}, state.metadata.properties)
    measured, _ = examine(state, branch or MAIN_BRANCH, options, ExpiryRequest(now_ms()))
    return measured


def examine(
    state: TableState,
    branch: str,
    options: RewriteOptions,
    expiry: ExpiryRequest,
    *,
    purges: bool = False,
) -> tuple[TableHealth, list[FileGroup]]:
    """Measures a branch, and says which groups of data files a rewrite would replace.

    Args:
        options: the options of that rewrite.
        expiry: which snapshots may expire.
        purges: whether to advise rewriting manifests that list removed files.

    Errors are those of `health`.
    """
    metadata = state.metadata
    snapshot, schema = resolve_snapshot(metadata, TimeTravel(branch=branch), state.name)
    files, live = PackedFiles.of(()), list[ManifestEntry]()
    manifests: tuple[ManifestFile, ...] = ()
    if snapshot is not None:
        manifests, _ = all_manifests(state.io, snapshot, WrongCounts.FAIL)
        files = plan_packed_files(state.io, metadata, snapshot, schema)
        live = live_deletes(state.io, metadata, snapshot)
    listed, shared = ListedPaths(), SharedDeletes()
    listed.add_all(files)
    shared.add(files)
    groups = plan_groups(listed.once_of(files), options, metadata.default_spec_id, shared)
    dangling, suspected = _dangling(state, branch, files, live), suspected_deletes(files)
    given = {} if branch == MAIN_BRANCH else {"branch": branch}
    found = Findings(
        metadata, options, files, groups, dangling, suspected, manifests, given, expiry, purges
    )
    expiring = expirable(state, expiry)
    of_metadata = measure_metadata(state, expiring, expiry.now_ms)
    measured = TableHealth(
        table=state.name,
        branch=branch,
        files=measure_files(files, groups, options, metadata),
        deletes=measure_deletes(files, live, dangling, suspected),
        manifests=measure_manifests(manifests, metadata),
        metadata=of_metadata,
        advice=advise(found, of_metadata),
        layout=measure_layout(files, metadata),
        history=measure_history(metadata, snapshot, frozenset(expiring.snapshot_ids)),
    )
    return measured, groups


def _dangling(state: TableState, branch: str, files: PackedFiles, live: list[ManifestEntry]) -> int:
    """How many delete files apply to nothing, judging by metadata."""
    applied = position_deletes(files).keys() | equality_deletes(files).keys()
    if all(file_key(entry.data_file) in applied for entry in live):
        return 0
    # Deletes of data files that are said to have no rows, which planning skips, are kept too.
    with stage("read manifests"):
        found = find_dangling_deletes(commit_base(state, branch))
    return sum(int(mask.sum()) for mask in found.dangling.values())


def _lines(health: TableHealth) -> Iterator[tuple[str, list[str]]]:
    """The parts of a table, each with its lines."""
    yield "table", [f"{printable(health.table, 60)}, branch {printable(health.branch, 20)}"]
    yield "files", list(_files(health))
    yield "deletes", list(_deletes(health)) or ["none"]
    yield "manifests", [_manifests(health)]
    yield "snapshots", [_snapshots(health)]
    if health.is_healthy:
        yield "advice", ["none: the table is healthy"]
    for number, advice in enumerate(health.advice, start=1):
        yield f"advice {number}", _advice(advice)


def _files(health: TableHealth) -> Iterator[str]:
    files = health.files
    if not files.count:
        yield "none"
        return
    size = size_text(files.size_in_bytes)
    yield f"{counted(files.count, 'data file')}: {size}, {counted(files.rows, 'row')}"
    yield (
        f"{files.small:,} below 75 % and {files.large:,} above 180 % of the target of "
        f"{size_text(files.target_size)}; {files.to_rewrite:,} should be rewritten"
    )
    if files.other_specs:
        specs = counted(len(files.other_specs), "former partition spec")
        yield f"{files.in_other_specs:,} in {specs}"
    if files.unsorted and files.unsorted_bytes is not None:
        yield (
            f"{files.unsorted:,} ({size_text(files.unsorted_bytes)}) not written in the table's "
            "sort order"
        )


def _deletes(health: TableHealth) -> Iterator[str]:
    deletes = health.deletes
    if not deletes.count:
        return
    kinds = (
        (deletes.position_delete_files, "position delete file"),
        (deletes.deletion_vectors, "deletion vector"),
        (deletes.equality_delete_files, "equality delete file"),
    )
    shown = ", ".join(counted(number, noun) for number, noun in kinds if number)
    yield f"{shown}: {size_text(deletes.size_in_bytes)}"
    yield (
        f"{deletes.mean_per_data_file:,.1f} for a data file on average, at most "
        f"{deletes.most_per_data_file:,}"
    )
    if deletes.deleted_rows:
        yield (
            f"{counted(deletes.deleted_rows, 'row')} deleted by position, "
            f"{deletes.deleted_share:.1%} of all, which are in the data files still"
        )
    if deletes.data_files_with_keys:
        keys, files = deletes.equality_keys, deletes.data_files_with_keys
        yield f"{counted(keys, 'key')} compared with rows of {counted(files, 'data file')}"
    if deletes.overhead_bytes:
        size = size_text(deletes.overhead_bytes)
        yield f"a full read reads about {size} for nothing: deleted rows and delete files"
    if deletes.dangling:
        yield f"{deletes.dangling:,} without a data file that they apply to"


def _manifests(health: TableHealth) -> str:
    manifests = health.manifests
    if not manifests.count:
        return "none"
    return (
        f"{manifests.count:,}, of deletes {manifests.of_deletes:,}: "
        f"{size_text(manifests.size_in_bytes)}, {size_text(round(manifests.mean_size))} on "
        f"average; the target is {size_text(manifests.target_size)}"
    )


def _snapshots(health: TableHealth) -> str:
    metadata = health.metadata
    shown = [f"{metadata.snapshots:,}"]
    if metadata.oldest_age_ms is not None:
        shown.append(f"the oldest {metadata.oldest_age_ms / _DAY_MS:,.1f} days old")
        shown.append(f"{metadata.expirable_snapshots:,} may expire")
    if metadata.metadata_bytes is not None:
        shown.append(f"metadata file of {size_text(metadata.metadata_bytes)}")
    return ", ".join(shown)


def _advice(advice: Advice) -> list[str]:
    gain = str(advice.gain)
    return [advice.call, advice.reason, *([f"gain: {gain}"] if gain else [])]
