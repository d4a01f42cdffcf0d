"""The app of typer with all commands."""

from __future__ import annotations

from typing import Any

import typer

from icebergds.cli.answer import Answer
from icebergds.cli.change import add_change_commands
from icebergds.cli.command import add_common_options, command
from icebergds.cli.diff import add_diff_command
from icebergds.cli.fleet import add_fleet_commands
from icebergds.cli.keep import add_keep_commands
from icebergds.cli.look import add_look_commands
from icebergds.cli.place import Place
from icebergds.cli.rows import add_row_commands
from icebergds.cli.sql import add_sql_command
from icebergds.version import __version__

_HELP = (
    "Apache Iceberg tables without a JVM jar.\n\n"
    "TABLE is a name such as lake.db.events, whose catalog .pyiceberg.yaml or the environment "
    "configures, or a location such as s3://bucket/warehouse/db/events. Exit status: 0 done or "
    "healthy, 1 something is to be done or differs, 2 an error."
)


def new_app() -> typer.Typer:
    """The app."""
    app = typer.Typer(
        name="icebergds",
        help=_HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    add_common_options(app, __version__)
    add_look_commands(app)
    add_row_commands(app)
    add_diff_command(app)
    add_sql_command(app)
    add_change_commands(app)
    add_keep_commands(app)
    add_fleet_commands(app)
    command(app, rich_help_panel="Look")(version)
    return app


def version(at: Place) -> Answer:
    """Shows the version of icebergds."""
    return Answer({"version": __version__}, __version__)


app: Any = new_app()
