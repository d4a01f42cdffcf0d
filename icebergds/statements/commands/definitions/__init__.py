"""Runs statements that create, change and drop tables."""

from __future__ import annotations

from icebergds.statements.commands.command import Command
from icebergds.statements.commands.definitions.create import create_table, replace_table
from icebergds.statements.commands.definitions.tables import (
    alter_table,
    comment_on_column,
    comment_on_table,
    drop_table,
)

COMMANDS = (
    Command(("CREATE", "TABLE"), create_table),
    Command(("CREATE", "EXTERNAL", "TABLE"), create_table),
    Command(("CREATE", "OR", "REPLACE", "TABLE"), replace_table),
    Command(("REPLACE", "TABLE"), replace_table),
    Command(("ALTER", "TABLE"), alter_table),
    Command(("DROP", "TABLE"), drop_table),
    Command(("COMMENT", "ON", "TABLE"), comment_on_table),
    Command(("COMMENT", "ON", "COLUMN"), comment_on_column),
)
