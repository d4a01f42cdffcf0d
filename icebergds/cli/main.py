"""The command `icebergds`: runs it, with the errors of its use as they were asked for."""

from __future__ import annotations

import sys
from typing import Any


def main() -> None:
    """Runs the command with the arguments of the process."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        print("error: this needs typer and rich: pip install 'icebergds[cli]'", file=sys.stderr)
        raise SystemExit(2) from None
    from icebergds.cli.app import app

    try:
        status = app(prog_name="icebergds", standalone_mode=False)
    except Exception as error:
        # The errors of wrong usage.
        if not hasattr(error, "format_message"):
            raise
        _tell(error)
        raise SystemExit(2) from None
    raise SystemExit(status)


def _tell(error: Any) -> None:
    from icebergds.cli.answer import print_error, print_json

    kind = type(error).__name__
    context = getattr(error, "ctx", None)
    command = "icebergds" if context is None else context.command_path
    text = " ".join(error.format_message().split()).removesuffix(".")
    if kind == "NoArgsIsHelpError":
        text = "Missing command"
    if "--json" in sys.argv:
        print_json({"error": {"type": kind, "message": text}})
    elif kind == "NoArgsIsHelpError":
        error.show()
    else:
        see = " See" if text.endswith("?") else "; see"
        print_error(f"error: {text}{see} {command} --help")
