"""Modules use what stands below them; what stands above them they do not even name in a text.

The linter of imports sees what is imported. This sees what is imported by a name in a string, or
told of in a message or a docstring.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

import icebergds

_ROOT = Path(icebergds.__file__).parent
_CONTRACT = "Rooms use what stands below them"


def _floors() -> dict[str, int]:
    """The rooms of the package and how high they are, by the contract of the linter of imports."""
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["tool"][
        "importlinter"
    ]
    (layers,) = (c["layers"] for c in settings["contracts"] if c["name"] == _CONTRACT)
    return {
        room.strip().removeprefix("icebergds."): -at
        for at, rooms in enumerate(layers)
        for room in re.split("[|:]", rooms)
    }


_FLOORS = _floors()
# What users import stands outside of the order, and so do the tools of their tests.
_OUTSIDE = {"__init__", "testing", "types"}
_NAMED = re.compile(r"\bicebergds[./](\w+)")


def room_of(path: Path) -> str:
    return path.relative_to(_ROOT).parts[0].removesuffix(".py")


def rooms_named(source: str) -> list[tuple[int, str]]:
    """Rooms that the string literals of a module name, with their lines."""
    texts = [
        (node.lineno, node.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [(line, room) for line, text in texts for room in _NAMED.findall(text)]


def test_every_module_is_in_a_room() -> None:
    rooms = {room_of(path) for path in _ROOT.rglob("*.py")}
    assert rooms - _OUTSIDE == _FLOORS.keys()


@pytest.mark.parametrize("room", _FLOORS)
def test_no_text_names_a_room_above_its_own(room: str) -> None:
    above = [
        f"{path.relative_to(_ROOT)}:{line} names icebergds.{named}"
        for path in sorted(_ROOT.rglob("*.py"))
        if room_of(path) == room
        for line, named in rooms_named(path.read_text())
        if _FLOORS.get(named, _FLOORS[room]) > _FLOORS[room]
    ]
    assert above == []


@pytest.mark.parametrize(
    "source",
    [
        'import_module("icebergds.spark.reader")',
        'f"see icebergds.spark for {x}"',
        "'icebergds/spark/x'",
    ],
)
def test_a_room_is_named_however_it_is_written(source: str) -> None:
    assert rooms_named(source) == [(1, "spark")]
