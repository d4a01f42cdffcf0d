"""Deletes every file that a metadata file reaches, such as after its table was dropped."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from icebergds.commit.operations import TableState
from icebergds.display import html_result
from icebergds.errors import InvalidOptionError, MissingFileError
from icebergds.io.same_directory import is_same_directory
from icebergds.operations.maintenance.unused_files.delete_files import delete_files
from icebergds.operations.maintenance.unused_files.reachable_files import (
    FileKind,
    reachable_files,
    require_garbage_collection,
)
from icebergds.spec.metadata import metadata_directory

_LOG = logging.getLogger(__name__)

_OTHERS = (FileKind.STATISTICS, FileKind.OLD_METADATA, FileKind.METADATA)


@dataclass(frozen=True, slots=True)
class DeletedReachableFiles:
    """How many files were deleted.

    Attributes:
        deleted_other_files_count: statistics and metadata files.
        failed_files_count: files that could not be deleted; each is logged. The files that lead to
            them, and the metadata file, are then left.
    """

    deleted_data_files_count: int = 0
    deleted_position_delete_files_count: int = 0
    deleted_equality_delete_files_count: int = 0
    deleted_manifests_count: int = 0
    deleted_manifest_lists_count: int = 0
    deleted_other_files_count: int = 0
    failed_files_count: int = 0

    def _repr_html_(self) -> str:
        return html_result("Deleted reachable files", self)


def delete_reachable(state: TableState) -> DeletedReachableFiles:
    """Deletes the files that metadata reaches, and the metadata files.

    Manifest lists and manifests that are missing are logged, so that a call that did not delete
    everything can be repeated.

    Raises:
        ValidationError: the table property `gc.enabled` is false.
        InvalidOptionError: the metadata file is not in the table's directory.
        CorruptFileError: a manifest list or manifest is damaged; nothing was deleted.
    """
    _check_place(state)
    require_garbage_collection(state, "delete its metadata alone")
    files = reachable_files(state, (MissingFileError,))
    deleted = delete_files(state.io, files, stop_at_failure=True)
    counts = deleted.counts
    result = DeletedReachableFiles(
        deleted_data_files_count=counts.get(FileKind.DATA, 0),
        deleted_position_delete_files_count=counts.get(FileKind.POSITION_DELETES, 0),
        deleted_equality_delete_files_count=counts.get(FileKind.EQUALITY_DELETES, 0),
        deleted_manifests_count=counts.get(FileKind.MANIFEST, 0),
        deleted_manifest_lists_count=counts.get(FileKind.MANIFEST_LIST, 0),
        deleted_other_files_count=sum(counts.get(kind, 0) for kind in _OTHERS),
        failed_files_count=deleted.failed,
    )
    _LOG.info("%s: %s", state.metadata_location, result)
    return result


def _check_place(state: TableState) -> None:
    """Refuses a copied metadata file: it reaches the files of the table that it was copied from.

    Raises:
        InvalidOptionError: the file is in none of the directories that the metadata names.
    """
    metadata, found = state.metadata, state.metadata_location.rpartition("/")[0]
    named = (metadata_directory(metadata.location), metadata.metadata_directory)
    if any(is_same_directory(found, directory, state.io) for directory in named):
        return
    mapping = {metadata.location: found.removesuffix("/metadata")}
    raise InvalidOptionError(
        f"{state.metadata_location} was copied or moved: it describes a table at "
        f"{metadata.location}, so the files that it names may be those of another table. If they "
        f"were copied, too, map the old location to the new one: "
        f"location_map={mapping}; if all files of the table at "
        f"{metadata.location} are to be deleted, give a metadata file in {named[1]}"
    )
