"""Errors of Arrow's file readers as errors of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from icebergds.errors import CorruptFileError, UnsupportedFeatureError


@contextmanager
def decoding(location: str, file_format: str) -> Iterator[None]:
    """Names the file in what Arrow raises when it cannot decode it.

    Errors of the storage pass: those of operating systems have a number, others are not Arrow's.
    Lack of memory passes too.

    Raises:
        CorruptFileError: the file is damaged or of another format.
        UnsupportedFeatureError: Arrow knows what the file holds, but not how to read it.
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
        if "encrypted metadata" in str(error):
            raise UnsupportedFeatureError(
                f"{location} is encrypted; encrypted files are not read"
            ) from error
        raise CorruptFileError(
            f"{location} cannot be decoded as {file_format}; it may be damaged: {error}"
        ) from error
