"""Takes decimals apart: the words and the bytes of their unscaled values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_BYTES = 16
_Int64s = npt.NDArray[np.int64]


def decimal_words(array: pa.Array) -> tuple[npt.NDArray[np.uint64], _Int64s]:
    """The lower and upper halves of unscaled values."""
    words = np.frombuffer(array.buffers()[1] or b"", np.uint64).reshape(-1, 2)
    used = words[array.offset : array.offset + len(array)]
    return used[:, 0].copy(), used[:, 1].copy().view(np.int64)


def unscaled_slices(array: pa.Array) -> tuple[npt.NDArray[np.uint8], _Int64s, _Int64s]:
    """The fewest big-endian bytes that hold each unscaled value, as slices of a buffer.

    Returns:
        The buffer, and where each slice ends, and how long it is.
    """
    low, high = decimal_words(array)
    sign = high >> 63
    magnitudes = _big_endian(low ^ sign.view(np.uint64), high ^ sign)
    first = np.argmax(magnitudes != 0, axis=1)
    top = np.take_along_axis(magnitudes, first[:, None], axis=1)[:, 0]
    # One more bit is needed for the sign, and one byte for zero.
    lengths = np.where(top == 0, 1, _BYTES - first + (top >= 0x80))
    ends = np.arange(1, len(array) + 1, dtype=np.int64) * _BYTES
    return _big_endian(low, high).reshape(-1), ends, lengths


def _big_endian(low: npt.NDArray[np.uint64], high: _Int64s) -> npt.NDArray[np.uint8]:
    """16 bytes a value, the highest first."""
    words = np.empty((len(low), 2), ">u8")
    words[:, 0], words[:, 1] = high.view(np.uint64), low
    return words.view(np.uint8)
