"""CALL of the procedures in the namespace `system` of a catalog."""

from __future__ import annotations

from icebergds.statements.commands.command import Command

COMMANDS: tuple[Command, ...] = ()
