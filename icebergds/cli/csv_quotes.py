"""Checks the quotes of CSV, as Arrow reads a quote that is left open as a part of the value."""

from __future__ import annotations

import re

import numpy as np

from icebergds.errors import InvalidDataError

_BOM = b"\xef\xbb\xbf"


def check_quotes(text: bytes, delimiter: bytes) -> None:
    """Checks that quotes enclose whole values: else rows would be joined, or values changed.

    Args:
        text: CSV, whose values may have line breaks within quotes, and quotes if they are doubled.
        delimiter: one byte.

    Raises:
        InvalidDataError: a quote is not closed, or more of the value follows it.
    """
    begin = len(_BOM) if text.startswith(_BOM) else 0
    if not _are_alternating(text, delimiter, begin):
        _check_values(text, delimiter, begin)


def _are_alternating(text: bytes, delimiter: bytes, begin: int) -> bool:
    """Whether each quote opens a value, closes one or is doubled: all at once, for most files."""
    codes = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(codes == ord('"'))
    if not len(quotes):
        return True
    if len(quotes) % 2:
        return False
    opening, closing = quotes[::2], quotes[1::2]
    ends = np.isin(codes, np.frombuffer(delimiter + b"\r\n", np.uint8))
    is_doubled = closing[:-1] + 1 == opening[1:]
    opens = (opening == begin) | ends[opening - 1]
    opens[1:] |= is_doubled
    closes = closing == len(codes) - 1
    closes[:-1] |= is_doubled
    closes |= ends[np.minimum(closing + 1, len(codes) - 1)]
    return bool(opens.all() and closes.all())


def _check_values(text: bytes, delimiter: bytes, begin: int) -> None:
    """Looks at each value: a quote within one that none encloses is a letter."""
    end = re.escape(delimiter)
    value = re.compile(
        rb'(?:"(?:[^"]|"")*+"(?=[%(end)s\r\n]|\Z)|(?!")[^%(end)s\r\n]*+)(?:[%(end)s\r\n]|\Z)'
        % {b"end": end}
    )
    at = begin
    while at < len(text):
        found = value.match(text, at)
        if found is None:
            line = text.count(b"\n", 0, at) + 1
            raise InvalidDataError(
                f"line {line}: a value begins with a quote that is not closed at its end; enclose "
                "the whole value in quotes, and double those within it"
            )
        at = found.end()
