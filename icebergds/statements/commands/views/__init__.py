"""Statements of views."""

from __future__ import annotations

from icebergds.statements.commands.command import Command

COMMANDS: tuple[Command, ...] = ()
