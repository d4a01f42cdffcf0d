"""Translates errors of Arrow's file readers to icebergds errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from icebergds.errors import CorruptFileError, UnsupportedFeatureError


@contextmanager
def decoding(location: str, file_format: str) -> Iterator[None]:
    """Translates Arrow's decoding errors to errors that name the file.

    Storage errors pass through: those of the operating system have an errno, others are not
    Arrow's. So does lack of memory.

    Raises:
        CorruptFileError: the file is damaged or of another format.
        UnsupportedFeatureError: the file uses a feature Arrow does not support.
    """
    try:
        yield
    except (pa.ArrowMemoryError, pa.ArrowCancelled):
        raise
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedFeatureError(f"{location}: {error}") from error
    except (pa.ArrowException, UnicodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise CorruptFileError(
            f"{location} cannot be decoded as {file_format}; it may be damaged: {error}"
        ) from error
