"""Completes names of catalogs, namespaces and tables in shells."""

from __future__ import annotations

import re
from collections.abc import Iterator

import typer

from icebergds.cli.command import place_in
from icebergds.cli.place import Place, is_location

# Others would have to be quoted, differently in each shell.
_PLAIN = re.compile(r"[\w-]+")


def complete_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names that begin with what is typed; none if that is a location, or cannot be looked up."""
    if is_location(incomplete):
        return []
    try:
        return _names(place_in(ctx), incomplete)
    except Exception:
        # A shell has no place for errors.
        return []


def _names(at: Place, text: str) -> list[str]:
    names = {n: t for n, t in _inside(at, text.rpartition(".")[0]) if n.startswith(text)}
    # A shell ends a word with a space if it is the only one, so it goes on within a namespace.
    while len(names) == 1 and not any(names.values()):
        inner = dict(_inside(at, *names))
        if not inner:
            break
        names = inner
    return sorted(names)


def _inside(at: Place, parent: str) -> Iterator[tuple[str, bool]]:
    """What a catalog or namespace has, and whether it is a table.

    Args:
        parent: if empty, all catalogs and what the default one has.
    """
    from icebergds.catalog.config import configured_catalogs, default_catalog_name, is_configured

    if parent:
        catalog, namespace = at.namespace_of(parent)
    else:
        if not at.names_catalog:
            yield from ((name, False) for name in configured_catalogs() if _PLAIN.fullmatch(name))
            if not is_configured(default_catalog_name()):
                return
        catalog, namespace = at.load_catalog(), ""
    found = [(name, False) for name in catalog.list_namespaces(namespace or ())]
    if namespace:
        found += [(name, True) for name in catalog.list_tables(namespace)]
    for (*_, last), is_table in found:
        if _PLAIN.fullmatch(last):
            yield f"{parent}.{last}" if parent else last, is_table
