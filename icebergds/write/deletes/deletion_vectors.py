"""Writes deletion vectors (spec: Deletion Vectors; Puffin spec: deletion-vector-v1)."""

from __future__ import annotations

from collections.abc import Sequence

from icebergds.formats.deletes.deletion_vector import encode_deletion_vector
from icebergds.formats.puffin import NewBlob, encode_puffin
from icebergds.io.failures import storage_failures
from icebergds.spec.manifest import DataFile, FileContent, FileFormat
from icebergds.spec.reserved import POS
from icebergds.write.deletes.position_deletes import FilePositions
from icebergds.write.files import TaskAttempt

_BLOB_TYPE = "deletion-vector-v1"
_PROPERTIES = {"created-by": "icebergds"}


def write_deletion_vectors(
    attempt: TaskAttempt, deletes: Sequence[FilePositions], *, target_size: int
) -> list[DataFile]:
    """Writes a deletion vector for each data file, many in one Puffin file.

    Args:
        attempt: the task attempt that writes the files.
        deletes: at least one position for each data file; each data file once.
        target_size: in bytes; a file is closed after the vector that reaches it.
    """
    written: list[DataFile] = []
    waiting: list[tuple[FilePositions, bytes]] = []
    size = 0
    for delete in sorted(deletes, key=lambda delete: delete.file.file_path):
        vector = encode_deletion_vector(delete.positions)
        waiting.append((delete, vector))
        size += len(vector)
        if size >= target_size:
            written += _write_file(attempt, waiting)
            waiting, size = [], 0
    if waiting:
        written += _write_file(attempt, waiting)
    return written


def _write_file(
    attempt: TaskAttempt, vectors: Sequence[tuple[FilePositions, bytes]]
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
    location = attempt.new_location(FileFormat.PUFFIN, FileContent.POSITION_DELETES)
    with storage_failures("writing the delete file", location):
        attempt.io.write(location, data)
    return [
        DataFile(
            content=FileContent.POSITION_DELETES,
            file_path=location,
            file_format=FileFormat.PUFFIN,
            spec_id=delete.file.spec_id,
            partition=delete.file.partition,
            record_count=len(delete.positions),
            file_size_in_bytes=len(data),
            referenced_data_file=delete.file.file_path,
            content_offset=blob.offset,
            content_size_in_bytes=blob.length,
        )
        for (delete, _), blob in zip(vectors, placed, strict=True)
    ]
