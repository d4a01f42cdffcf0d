"""The code blocks of the documentation, and what the pages take as given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Before a block that is not run: `<!-- not run: why -->`, which no reader sees.
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """Code between fences, the line it begins at, and why it is not run, if so."""

    language: str
    code: str
    line: int
    not_run: str | None


def pages() -> list[str]:
    """The README and the pages that have code, by their paths in the project."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in paths if blocks(path)]


def blocks(path: Path) -> list[Block]:
    """The blocks of a page in their order."""
    text = path.read_text()
    return [
        Block(
            found["language"],
            found["code"],
            text.count("\n", 0, found.start("code")) + 1,
            found["reason"],
        )
        for found in _BLOCK.finditer(text)
    ]


def section(page: str, heading: str) -> list[Block]:
    """The blocks of a page below one of its headings of level 2."""
    text = (ROOT / page).read_text()
    begin = text.index(f"\n## {heading}\n") + 1
    end = text.find("\n## ", begin)
    first = text.count("\n", 0, begin) + 1
    last = text.count("\n", 0, end if end >= 0 else len(text)) + 1
    return [block for block in blocks(ROOT / page) if first < block.line <= last]


def files(section: list[Block]) -> dict[str, str]:
    """The files of a section: the code of blocks that begin with the name of one, as a comment."""
    named = ((_FILE.match(block.code), block.code) for block in section)
    return {name["name"]: code for name, code in named if name}


_FILE = re.compile(r"(?:#|--) (?P<name>[\w/.-]+\.\w+)\n")
_PLACES = re.compile(r"s3://(?:bucket|old)/|/(?:data|backup)/")


def located(code: str, directory: Path) -> str:
    """Code with the buckets and root folders of the pages as folders of `directory`."""
    return _PLACES.sub(lambda place: f"{directory}/{place[0].strip('/').rpartition('/')[2]}/", code)
