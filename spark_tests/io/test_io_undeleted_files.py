"""How loudly files that are left behind are told of."""

from __future__ import annotations

import logging

import pytest

from icebergds.catalog.metadata_writing import delete_quietly
from icebergds.errors import StorageError
from icebergds.io.fileio import FileIO


class _Keeping(FileIO):
    """A storage that lets nobody delete files."""

    def delete(self, location: str) -> None:
        raise StorageError("not allowed", location=location)


@pytest.mark.parametrize(
    ("bucket", "level"),
    [("lake", logging.WARNING), ("de514560-87bd-4b93-a223--table-s3", logging.DEBUG)],
)
def test_where_nobody_may_delete_files_it_is_no_warning(
    bucket: str, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        delete_quietly(_Keeping(), f"s3://{bucket}/metadata/1.avro", "table lake.db.t")
    assert [record.levelno for record in caplog.records] == [level]
