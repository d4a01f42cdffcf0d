"""Formats values for people: numbers, sizes, times, lists, and tables of text and HTML.

Names come from tables that others wrote, so control characters are escaped, and so is HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

WIDTH = 98
"""The longest line of a text that fits a screen."""

_UNITS = ("KB", "MB", "GB", "TB", "PB", "EB")
_MOST_ROWS = 100
_MOST_CHARACTERS = 500
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def printable(text: str, width: int | None = None) -> str:
    """Text for one line: control characters are escaped, and what is beyond `width` is cut."""
    if width is not None:
        # Not all of a huge text needs to be looked at.
        text = text[: width + 1]
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if width is None or len(text) <= width else f"{text[: width - 1]}…"


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 file`, `1,204 files`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_text(nbytes: int) -> str:
    """A size such as `734 bytes`, `1.2 MB`; 1 MB is a million bytes."""
    if abs(nbytes) < 1000:
        return counted(nbytes, "byte")
    size, units = nbytes / 1000, iter(_UNITS)
    unit = next(units)
    while abs(size) >= 999.95 and (larger := next(units, None)):
        size, unit = size / 1000, larger
    return f"{size:,.1f} {unit}"


def time_text(timestamp_ms: int) -> str:
    """A time in UTC such as `2026-08-30T12:00:01.123Z`, of milliseconds since 1970."""
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms since 1970"
    text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text.removesuffix('.000')}Z"


def joined(texts: Sequence[str], noun: str, width: int, separator: str = ", ") -> str:
    """As many texts as fit `width`, then how many more there are: `a, b, … 180 more columns`."""
    shown: list[str] = []
    used = 0
    for text in texts:
        short = printable(text, width)
        used += len(short) + len(separator)
        # The note about the others needs room too.
        if shown and used > (width if len(shown) + 1 == len(texts) else width - len(noun) - 14):
            break
        shown.append(short)
    if more := len(texts) - len(shown):
        shown.append(f"… {counted(more, f'more {noun}')}")
    return separator.join(shown)


def block(title: str, texts: Sequence[str], noun: str, most: int = 12) -> str:
    """A title and up to `most` texts on lines of their own, then how many more there are."""
    shown = [printable(text, WIDTH - 2) for text in texts[:most]]
    if more := len(texts) - len(shown):
        shown.append(f"… {counted(more, f'more {noun}')}")
    return "\n".join((title, *(f"  {text}" for text in shown)))


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int]) -> str:
    """Rows of text in aligned columns; those at the places `right` are aligned to the right."""
    lines = [tuple(map(printable, row)) for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    to_right = frozenset(right)

    def aligned(line: Sequence[str]) -> str:
        cells = (
            text.rjust(width) if place in to_right else text.ljust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    return "\n".join(map(aligned, lines))


def html_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], noun: str = "row"
) -> str:
    """An HTML table with a title above it; all texts are escaped, and long tables are cut.

    Args:
        header: the names of the columns; none if the first cell of each row names it.
        noun: what a row is.
    """
    # Workers import this module and never show anything.
    from html import escape

    def _html(text: str) -> str:
        return escape(printable(text, _MOST_CHARACTERS))

    head = ""
    if header:
        head = f"<thead><tr>{''.join(f'<th>{_html(text)}</th>' for text in header)}</tr></thead>"
    lines = []
    for row in rows[:_MOST_ROWS]:
        first, *others = row
        tag = "td" if header else "th"
        cells = "".join(f"<td>{_html(text)}</td>" for text in others)
        lines.append(f"<tr><{tag}>{_html(first)}</{tag}>{cells}</tr>")
    body = "".join(lines)
    table = f"<table>{head}<tbody>{body}</tbody></table>"
    more = len(rows) - len(lines)
    note = f"<p>… {counted(more, f'more {noun}')}</p>" if more else ""
    return f"<div><p><b>{_html(title)}</b></p>{table}{note}</div>"
