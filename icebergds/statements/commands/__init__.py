"""Runs statements other than queries, grouped by kind."""

from __future__ import annotations

from icebergds.statements.commands import definitions, descriptions, procedures, rows, views

COMMANDS = (
    *rows.COMMANDS,
    *views.COMMANDS,
    *definitions.COMMANDS,
    *procedures.COMMANDS,
    *descriptions.COMMANDS,
)
"""The kinds of statements; the first one whose words a statement begins with runs it."""
