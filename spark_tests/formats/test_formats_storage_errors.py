"""Data files on a storage that fails: the error is the storage's, not one of a damaged file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from effort import some
from fsspec.implementations.memory import MemoryFileSystem

from icebergds.errors import StorageError
from icebergds.formats.data_file.read_request import ReadRequest
from icebergds.formats.data_file.write_properties import WriteProperties
from icebergds.formats.data_reader import open_data_file
from icebergds.formats.data_writer import open_data_writer
from icebergds.formats.puffin import NewBlob, encode_puffin, read_puffin_footer
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import FileFormat
from icebergds.spec.schema import Schema
from icebergds.spec.types import LONG, NestedField
from icebergds.spec.updates.new_table import UNSORTED

_SCHEMA = Schema((NestedField(1, "id", LONG),))
_FORMATS = [FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO]


class _Breaking(MemoryFileSystem):
    """A storage that does not answer after some calls of its open files."""

    left = 10**9

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        file = super()._open(path, mode, **options)
        name = "read" if "r" in mode else "write"
        done = getattr(file, name)

        def call(*args: Any) -> Any:
            _Breaking.left -= 1
            if _Breaking.left < 0:
                raise TimeoutError("no answer")
            return done(*args)

        setattr(file, name, call)
        return file


@pytest.fixture(autouse=True)
def breaking(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Breaking]]:
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda protocol: _Breaking)
    _Breaking.left = 10**9
    yield _Breaking
    MemoryFileSystem.store.clear()


def _write(file_format: FileFormat) -> str:
    location = f"memory://bucket/f.{file_format.value}"
    properties = WriteProperties.of({}, _SCHEMA, UNSORTED)
    writer = open_data_writer(FileIO(), location, file_format, _SCHEMA, properties)
    try:
        writer.write(pa.record_batch({"id": list(range(50_000))}))
        writer.close()
    except BaseException:
        writer.abort()
        raise
    return location


def _read(location: str, file_format: FileFormat) -> int:
    with open_data_file(FileIO(), location, file_format, table_schema=_SCHEMA) as reader:
        return sum(batch.num_rows for batch in reader.batches(ReadRequest(_SCHEMA)))


def _calls(breaking: type[_Breaking], made: int) -> range:
    calls = made - breaking.left
    assert calls > 0
    return range(calls)


@pytest.mark.parametrize("file_format", _FORMATS)
def test_a_read_that_fails_is_no_damaged_file(
    file_format: FileFormat, breaking: type[_Breaking]
) -> None:
    location = _write(file_format)
    made = breaking.left
    assert _read(location, file_format) == 50_000
    for call in some(_calls(breaking, made), 5):
        breaking.left = call
        with pytest.raises(StorageError, match=f"reading {location} failed: .*no answer") as raised:
            _read(location, file_format)
        assert "Traceback" not in str(raised.value)


@pytest.mark.parametrize("file_format", _FORMATS)
def test_a_write_that_fails_names_the_file(
    file_format: FileFormat, breaking: type[_Breaking]
) -> None:
    made = breaking.left
    location = _write(file_format)
    # A writer of ORC reads the end of its file again.
    told = f"(writing the data file|reading) {location} failed: no answer"
    for call in _calls(breaking, made):
        breaking.left = call
        with pytest.raises(StorageError, match=told):
            _write(file_format)
        assert not FileIO().exists(location)


def test_a_puffin_file_that_cannot_be_read_is_not_damaged(breaking: type[_Breaking]) -> None:
    location = "memory://bucket/f.puffin"
    FileIO().write(location, encode_puffin([NewBlob("any", (1,), b"x")])[0])
    breaking.left = 0
    with pytest.raises(StorageError, match=f"reading {location} failed"):
        read_puffin_footer(FileIO(), location)
