"""Translates errors of Arrow's file readers to icebergds errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from icebergds.errors import CorruptFileError, IcebergError, StorageError, UnsupportedFeatureError


@contextmanager
def decoding(location: str, file_format: str) -> Iterator[None]:
    """Translates Arrow's decoding errors to errors that name the file.

    Storage errors pass through: those of the operating system have an errno, others are
    StorageErrors or not Arrow's. So does lack of memory.

    Raises:
        CorruptFileError: the file is damaged or of another format.
        StorageError: the ORC library could not read the file, whose error it passes on as text.
        UnsupportedFeatureError: the file uses a feature Arrow does not support.
    """
    try:
        yield
    except (IcebergError, pa.ArrowMemoryError, pa.ArrowCancelled):
        raise
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedFeatureError(f"{location}: {error}") from error
    except (pa.ArrowException, UnicodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if isinstance(error, OSError) and str(error).startswith(_STORAGE_UNDER_ORC):
            raise StorageError(
                _reason(error, location), operation="reading", location=location
            ) from error
        raise CorruptFileError(
            f"{location} cannot be decoded as {file_format}; it may be damaged: {error}"
        ) from error


# How the ORC library passes on errors of the file that it reads.
_STORAGE_UNDER_ORC = "Arrow error: IOError: "
# What Arrow adds to errors of Python files: their traceback.
_TRACEBACK = ". Detail: Python exception"


def _reason(error: OSError, location: str) -> str:
    reason = str(error).removeprefix(_STORAGE_UNDER_ORC).partition(_TRACEBACK)[0]
    return reason.removeprefix(f"reading {location} failed: ")
