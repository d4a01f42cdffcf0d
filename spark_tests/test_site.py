"""The pages of the documentation: their links and navigation, and their site in a browser."""

from __future__ import annotations

import ast
import re
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from browser import CHROMIUM, Browser, browser

import icebergds

_ROOT = Path(__file__).parents[1]
_DOCS = _ROOT / "docs"
_SITE = _ROOT / "site"
_PAGES = [_ROOT / "README.md", *sorted(_DOCS.glob("*.md"))]
_SETTINGS: dict[str, Any] = yaml.load((_ROOT / "mkdocs.yml").read_text(), yaml.BaseLoader)
_LINK = re.compile(r"\]\(([^()#\s]*)(?:#([^()\s]+))?\)")
_ITEM = re.compile(r"^(?P<indentation> *)(?:[-*]|\d+\.) .*", re.MULTILINE)
_COMPARED = re.compile(r"^\| [^|]+ \| (?P<ours>[^|]+) \|", re.MULTILINE)
_PROOF = re.compile(r"\[[^]]+\]\(\.\./spark_tests/[\w/]+/test_\w+\.py#\w+\)")


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    broken = []
    for path, anchor in _LINK.findall(_without_code(page.read_text())):
        target = (page.parent / path).resolve() if path else page
        if path.startswith("https://"):
            continue
        if not target.is_file() or (anchor and anchor not in _anchors(target)):
            broken.append(f"{path}#{anchor}")
    assert broken == []


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_lists_are_lists_on_the_site_too(page: Path) -> None:
    # Its Markdown begins a list after an empty line alone, and a list in it four spaces further.
    paragraphs = re.split(r"\n\s*\n", _without_code(page.read_text()))
    swallowed = [text for text in paragraphs if _ITEM.search(text) and not _ITEM.match(text)]
    items = _ITEM.finditer("\n".join(paragraphs))
    assert swallowed == []
    assert [item[0] for item in items if len(item["indentation"]) % 4] == []


def test_the_navigation_names_every_page_once() -> None:
    named = Counter(_leaves(_SETTINGS["nav"]))
    assert named == Counter(["index.md", *(path.name for path in _DOCS.glob("*.md"))])


def test_the_reference_has_every_public_name_once() -> None:
    # Others are of modules that users name, such as `metrics.ScanReport`.
    named = [name for name in _leaves(_SETTINGS["extra"]["reference"]) if "." not in name]
    assert Counter(named) == Counter(icebergds.__all__)


def test_what_icebergds_has_is_shown_by_a_test() -> None:
    claims = [row["ours"] for row in _COMPARED.finditer((_DOCS / "comparison.md").read_text())]
    assert len(claims) > 50
    unproven = {claim for claim in claims if not _PROOF.search(claim)}
    assert unproven == {"no"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the site is served."""
    if not (_SITE / "index.html").is_file():
        pytest.skip("the site has not been built: make docs")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=_SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def reader(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("page", ["", "maintenance/", "comparison/", "reference/tables/"])
def test_a_page_is_readable(
    page: str, width: int, dark: bool, address: str, reader: Browser
) -> None:
    reader.looks(width, dark=dark)
    reader.open(address + page)
    assert reader.run("document.documentElement.scrollWidth") <= width
    text, back = reader.run(_COLOURS)
    assert (_luminance(back, back) < 0.1) == dark
    lighter, darker = sorted((_luminance(text, back), _luminance(back, back)), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) > 7
    assert (
        reader.run("parseFloat(getComputedStyle(document.querySelector('article p')).fontSize)")
        > 13
    )
    assert reader.complaints == []
    assert [asked for asked in reader.requests if not asked.startswith((address, "data:"))] == []


@pytest.mark.parametrize(
    ("searched", "found"),
    [
        ("rewrite_data_files", "maintenance/#rewrite_data_files"),
        ("Table.rewrite_data_files", "reference/tables/#icebergds.Table.rewrite_data_files"),
    ],
)
def test_search_finds_a_name(searched: str, found: str, address: str, reader: Browser) -> None:
    reader.looks(1280)
    reader.open(address)
    reader.run("document.querySelector('[data-md-toggle=search]').click()")
    reader.run(f"""(() => {{
        const input = document.querySelector('[data-md-component=search-query]');
        input.focus();
        input.value = '{searched}';
        input.dispatchEvent(new KeyboardEvent('keyup', {{bubbles: true}}));
    }})()""")
    reader.wait("document.querySelector('.md-search-result__link')")
    links = reader.run(
        "[...document.querySelectorAll('.md-search-result__link')].map(link => link.href)"
    )
    assert any(
        link.split("?")[0] + "#" + link.partition("#")[2] == address + found for link in links
    )
    assert reader.complaints == []


# Those of text and of what is behind it, as numbers.
_COLOURS = """(() => {
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
    const colour = name => numbers(getComputedStyle(document.querySelector(name)).color);
    return [colour('article p'), numbers(getComputedStyle(document.body).backgroundColor)];
})()"""


def _luminance(colour: list[float], back: list[float]) -> float:
    """The relative luminance of a colour, which may be transparent, on another (WCAG 2)."""
    alpha = colour[3] if len(colour) > 3 else 1
    parts = [(alpha * c + (1 - alpha) * b) / 255 for c, b in zip(colour, back[:3], strict=False)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _without_code(text: str) -> str:
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)


def _anchors(path: Path) -> set[str]:
    """What a link can name after `#`: headings of a page, functions and classes of a module."""
    if path.suffix == ".py":
        nodes = ast.parse(path.read_text()).body
        return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    headings = re.findall(r"^#+ (.+)$", _without_code(path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def _leaves(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    else:
        for branch in tree.values() if isinstance(tree, dict) else tree:
            yield from _leaves(branch)
