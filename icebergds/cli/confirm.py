"""Tells what a command is about to change, and asks whether to do it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from icebergds.cli.answer import print_error
from icebergds.display import printable
from icebergds.errors import InvalidOptionError

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


class DeclinedError(Exception):
    """The user does not want the change."""


def confirm(what: str, yes: bool) -> None:
    """Says what is about to be changed; without `yes`, asks in a terminal.

    Args:
        what: what is done, as an imperative: `drop table db.events`.

    Raises:
        InvalidOptionError: nobody can be asked.
        DeclinedError: the answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidOptionError(
            f"{what}: nothing was changed, as nobody can be asked here; give --yes to do it"
        )
    print_error(f"about to: {printable(what)}")
    print("Do it? [y/N]: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise DeclinedError
