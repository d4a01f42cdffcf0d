"""What the command prints, word by word: in terminals of three widths, and as JSON.

`ICEBERGDS_WRITE_GOLDEN=1` writes the files anew; the difference is to be read before it is kept.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest
from command_line import Command, run

from icebergds import Catalog

_GOLDEN = Path(__file__).parent / "golden"
_TABLES = [
    ["list", "db"],
    ["schema", "db.wide"],
    ["spec", "db.events"],
    ["properties", "db.wide"],
    ["files", "db.events", "--columns", "content,file_format,partition,record_count"],
    ["partitions", "db.events", "--columns", "partition,spec_id,record_count,file_count"],
    ["scan", "db.wide"],
    ["scan", "db.wide", "--columns", "id,note", "--limit", "1"],
    ["describe", "db.events"],
    ["explain", "db.events", "--where", "id = 3"],
    ["diff", "db.events@v1", "@main", "--by", "id"],
    ["diff", "db.wide", "db.events"],
    ["health", "db.events"],
    ["verify", "db.events"],
    ["stats", "db.events"],
    ["set", "db.events", "a=1", "--yes"],
]
_DOCUMENTS = [
    ["list", "db"],
    ["describe", "db.events"],
    ["spec", "db.events"],
    ["refs", "db.events"],
    ["snapshots", "db.events"],
    ["scan", "db.wide"],
    ["explain", "db.events", "--where", "id = 3"],
    ["diff", "db.events@v1", "@main", "--by", "id"],
    ["verify", "db.events"],
    ["stats", "db.events"],
    ["tag", "db.events", "v2", "--yes"],
    ["count", "db.event"],
]
# Runs commands one after the other, in a terminal that has the width.
_PROGRAM = """
import json, sys
from icebergds.cli.app import app
for words in json.load(open(sys.argv[1])):
    print("$ icebergds", *words, flush=True)
    try:
        app(words)
    except SystemExit:
        print(flush=True)
"""


@pytest.fixture
def tables(lake: Catalog, tmp_path: Path) -> Catalog:
    """Besides `db.events` with a tag of its first snapshot, a table of many columns."""
    events = lake.load_table("db.events")
    first = events.snapshots()[0].snapshot_id
    events.manage_snapshots().create_tag("v1", first).commit()
    columns = (
        "id bigint NOT NULL COMMENT 'the key', name string COMMENT 'as the customer wrote it, in "
        "any language', amount decimal(10, 2), at timestamp, place struct<lat: double, lon: "
        "double>, labels array<string>, counts map<string, int>, note string"
    )
    lake.create_table("db.wide", columns, properties={"comment": "All kinds of columns"})
    rows = [
        {
            "id": 1,
            "name": "Zoë",
            "amount": "12.50",
            "at": "1999-12-31T12:00:00+00:00",
            "place": {"lat": 59.9, "lon": 10.75},
            "labels": ["new", None],
            "counts": {"a": 1},
            "note": "a longer text, which does not fit into the cell of a table that is not wide",
        },
        {"id": 2, "name": "tab\there"},
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    assert run("append", "db.wide", tmp_path / "rows.json", "--yes").status == 0
    return lake


def _compare(name: str, text: str) -> None:
    file = _GOLDEN / f"{name}.txt"
    if os.environ.get("ICEBERGDS_WRITE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()


def _settled(text: str, lake: Catalog) -> str:
    """The text without what differs from run to run and with the version of a library."""
    text = text.replace(str(lake.properties["warehouse"]), "LAKE")
    text = re.sub(r"\b\d{15,19}\b", "ID", text)
    text = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID", text)
    text = re.sub(r"\b20\d\d-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    text = re.sub(r"\b[\d.,]+ (bytes|[KM]B)\b", "SIZE", text)
    return re.sub(r"\b\d+\.\d s\b", "SECONDS", text)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_tables_are_shown_in_a_terminal_as_they_were(
    tables: Catalog, tmp_path: Path, width: int
) -> None:
    (tmp_path / "words.json").write_text(json.dumps(_TABLES))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    environment |= {"NO_COLOR": "1", "TERM": "xterm"}
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path / "words.json")]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        try:
            while more := terminal.read(10_000):
                shown += more
        except OSError:
            # The terminal is closed.
            pass
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[\d;]*m", "", shown.decode().replace("\r\n", "\n"))
    lines = text.splitlines()
    # Tables fit; texts of lines of their own, such as those of `explain`, are wrapped by terminals.
    for words in ("schema db.wide", "scan db.wide", "files db.events"):
        begin = next(at for at, line in enumerate(lines) if line.startswith(f"$ icebergds {words}"))
        end = lines.index("", begin)
        assert max(len(line.rstrip()) for line in lines[begin + 1 : end]) <= width
    trimmed = "\n".join(line.rstrip() for line in text.splitlines())
    _compare(f"width-{width}", _settled(trimmed, tables) + "\n")


def test_json_is_as_it_was(tables: Catalog, icebergds: Command) -> None:
    found = []
    for words in _DOCUMENTS:
        document = json.dumps(_without_sizes(icebergds(*words, "--json").json), indent=1)
        found.append(f"$ icebergds {' '.join(words)} --json\n{document}\n")
    _compare("json", _settled("\n".join(found), tables))


def _without_sizes(value: Any, key: str = "") -> Any:
    """The value without sizes, times and versions, which are numbers or texts of these keys."""
    match value:
        case dict():
            return {name: _without_sizes(each, name) for name, each in value.items()}
        case list():
            return [_without_sizes(each, key) for each in value]
        case int() | str() if any(mark in key for mark in _VOLATILE):
            return "..."
    return value


_VOLATILE = ("size", "bytes", "_ms", "-ms", "seconds", "-version", "length")
