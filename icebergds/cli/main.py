"""The command `icebergds`: puts its commands together."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command with the arguments of the process."""
    try:
        import typer  # noqa: F401
    except ImportError:
        print(
            "error: the command needs typer and rich: pip install 'icebergds[cli]'", file=sys.stderr
        )
        raise SystemExit(2) from None
    from icebergds.cli.app import app

    app()
