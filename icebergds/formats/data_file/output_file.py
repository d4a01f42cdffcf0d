"""A file that is being written, and its description once it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa

from icebergds.errors import InvalidDataError, UnsupportedFeatureError
from icebergds.formats.data_file.column_metrics import FileMetrics
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import DataFile, FileContent, FileFormat


class OutputFile:
    """The open file of a data or delete file."""

    def __init__(
        self, io: FileIO, location: str, file_format: FileFormat, content: FileContent
    ) -> None:
        self._io = io
        self._format = file_format
        self._content = content
        self.location = location
        self.handle: pa.NativeFile = io.open_output(location)
        self._size = 0

    @property
    def position(self) -> int:
        """Bytes written so far."""
        return int(self.handle.tell())

    @contextmanager
    def encoding(self) -> Iterator[None]:
        """Names the file in what libraries raise when they cannot encode values.

        Raises:
            InvalidDataError: a value does not fit the file's schema.
            UnsupportedFeatureError: the format's library cannot write a type.
        """
        try:
            yield
        except pa.ArrowNotImplementedError as error:
            raise UnsupportedFeatureError(f"{self.location}: {error}") from error
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError, OverflowError) as error:
            raise InvalidDataError(f"{self.location}: {error}") from error

    def open_again(self) -> pa.NativeFile:
        """Opens the closed file for reading."""
        return self._io.open(self.location)

    def close(self) -> None:
        """Closes the file, which is complete."""
        self._size = self.position
        self.handle.close()

    def describe(
        self, num_rows: int, metrics: FileMetrics, split_offsets: Sequence[int] = ()
    ) -> DataFile:
        """The closed file as one of no partition."""
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
            split_offsets=tuple(split_offsets),
        )

    def abort(self) -> None:
        """Closes the file and deletes it. The error of closing half a file tells nothing."""
        with suppress(Exception):
            self.handle.close()
        self._io.delete(self.location)
