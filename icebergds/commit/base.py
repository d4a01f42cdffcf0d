"""Reads the table state that one commit attempt builds on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from icebergds.commit.operations import TableState
from icebergds.encryption.list_keys import no_service
from icebergds.errors import (
    InvalidOptionError,
    UnsupportedFeatureError,
    ValidationError,
)
from icebergds.formats.manifests.counts import check_totals
from icebergds.formats.manifests.manifest_list import read_snapshot_manifests
from icebergds.formats.manifests.reader import read_manifest_columns
from icebergds.formats.wrong_counts import WrongCounts
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import ManifestContent, ManifestEntryStatus, ManifestFile
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.snapshot import RefType, Snapshot
from icebergds.spec.table_properties import ENCRYPTION_KEY_ID


@dataclass(frozen=True, slots=True)
class CommitBase:
    """The table state that a commit attempt builds on.

    Attributes:
        branch_head: the branch's current snapshot; None if the branch does not exist.
        parent: the parent of the new snapshot; main's head if the branch is new.
        manifests: the parent's manifests in order, with all file and row counts.
        sequence_number: the number of the new snapshot; 0 in version 1.
        wrong_counts: what to do if a manifest's files do not match the counts in the manifest list.
    """

    state: TableState
    branch: str
    branch_head: Snapshot | None
    parent: Snapshot | None
    manifests: tuple[ManifestFile, ...]
    sequence_number: int
    wrong_counts: WrongCounts

    @property
    def name(self) -> str:
        """The table's name in messages."""
        return self.state.name

    @property
    def io(self) -> FileIO:
        return self.state.io

    @property
    def metadata(self) -> TableMetadata:
        return self.state.metadata

    def spec(self, spec_id: int) -> PartitionSpec:
        """A partition spec of the table.

        Raises:
            ValidationError: the table does not have it, or no longer.
        """
        spec = self.metadata.specs_by_id.get(spec_id)
        if spec is None:
            raise ValidationError(
                f"table {self.name}: files were written with partition spec {spec_id}, but the "
                f"table has only specs {sorted(self.metadata.specs_by_id)}; a commit may have "
                "removed it since; write the files again"
            )
        return spec

    def manifests_of(self, content: ManifestContent) -> list[ManifestFile]:
        """The parent's manifests of data files, or of delete files."""
        return [manifest for manifest in self.manifests if manifest.content is content]


def commit_base(state: TableState, branch: str) -> CommitBase:
    """Loads what a commit to a branch builds on.

    Raises:
        InvalidOptionError, UnsupportedFeatureError: as `check_branch` does.
        MissingFileError, CorruptFileError: the parent's manifest list cannot be read.
    """
    check_branch(state, branch)
    metadata = state.metadata
    head = metadata.snapshot_by_ref(branch)
    parent = metadata.head_of(branch)
    manifests, wrong_counts = (
        ((), WrongCounts.FAIL) if parent is None else _manifests(state, parent)
    )
    number = metadata.last_sequence_number + 1 if metadata.format_version > 1 else 0
    return CommitBase(state, branch, head, parent, manifests, number, wrong_counts)


def check_branch(state: TableState, branch: str) -> None:
    """Checks that a branch can be committed to, before files are written for it.

    Raises:
        InvalidOptionError: the name is a tag's.
        UnsupportedFeatureError: the table is encrypted, and its catalog has no key management
            service; or it has keys, but does not say by which one it is encrypted.
    """
    _check_encryption(state)
    ref = state.metadata.refs.get(branch)
    if ref is not None and ref.ref_type is not RefType.BRANCH:
        raise InvalidOptionError(
            f"table {state.name}: {branch!r} is a tag, and only branches can be committed to; "
            "choose another branch name"
        )


def require_branch(base: CommitBase) -> None:
    """Refuses to re-create from main's head a branch that was dropped meanwhile.

    Raises:
        ValidationError: the table has no such branch.
    """
    if base.branch_head is None and base.parent is not None:
        raise ValidationError(
            f"table {base.name}: branch {base.branch!r} was dropped during this operation; nothing "
            "was changed"
        )


def _manifests(
    state: TableState, snapshot: Snapshot
) -> tuple[tuple[ManifestFile, ...], WrongCounts]:
    manifests = read_snapshot_manifests(state.io, snapshot)
    wrong_counts = check_totals(snapshot, manifests, WrongCounts.FAIL)
    return tuple(_complete(state, manifests)), wrong_counts


def _complete(state: TableState, manifests: Iterable[ManifestFile]) -> Iterable[ManifestFile]:
    """Fills in the counts that manifest lists of version 1 may omit."""
    for manifest in manifests:
        yield _with_counts(state, manifest) if _lacks_counts(manifest) else manifest


def _check_encryption(state: TableState) -> None:
    metadata = state.metadata
    if ENCRYPTION_KEY_ID.of(metadata.properties) is not None:
        if state.keys is None:
            raise no_service(state.name, metadata)
        if metadata.format_version < 3:
            raise UnsupportedFeatureError(
                f"table {state.name} has format version {metadata.format_version} and the property "
                f"{ENCRYPTION_KEY_ID.name}; only tables of version 3 can be encrypted"
            )
    elif metadata.encryption_keys:
        raise UnsupportedFeatureError(
            f"table {state.name} has encryption keys, but no property {ENCRYPTION_KEY_ID.name}; it "
            "was removed from the table's metadata, and new files would not be encrypted"
        )


def _lacks_counts(manifest: ManifestFile) -> bool:
    return None in (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
        manifest.added_rows_count,
        manifest.existing_rows_count,
        manifest.deleted_rows_count,
    )


def _with_counts(state: TableState, manifest: ManifestFile) -> ManifestFile:
    metadata = state.metadata
    columns = read_manifest_columns(
        state.io,
        manifest,
        metadata.specs_by_id,
        metadata.schema(),
        history=metadata.schema_history,
        stats_ids=frozenset(),
        live_only=False,
    )

    def files(status: ManifestEntryStatus) -> int:
        return int((columns.status == status.value).sum())

    def rows(status: ManifestEntryStatus) -> int:
        return int(columns.record_count[columns.status == status.value].sum())

    added, existing = ManifestEntryStatus.ADDED, ManifestEntryStatus.EXISTING
    deleted = ManifestEntryStatus.DELETED
    return replace(
        manifest,
        added_files_count=files(added),
        existing_files_count=files(existing),
        deleted_files_count=files(deleted),
        added_rows_count=rows(added),
        existing_rows_count=rows(existing),
        deleted_rows_count=rows(deleted),
    )
