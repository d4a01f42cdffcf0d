"""Runs statements that change rows: INSERT, DELETE, UPDATE, MERGE, TRUNCATE."""

from __future__ import annotations

from icebergds.statements.commands.command import Command
from icebergds.statements.commands.rows.common_tables import (
    begins_with_insert,
    changes_rows,
    insert_from,
    with_common_tables,
)
from icebergds.statements.commands.rows.insert import insert
from icebergds.statements.commands.rows.merge import merge
from icebergds.statements.commands.rows.update_delete import delete, truncate, update

COMMANDS = (
    Command(("INSERT",), insert),
    Command(("DELETE",), delete),
    Command(("UPDATE",), update),
    Command(("MERGE",), merge),
    Command(("TRUNCATE",), truncate),
    Command(("FROM",), insert_from, begins_with_insert),
    Command(("WITH",), with_common_tables, changes_rows),
)
