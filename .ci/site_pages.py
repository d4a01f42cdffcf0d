"""Adds to the site what `docs` does not have: the README, the API reference, and linked files.

Pages link to files of the repository as its host shows them, such as `../examples/cdc.py`. In the
site, such a link leads to a page with the file's text; with the name of a function after `#`, to a
page with the functions of the file that are linked to.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parents[1]
_HOME = "README.md"
_DOCS = "docs/"
_LINK = re.compile(r"(?<=\]\()(?P<path>[^()#:\s]+)(?:#(?P<anchor>[^()\s]+))?(?=\))")


def on_config(config: MkDocsConfig) -> None:
    """Lists the pages of the API reference in the navigation, before its last part."""
    pages = [{title: _reference_path(title)} for title in config.extra["reference"]]
    config.nav.insert(-1, {"API reference": pages})


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Adds pages. The README becomes the home page, and the one of `docs` another."""
    files.remove(files.src_uris["README.md"])
    at = config.docs_dir, config.site_dir, config.use_directory_urls
    files.append(File("README.md", *at, dest_uri="pages/index.html"))
    files.append(File.generated(config, "index.md", content=(_ROOT / _HOME).read_text()))
    for title, names in config.extra["reference"].items():
        text = "\n\n".join([f"# {title}", *(f"::: icebergds.{name}" for name in names)])
        files.append(File.generated(config, _reference_path(title), content=text))
    for path, functions in _linked_files().items():
        page = _source_page(path, functions)
        hidden = InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, f"source/{path}.md", content=page, inclusion=hidden))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Makes links to files of the repository links to pages of the site."""
    source = {"index.md": _HOME}.get(page.file.src_uri, _DOCS + page.file.src_uri)
    if not (_ROOT / source).is_file():
        return markdown

    def in_site(link: re.Match[str]) -> str:
        target = _target(source, link["path"])
        if not (_ROOT / target).is_file():
            return link[0]
        # Headings of the site have ids in lower case.
        anchor = f"#{link['anchor'].lower()}" if link["anchor"] else ""
        return f"{_site_path(target)}{anchor}"

    return _LINK.sub(in_site, markdown)


def _reference_path(title: str) -> str:
    return f"reference/{re.sub('[^a-z]+', '-', title.lower())}.md"


def _target(source: str, link: str) -> str:
    """The path in the repository that a link of a page leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def _site_path(path: str) -> str:
    if path == _HOME:
        return "index.md"
    return path.removeprefix(_DOCS) if path.startswith(_DOCS) else f"source/{path}.md"


def _linked_files() -> dict[str, set[str]]:
    """The files outside of `docs` that pages link to, and functions in them."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for page in (_ROOT / _HOME, *(_ROOT / _DOCS).glob("*.md")):
        source = page.relative_to(_ROOT).as_posix()
        for link in _LINK.finditer(page.read_text()):
            target = _target(source, link["path"])
            if _site_path(target).startswith("source/") and (_ROOT / target).is_file():
                found[target] |= {link["anchor"]} - {None}
    return found


def _source_page(path: str, functions: Iterable[str]) -> str:
    text = (_ROOT / path).read_text()
    parts = ["---\nsearch:\n  exclude: true\n---", f"# {path}"]
    language = Path(path).suffix[1:]
    if not functions:
        return "\n\n".join([*parts, f"````{language}\n{text}````"])
    for name, code in _functions(text):
        if name in functions:
            parts += [f"## {name}", f"````{language}\n{code}\n````"]
    return "\n\n".join(parts)


def _functions(text: str) -> Iterator[tuple[str, str]]:
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            begin = min(part.lineno for part in (node, *node.decorator_list))
            yield node.name, "\n".join(lines[begin - 1 : node.end_lineno])
