"""The command `icebergds`: runs it, with the errors of its use as they were asked for."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import Any

from icebergds.cli.termination import STATUS, heed_termination, is_terminated


def main() -> None:
    """Runs the command with the arguments of the process."""
    _open_closed_streams()
    try:
        heed_termination()
        status = _status()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        status = _INTERRUPTED
    # What Python does as it ends has no answer to an interrupt but a trace.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise SystemExit(STATUS if status == _INTERRUPTED and is_terminated() else status)


_INTERRUPTED = 130


def _status() -> int:
    """Runs the command, and returns the status to exit with."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        print("error: this needs typer and rich: pip install 'icebergds[cli]'", file=sys.stderr)
        return 2
    from icebergds.cli.app import app

    status = 0
    try:
        try:
            # Help and versions are printed by typer, whose commands end by SystemExit.
            app(prog_name="icebergds", standalone_mode=False)
            sys.stdout.flush()
        except SystemExit as ended:
            if not isinstance(ended.__context__, OSError):
                return ended.code if isinstance(ended.code, int) else 0
            # That is how typer and rich say it.
            raise ended.__context__ from None
        except Exception as error:
            # The errors of wrong usage.
            if type(error).__name__ == "Abort":
                raise KeyboardInterrupt from None
            if not hasattr(error, "format_message"):
                raise
            status = 2
            _tell(error)
            sys.stdout.flush()
    except OSError as error:
        from icebergds.cli.answer import OutputError, print_error
        from icebergds.cli.command import end_output

        end_output()
        # Whoever reads a pipe may have seen enough.
        if not isinstance(error, BrokenPipeError):
            print_error(f"error: {OutputError(error)}")
            status = 2
    return status


def _open_closed_streams() -> None:
    """Opens the standard streams that are closed, whose numbers other files would get.

    Texts that the encoding of a stream lacks are escaped.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, "w" if number else "r"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


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
