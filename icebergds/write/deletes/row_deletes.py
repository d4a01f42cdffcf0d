"""Writes position deletes for the table's format version: delete files or deletion vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.write.deletes.deletion_vectors import write_deletion_vectors
from icebergds.write.deletes.position_deletes import (
    POSITION_DELETE_SCHEMA,
    FilePositions,
    write_position_deletes,
)
from icebergds.write.files import FileKind, TaskAttempt, TaskFiles


@dataclass(frozen=True, slots=True)
class DeleteSettings:
    """How position deletes are written.

    Attributes:
        format_version: 2 for position delete files, 3 for deletion vectors.
        granularity: of position delete files, `file` or `partition`.
        file_format: of position delete files.
        target_size: of files, in bytes.
        properties: the table's write properties.
    """

    format_version: int
    granularity: str
    file_format: FileFormat
    target_size: int
    properties: WriteProperties


def write_deletes(
    attempt: TaskAttempt,
    deletes: Sequence[FilePositions],
    settings: DeleteSettings,
    specs: Mapping[int, PartitionSpec],
) -> list[DataFile]:
    """Writes position deletes.

    Args:
        attempt: the task attempt that writes the files.
        deletes: at least one position for each data file; each data file once.
        settings: how to write them.
        specs: the partition specs of the data files, by id.
    """
    if settings.format_version >= 3:
        return write_deletion_vectors(attempt, deletes, target_size=settings.target_size)

    def files_of(spec_id: int) -> TaskFiles:
        kind = FileKind(
            POSITION_DELETE_SCHEMA,
            specs[spec_id],
            settings.file_format,
            settings.properties,
            FileContent.POSITION_DELETES,
        )
        return TaskFiles(attempt, kind)

    return write_position_deletes(
        deletes, files_of, granularity=settings.granularity, target_size=settings.target_size
    )
