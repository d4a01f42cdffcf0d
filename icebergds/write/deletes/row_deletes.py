"""Writes position deletes for the table's format version: delete files or deletion vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icebergds.encryption.gcm_stream import encrypt_bytes
from icebergds.encryption.key_metadata import new_key_metadata
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.formats.deletes.deletion_vector import encode_deletion_vector
from icebergds.formats.puffin import NewBlob, encode_puffin
from icebergds.io.failures import storage_failures
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.partition import PartitionSpec
from icebergds.spec.reserved import POS
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
        return _write_deletion_vectors(attempt, deletes, settings)

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


_BLOB_TYPE = "deletion-vector-v1"
_PROPERTIES = {"created-by": "icebergds"}


def _write_deletion_vectors(
    attempt: TaskAttempt, deletes: Sequence[FilePositions], settings: DeleteSettings
) -> list[DataFile]:
    """Writes a deletion vector for each data file, many in one Puffin file.

    Args:
        attempt: the task attempt that writes the files.
        deletes: at least one position for each data file; each data file once.
        settings: how to write them; a file is closed after the vector that reaches the target
            size.
    """
    written: list[DataFile] = []
    waiting: list[tuple[FilePositions, bytes]] = []
    size = 0
    for delete in sorted(deletes, key=lambda delete: delete.file.file_path):
        vector = encode_deletion_vector(delete.positions)
        waiting.append((delete, vector))
        size += len(vector)
        if size >= settings.target_size:
            written += _write_file(attempt, waiting, settings.properties.key_length)
            waiting, size = [], 0
    if waiting:
        written += _write_file(attempt, waiting, settings.properties.key_length)
    return written


def _write_file(
    attempt: TaskAttempt, vectors: Sequence[tuple[FilePositions, bytes]], key_length: int | None
) -> list[DataFile]:
    # The snapshot id and sequence number are not known yet; the spec requires -1 for them.
    blobs = [
        NewBlob(
            _BLOB_TYPE,
            (POS.field_id,),
            vector,
            properties={
                "referenced-data-file": delete.file.file_path,
                "cardinality": str(len(delete.positions)),
            },
        )
        for delete, vector in vectors
    ]
    data, placed = encode_puffin(blobs, _PROPERTIES)
    key_metadata = None
    if key_length is not None:
        key = new_key_metadata(key_length)
        data = encrypt_bytes(data, key)
        key_metadata = key.of_length(len(data)).serialized()
    location = attempt.new_location(FileFormat.PUFFIN, FileContent.POSITION_DELETES)
    with storage_failures("writing the delete file", location):
        attempt.io.write(location, data)
    attempt.wrote(sum(len(delete.positions) for delete, _ in vectors), len(data))
    return [
        DataFile(
            content=FileContent.POSITION_DELETES,
            file_path=location,
            file_format=FileFormat.PUFFIN,
            spec_id=delete.file.spec_id,
            partition=delete.file.partition,
            record_count=len(delete.positions),
            file_size_in_bytes=len(data),
            key_metadata=key_metadata,
            referenced_data_file=delete.file.file_path,
            content_offset=blob.offset,
            content_size_in_bytes=blob.length,
        )
        for (delete, _), blob in zip(vectors, placed, strict=True)
    ]
