"""The help of each command is whole, at 80 columns, too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from icebergds.cli.app import app


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*path, name))


_COMMANDS = dict(_commands(typer.main.get_command(app)))
_GROUPS = {path for path, command in _COMMANDS.items() if hasattr(command, "commands")}


def _packed(text: str) -> str:
    """The text without spaces and the lines of boxes, so that it does not matter where it wraps."""
    return re.sub(r"[\s│]", "", text)


@pytest.mark.parametrize("path", _COMMANDS, ids=" ".join)
def test_help_is_whole_at_80_columns(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(app, [*path, "--help"]).stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    command = _COMMANDS[path]
    for text in (command.help.split("\n\n")[0], *_told(command)):
        assert _packed(text) in _packed(shown)
    if path in _GROUPS:
        for name, inner in command.commands.items():
            assert inner.hidden or f"│ {name} " in shown
            assert inner.hidden or _packed(inner.help) in _packed(shown)


def _told(command: Any) -> Iterator[str]:
    """The names and texts of the arguments and options."""
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        assert parameter.help, (command.name, parameter.name)
        yield parameter.help
        yield from (name for name in parameter.opts if name.startswith("-"))


@pytest.mark.parametrize("path", _COMMANDS, ids=" ".join)
def test_each_text_is_a_sentence(path: tuple[str, ...]) -> None:
    command = _COMMANDS[path]
    for text in (command.help, *(each.help for each in command.params)):
        assert text.endswith("."), text
        assert "  " not in text


def test_names_of_arguments_are_in_capitals() -> None:
    for command in _COMMANDS.values():
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                assert parameter.metavar == parameter.metavar.upper(), command.name
