"""Creates a data or delete file, and its `DataFile` once it is closed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import pyarrow as pa

from icebergds.encryption.gcm_stream import EncryptingStream
from icebergds.encryption.key_metadata import KeyMetadata
from icebergds.errors import InvalidDataError, UnsupportedFeatureError
from icebergds.formats.data_file.column_metrics import FileMetrics
from icebergds.io.failures import storage_failures
from icebergds.io.fileio import FileIO
from icebergds.io.remote_files import OutputStream
from icebergds.spec.manifest import DataFile, FileContent, FileFormat


class OutputFile:
    """A data or delete file being written.

    Args:
        key: to encrypt the file with; writers of Parquet do that, other files are encrypted here.

    Attributes:
        handle: what the file's content is written to.
    """

    def __init__(
        self,
        io: FileIO,
        location: str,
        file_format: FileFormat,
        content: FileContent,
        key: KeyMetadata | None = None,
    ) -> None:
        self._io = io
        self._format = file_format
        self._content = content
        self.location = location
        with self.writing():
            self._stored: pa.NativeFile = io.open_output(location)
        self.key = key
        self._stream = (
            None
            if key is None or file_format is FileFormat.PARQUET
            else EncryptingStream(self._stored, key)
        )
        self.handle: Any = self._stream or self._stored
        self._size = 0

    @property
    def position(self) -> int:
        """Bytes written so far."""
        return int(self.handle.tell())

    def writing(self) -> AbstractContextManager[None]:
        """Translates errors of the storage in a block; raises StorageError."""
        kind = "data" if self._content is FileContent.DATA else "delete"
        return storage_failures(f"writing the {kind} file", self.location)

    @contextmanager
    def encoding(self) -> Iterator[None]:
        """Translates errors of libraries that encode and write to errors that name the file.

        Raises:
            InvalidDataError: a value does not fit the file's schema.
            StorageError: the file could not be written.
            UnsupportedFeatureError: the format's library cannot write a type.
        """
        try:
            with self.writing():
                yield
        except pa.ArrowNotImplementedError as error:
            raise UnsupportedFeatureError(f"{self.location}: {error}") from error
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError, OverflowError) as error:
            raise InvalidDataError(f"{self.location}: {error}") from error

    def open_again(self) -> pa.NativeFile:
        """Opens the closed file for reading."""
        return self._io.open(self.location)

    def close(self) -> None:
        """Closes the complete file. Raises StorageError if that fails."""
        with self.writing():
            if self._stream is not None:
                self._stream.finish()
            self._size = int(self._stored.tell())
            self._stored.close()

    def describe(
        self, num_rows: int, metrics: FileMetrics, split_offsets: Sequence[int] = ()
    ) -> DataFile:
        """The `DataFile` of the closed file, without a partition."""
        return DataFile(
            content=self._content,
            file_path=self.location,
            file_format=self._format,
            spec_id=0,
            partition=(),
            record_count=num_rows,
            file_size_in_bytes=self._size,
            column_sizes=metrics.column_sizes,
            value_counts=metrics.value_counts,
            null_value_counts=metrics.null_value_counts,
            nan_value_counts=metrics.nan_value_counts,
            lower_bounds=metrics.lower_bounds,
            upper_bounds=metrics.upper_bounds,
            key_metadata=None if self.key is None else self.key.of_length(self._size).serialized(),
            split_offsets=tuple(split_offsets),
        )

    def abort(self) -> None:
        """Closes the file and deletes it; errors of closing an incomplete file are ignored."""
        with suppress(Exception):
            if isinstance(self._stored, OutputStream):
                self._stored.discard()
            else:
                self._stored.close()
        self._io.delete(self.location)
