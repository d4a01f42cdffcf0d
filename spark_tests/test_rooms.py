"""Modules use what stands below them; what stands above them they do not even name in a text.

The linter of imports sees what is imported. This sees what is imported by a name in a string, or
told of in a message or a docstring.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
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
_OUTSIDE = {"__init__", "otel", "testing", "types"}
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


def imports_of(tree: ast.Module) -> Iterator[tuple[str, str, bool]]:
    """What a module imports: modules, names of them, and whether it does so when it is imported."""
    found: list[tuple[ast.AST, bool]] = [(tree, True)]
    for node, runs in found:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "", runs) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name, runs) for alias in node.names)
        elif isinstance(node, ast.FunctionDef) or _is_for_types(node):
            runs = False
        if not isinstance(node, ast.expr):
            found += ((child, runs) for child in ast.iter_child_nodes(node))


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def import_graphs() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Which modules each module imports when it is imported, and which at all."""
    paths = {
        ".".join(("icebergds", *path.relative_to(_ROOT).with_suffix("").parts)): path
        for path in _ROOT.rglob("*.py")
    }
    modules = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    at_once: dict[str, set[str]] = {name: set() for name in modules}
    at_all: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        for module, member, runs in imports_of(ast.parse(path.read_text())):
            imported = f"{module}.{member}" if f"{module}.{member}" in modules else module
            if imported in modules and imported != name:
                at_all[name].add(imported)
                at_once[name] |= {imported} if runs else set()
    return at_once, at_all


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """The modules of a circle of imports; none if there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    at_once, at_all = import_graphs()
    assert circle_in(at_once) == []
    assert circle_in(at_all) == []


def test_imports_are_found_wherever_they_are() -> None:
    source = "import a\nif TYPE_CHECKING:\n    from b import B\ndef f():\n    from c import d"
    found = list(imports_of(ast.parse(source)))
    assert found == [("a", "", True), ("b", "B", False), ("c", "d", False)]
