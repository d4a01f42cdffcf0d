"""Every example of the pages on the command line works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command_line import Command

from icebergds import Catalog

_DOCS = Path(__file__).parents[2] / "docs"
_PAGES = [_DOCS / "command-line.md", _DOCS / "fleets.md"]


def _lines() -> list[str]:
    text = "".join(page.read_text() for page in _PAGES)
    blocks = re.findall(r"^```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def _split(line: str) -> tuple[str, str]:
    """The command of a line, and the file that its output goes to."""
    found = re.fullmatch(r"(.*) > ([a-z.]+)", line)
    return (line, "") if found is None else (found[1], found[2])


def test_every_example_works(
    lake: Catalog, icebergds: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("id,name\n7,seven\n")
    settings = re.findall(r"^```toml\n(.*?)^```$", _PAGES[1].read_text(), re.MULTILINE | re.DOTALL)
    for name, text in zip(("prices", "policy"), settings, strict=True):
        (tmp_path / f"{name}.toml").write_text(text)
    lake.load_table("db.events").manage_snapshots().create_tag("v1").commit()
    lake.create_table("db.copy", "id bigint, name string")
    run = set()
    for line in _lines():
        words, file = _split(line.replace("/data/warehouse", str(tmp_path / "lake")))
        command, *arguments = shlex.split(words)
        if command != "icebergds" or arguments[0] == "sql":
            continue
        ran = icebergds(*arguments)
        assert ran.status in (0, 1), (line, ran.err)
        assert ran.out or "--out" in arguments, line
        if file:
            (tmp_path / file).write_text(ran.out)
        run.add(arguments[0])
    assert len(run) > 25


def test_every_command_is_on_the_page(icebergds: Command) -> None:
    shown = icebergds("--help").out
    commands = set(re.findall(r"^│ ([a-z][a-z-]*) ", shown, re.MULTILINE))
    assert "describe" in commands
    text = "".join(page.read_text() for page in _PAGES)
    missing = {name for name in commands if name not in text}
    assert missing == {"version", "uuid", "location"} - set(text.split())
