"""Words advice as a command to copy into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from icebergds.operations.maintenance.health.advice import Advice

_COMMANDS = {
    "convert_equality_deletes": "convert-deletes",
    "expire_snapshots": "expire",
    "rewrite_data_files": "compact",
    "rewrite_manifests": "rewrite-manifests",
}
_OPTIONS = ("branch", "older_than", "retain_last")


def command_of(table: str, advice: Advice) -> str:
    """The command that does what is advised; `maintain` if no command does only that."""
    command, given = _COMMANDS.get(advice.action), advice.arguments
    if command is None or given.keys() - set(_OPTIONS):
        return maintain_command(table, given.get("branch"))
    return _worded(command, table, given)


def maintain_command(table: str, branch: str | None) -> str:
    """The command that does all that is advised; None for the main branch."""
    return _worded("maintain", table, {} if branch is None else {"branch": branch})


def _worded(command: str, table: str, options: Mapping[str, Any]) -> str:
    words = [
        f"icebergds {command}",
        *(f"--{name.replace('_', '-')}={_quoted(str(value))}" for name, value in options.items()),
        "--apply",
        # So that the name is no option.
        *(["--"] if table.startswith("-") else []),
        _quoted(table),
    ]
    return " ".join(words)


def _quoted(text: str) -> str:
    if text.isprintable():
        return shlex.quote(text)
    # As text of a terminal, control characters would do what they say.
    escaped = "".join(_escaped(character) for character in text)
    return f"$'{escaped}'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
