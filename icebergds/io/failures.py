"""Translates the errors of storages to StorageError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from icebergds.errors import IcebergError, StorageError

Kinds: TypeAlias = type[Exception] | tuple[type[Exception], ...]


@contextmanager
def storage_failures(operation: str, location: str, kinds: Kinds = OSError) -> Iterator[None]:
    """Translates errors of a storage in the block; errors of this package pass.

    Around another such block for the same location it says more closely what failed.

    Args:
        operation: what the block does, such as `writing a manifest`.
        location: the file or directory.
        kinds: the errors that are translated. Clients of remote storages raise any.

    Raises:
        StorageError: the block raised such an error, which is the cause.
    """
    try:
        yield
    except StorageError as error:
        if error.location == location:
            error.operation = operation
        raise
    except IcebergError:
        raise
    except kinds as error:
        raise storage_error(operation, location, error) from error


def storage_error(operation: str, location: str, error: Exception) -> StorageError:
    """The error of an operation that failed by an error of the storage."""
    reason = str(error).strip()
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        # Without file names, which may be temporary, and without what Arrow says before.
        told = error.strerror.rpartition(f". Detail: [errno {error.errno}] ")[2]
        reason = f"[Errno {error.errno}] {told}"
    elif not isinstance(error, OSError) or not reason:
        reason = f"{type(error).__name__}: {reason}".removesuffix(": ")
    return StorageError(
        reason,
        operation=operation,
        location=location,
        errno=error.errno if isinstance(error, OSError) else None,
    )


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """An open file of fsspec, for `pyarrow.PythonFile`, whose errors are translated.

    Arrow passes errors of this package on as they are, but takes others for damage of the file.
    """

    file: Any
    operation: str
    location: str

    @property
    def closed(self) -> bool:
        return bool(self.file.closed)

    def read(self, size: int = -1) -> bytes:
        with self._failures():
            return bytes(self.file.read(size))

    def write(self, data: bytes) -> Any:
        with self._failures():
            return self.file.write(data)

    def seek(self, offset: int, whence: int = 0) -> Any:
        with self._failures():
            return self.file.seek(offset, whence)

    def tell(self) -> int:
        return int(self.file.tell())

    def flush(self) -> None:
        with self._failures():
            self.file.flush()

    def close(self) -> None:
        with self._failures():
            self.file.close()

    def _failures(self) -> AbstractContextManager[None]:
        return storage_failures(self.operation, self.location, Exception)
