"""Statements that show what there is, and those of namespaces."""

from __future__ import annotations

from icebergds.statements.commands.command import Command

COMMANDS: tuple[Command, ...] = ()
