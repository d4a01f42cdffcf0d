"""Statements that change rows: INSERT, DELETE, UPDATE, MERGE, TRUNCATE."""

from __future__ import annotations

from icebergds.statements.commands.command import Command
from icebergds.statements.commands.rows.insert import insert

COMMANDS = (Command(("INSERT",), insert),)
