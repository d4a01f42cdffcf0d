"""Adds a catalog's prescribed properties to those of new tables and views, like Java Iceberg.

A catalog's `table-default.<name>` becomes a property of each new table unless the property is
given; `table-override.<name>` always does. `view-default.` and `view-override.` do the same for
views.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["new_table_properties", "new_view_properties"]


def new_table_properties(
    catalog_properties: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """The properties of a new table.

    Args:
        catalog_properties: of the catalog.
        given: for the table.
    """
    return _prescribed("table", catalog_properties, given)


def new_view_properties(
    catalog_properties: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """The properties of a new view; arguments are those of `new_table_properties`."""
    return _prescribed("view", catalog_properties, given)


def _prescribed(
    what: str, catalog_properties: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    defaults = _after(f"{what}-default.", catalog_properties)
    return {**defaults, **given, **_after(f"{what}-override.", catalog_properties)}


def _after(prefix: str, properties: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(prefix): value
        for name, value in properties.items()
        if name.startswith(prefix) and value
    }
