"""Formats values for people: numbers, sizes, times, lists, and tables of text and HTML.

Names come from tables that others wrote, so control characters are escaped, and so is HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

WIDTH = 98
"""The longest line of a text that fits a screen."""

MOST_ROWS = 100
"""How many rows a table in HTML shows."""

_UNITS = ("KB", "MB", "GB", "TB", "PB", "EB")
_MOST_CHARACTERS = 500
_MOST_LINES = 50
# Longer lines wrap, such as paths; dates and short texts do not.
_WRAPPED = 60
# Jupyter aligns all cells to the right and to the middle.
_LEFT = "text-align: left; vertical-align: top; white-space: "
_RIGHT = "text-align: right; vertical-align: top"
_NUMBER = r"(?a:(-?[\d,]+(\.\d+)?( (bytes?|[KMGTPE]B))?)?)"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def printable(text: str, width: int | None = None) -> str:
    """Text for one line: control characters are escaped, and what is beyond `width` is cut."""
    if width is not None:
        # Not all of a huge text needs to be looked at.
        text = text[: width + 1]
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if width is None or len(text) <= width else f"{text[: width - 1]}…"


def printable_lines(text: str) -> str:
    """Text of several lines: control characters other than line breaks and tabs are escaped."""
    if text.isprintable():
        return text
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 file`, `1,204 files`, `2 properties`."""
    if number == 1:
        return f"{number:,} {noun}"
    ends_in_y = noun.endswith("y") and noun[-2:-1] not in "aeiou"
    return f"{number:,} {noun[:-1]}ies" if ends_in_y else f"{number:,} {noun}s"


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
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    noun: str = "row",
    *,
    count: int | None = None,
) -> str:
    """An HTML table with a title above it; all texts are escaped, and long tables are cut.

    Lines of a text stay lines. Columns of numbers are aligned to the right, others to the left.

    Args:
        header: the names of the columns; none if the first cell of each row names it.
        noun: what a row is.
        count: how many rows there are in all, if `rows` are only the first `MOST_ROWS`.
    """
    # Workers import this module and never show anything.
    from html import escape

    def lines_of(text: str) -> list[str]:
        lines = text.splitlines()
        shown = [escape(printable(line, _MOST_CHARACTERS)) for line in lines[:_MOST_LINES]]
        if more := len(lines) - len(shown):
            shown.append(f"… {counted(more, 'more line')}")
        return shown

    def cell(tag: str, text: str, place: int) -> str:
        lines = lines_of(text)
        wraps = "pre-wrap" if any(len(line) > _WRAPPED for line in lines) else "pre"
        style = _RIGHT if place in numbers else f"{_LEFT}{wraps}"
        return f'<{tag} style="{style}">{"<br>".join(lines)}</{tag}>'

    shown = rows[:MOST_ROWS]
    columns = list(zip(*shown, strict=True)) if header else []
    numbers = frozenset(
        place
        for place, texts in enumerate(columns)
        if any(texts) and all(re.fullmatch(_NUMBER, text) for text in texts)
    )
    head = ""
    if header:
        names = "".join(cell("th", name, place) for place, name in enumerate(header))
        head = f"<thead><tr>{names}</tr></thead>"
    body = "".join(
        f"<tr>{cell('td' if header else 'th', row[0], 0)}"
        f"{''.join(cell('td', text, place) for place, text in enumerate(row[1:], start=1))}</tr>"
        for row in shown
    )
    table = f"<table>{head}<tbody>{body}</tbody></table>"
    more = (len(rows) if count is None else count) - len(shown)
    note = f"<p>… {counted(more, f'more {noun}')}</p>" if more else ""
    named = escape(printable(title, _MOST_CHARACTERS))
    return f"<div><p><b>{named}</b></p>{table}{note}</div>"


def html_result(title: str, result: object) -> str:
    """A dataclass as HTML, with a row for each of its fields."""
    from dataclasses import fields, is_dataclass

    assert is_dataclass(result)
    rows = [
        (each.name.removesuffix("_count").replace("_", " "), _value_text(each.name, result))
        for each in fields(result)
        if each.repr
    ]
    return html_table(title, (), rows, "field")


def _value_text(name: str, result: object) -> str:
    value = getattr(result, name)
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return "\n".join(map(str, value))
    if not isinstance(value, int) or isinstance(value, bool) or name.endswith("_id"):
        return str(value)
    return size_text(value) if "bytes" in name else f"{value:,}"
