"""Defines what a command answers (`Answer`), and prints it as text or JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum, IntEnum
from math import isfinite
from typing import Any

from icebergds.display import printable, printable_lines, text_table


class Exit(IntEnum):
    """The exit status of the command."""

    DONE = 0
    FOUND = 1
    """There is something to do, or what was compared differs."""
    FAILED = 2
    INTERRUPTED = 130


_LEAST = 12
"""How wide a cell is at least for its text to be read, if that is longer."""


class OutputError(Exception):
    """The output, or the file in its place, cannot be written."""

    def __init__(self, error: OSError, place: str = "the output") -> None:
        super().__init__(f"{place} cannot be written: {error.strerror or error}")


class BegunError(Exception):
    """Rows were printed already when this error ended them; no JSON document can follow them."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of text with a header.

    Attributes:
        right: the places of the columns that are aligned to the right, such as numbers.
        note: a line below the rows.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int] = frozenset()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found or did.

    Attributes:
        data: for programs: what JSON can hold, with keys that stay.
        shown: for people.
        status: what the process exits with.
    """

    data: Any
    shown: str | Grid | Sequence[str | Grid] = ()
    status: Exit = Exit.DONE


def plain(value: Any) -> Any:
    """What JSON can hold of a result: objects with their fields, enumerations as their values."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    match value:
        case None | bool() | int() | str():
            return value.value if isinstance(value, Enum) else value
        case float():
            return value if isfinite(value) else str(value)
        case Mapping():
            return {str(key): plain(each) for key, each in value.items()}
        case bytes():
            return value.hex()
        case Sequence() | Set():
            return [plain(each) for each in value]
    return str(value)


def print_answer(answer: Answer, *, as_json: bool) -> None:
    """Prints an answer to the standard output."""
    if as_json:
        print_json(answer.data)
        return
    parts = [answer.shown] if isinstance(answer.shown, str | Grid) else answer.shown
    for at, part in enumerate(parts):
        if at:
            print()
        if isinstance(part, Grid):
            _print_grid(part)
        else:
            print(printable_lines(part))


def print_json(data: Any) -> None:
    """Prints a JSON document, on one line unless a person looks at it."""
    indent = 2 if sys.stdout.isatty() else None
    text = json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        # Names of files need not be Unicode, and terminals need not have all of it.
        text = json.dumps(data, indent=indent, allow_nan=False)
    print(text)


def print_error(message: str) -> None:
    """Prints an error or question on the standard error, in red in a terminal."""
    head, found, rest = printable_lines(message).partition(": ")
    if found and has_colours(sys.stderr.isatty()):
        head = f"\x1b[1;31m{head}\x1b[0m"
    print(f"{head}{found}{rest}", file=sys.stderr)


def has_colours(is_terminal: bool) -> bool:
    """Whether to print colours: in terminals, unless the user does not want them."""
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _print_grid(grid: Grid) -> None:
    if not grid.rows:
        print(grid.note or "none")
        return
    if sys.stdout.isatty():
        _print_in_terminal(grid)
    else:
        # Whole: what is cut here cannot be searched for.
        print(text_table(grid.header, grid.rows, grid.right))
    if grid.note:
        print(grid.note)


def _print_in_terminal(grid: Grid) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, no_color=not has_colours(True))
    lines = [[printable(cell) for cell in row] for row in (grid.header, *grid.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    is_narrow = sum(min(width, _LEAST) + 2 for width in widths) - 2 > console.width
    names, *rows = ([Text(cell) for cell in line] for line in lines)

    def table(**more: Any) -> Table:
        return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), **more)

    if not is_narrow:
        shown = table(header_style="bold")
        for at, name in enumerate(names):
            shown.add_column(name, justify="right" if at in grid.right else "left", overflow="fold")
        for row in rows:
            shown.add_row(*row)
        console.print(shown)
        return
    # Cells of a few letters cannot be read: each row is shown as a block of lines.
    for number, row in enumerate(rows, start=1):
        console.print(Text(f"-[ {number} ]-", style="bold"))
        shown = table(show_header=False)
        shown.add_column(style="bold", overflow="fold")
        shown.add_column(overflow="fold")
        for name, cell in zip(names, row, strict=True):
            if name or cell:
                shown.add_row(name, cell)
        console.print(shown)
