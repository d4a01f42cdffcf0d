"""Commands over all tables of a catalog."""

from __future__ import annotations

import typer

from icebergds.cli.command import command
from icebergds.cli.fleet_maintain import maintain


def add_fleet_commands(app: typer.Typer) -> None:
    """Adds the commands to the app."""
    fleet = typer.Typer(help="Looks after all tables of a catalog.", no_args_is_help=True)
    command(fleet)(maintain)
    app.add_typer(fleet, name="fleet", rich_help_panel="Keep")
