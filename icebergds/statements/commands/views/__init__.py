"""Runs statements on views."""

from __future__ import annotations

from icebergds.statements.commands.command import Command
from icebergds.statements.commands.views.alter import alter_view, drop_view
from icebergds.statements.commands.views.create import create_temporary_view, create_view

_TEMPORARY = tuple(
    Command(("CREATE", *replaces, *is_global, word, "VIEW"), create_temporary_view)
    for replaces in ((), ("OR", "REPLACE"))
    for is_global in ((), ("GLOBAL",))
    for word in ("TEMPORARY", "TEMP")
)

COMMANDS: tuple[Command, ...] = (
    *_TEMPORARY,
    Command(("CREATE", "VIEW"), create_view),
    Command(("CREATE", "OR", "REPLACE", "VIEW"), create_view),
    Command(("ALTER", "VIEW"), alter_view),
    Command(("DROP", "VIEW"), drop_view),
)
