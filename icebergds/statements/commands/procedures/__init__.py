"""Runs CALL for the procedures in a catalog's namespace `system`."""

from __future__ import annotations

from icebergds.statements.commands.command import Command
from icebergds.statements.commands.procedures.call import call, describe_procedure, show_procedures

COMMANDS: tuple[Command, ...] = (
    Command(("CALL",), call),
    Command(("SHOW", "PROCEDURES"), show_procedures),
    Command(("DESCRIBE", "PROCEDURE"), describe_procedure),
    Command(("DESC", "PROCEDURE"), describe_procedure),
)
