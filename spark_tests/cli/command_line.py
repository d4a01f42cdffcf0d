"""Runs the command `icebergds` in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from icebergds.cli.app import app


@dataclass(frozen=True)
class Ran:
    """What the command printed, and its exit status."""

    status: int
    out: str
    err: str
    out_bytes: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Ran]


def run(*arguments: object, input: str | None = None) -> Ran:
    """Runs the command with these arguments; nobody can be asked."""
    ran = CliRunner().invoke(app, [str(each) for each in arguments], input=input)
    # The runner keeps what the command did not expect.
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return Ran(ran.exit_code, ran.stdout, ran.stderr, ran.stdout_bytes)
