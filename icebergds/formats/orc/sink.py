"""Passes what the ORC library writes to a file, and keeps the file's errors from the library.

The library closes its file in a destructor, where an error of the file would end the process.
"""

from __future__ import annotations

import pyarrow as pa


class OrcSink:
    """A Python file for `pyarrow.PythonFile` whose writes never raise.

    Args:
        handle: the file to write to; it is not closed.
    """

    closed = False

    def __init__(self, handle: pa.NativeFile) -> None:
        self._handle = handle
        self._size = 0
        self._error: Exception | None = None

    def write(self, data: bytes) -> int:
        """Writes to the file, unless a write has failed."""
        if self._error is None:
            try:
                self._handle.write(data)
            except Exception as error:
                self._error = error
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def check(self) -> None:
        """Raises the error of the first write that failed."""
        if self._error is not None:
            raise self._error
