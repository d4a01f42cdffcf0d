"""The command `icebergds`: runs it, with the errors of its use as they were asked for."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command with the arguments of the process."""
    try:
        import typer  # noqa: F401
    except ImportError:
        print("error: this needs typer and rich: pip install 'icebergds[cli]'", file=sys.stderr)
        raise SystemExit(2) from None
    from icebergds.cli.app import app

    if "--json" not in sys.argv:
        app()
        return
    try:
        status = app(standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        from icebergds.cli.answer import print_json

        print_json({"error": {"type": type(error).__name__, "message": error.format_message()}})
        raise SystemExit(2) from None
    raise SystemExit(status)
