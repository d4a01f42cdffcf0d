"""Finds the catalog at the beginning of a table's name."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime

from icebergds.catalog.config import configured_catalogs, default_catalog_name, is_configured
from icebergds.catalog.metadata_files import is_metadata_file
from icebergds.errors import InvalidFilterError, InvalidOptionError
from icebergds.expr.names import quote_name, split_name
from icebergds.suggestions import did_you_mean


def how_to_configure(catalog: str) -> str:
    """For errors: how to make a catalog known to a session, for the user that writes its name."""
    key = f"spark.icebergpy.catalog.{catalog}"
    return (
        f'configure it in the registered session: spark.conf.set("{key}.warehouse", "<location>"), '
        f'or for a catalog of a server also spark.conf.set("{key}.uri", "<address>")'
    )


def is_location(path: str) -> bool:
    """Whether a path can only be a location or a metadata file, not a name.

    Names may have colons; in backticks, slashes too.
    """
    plain = _QUOTED.sub("", path)
    return "/" in plain or plain[:5].lower() == "file:" or is_metadata_file(path)


_QUOTED = re.compile(r"`(?:[^`]|``)*`")


def table_name_parts(path: str) -> tuple[str, ...]:
    """The parts of a path that can be a table's name; empty for other paths."""
    if "." not in path or is_location(path):
        return ()
    try:
        return split_name(path)
    except InvalidFilterError:
        return ()


def split_version(name: str) -> tuple[str, dict[str, str]]:
    """Splits `t@v12` or `t@20260131120000000` into the name of the table and the read options.

    A name that ends with a part in backticks has no version.

    Raises:
        InvalidOptionError: the time does not have the form yyyyMMddHHmmssSSS.
    """
    found = _VERSIONED.fullmatch(name)
    if found is None:
        return name, {}
    options = version_options(found["at"])
    if options is None:
        raise InvalidOptionError(
            f"table {name}: the time {found['at']} does not have the form yyyyMMddHHmmssSSS, such "
            "as t@20260131120000000; a version is written t@v12"
        )
    return found["name"], options


_VERSIONED = re.compile(r"(?P<name>.*[^\s`]|.*`)\s*@(?P<at>[vV]?\d+)\s*", re.ASCII | re.DOTALL)


def version_options(at: str) -> dict[str, str] | None:
    """The read options for what follows the `@` after a table's name; None if it is malformed."""
    if at[:1] in ("v", "V"):
        return {"versionAsOf": at[1:]} if at[1:].isdecimal() else None
    if len(at) != 17 or not at.isdecimal():
        return None
    date, time = f"{at[:4]}-{at[4:6]}-{at[6:8]}", f"{at[8:10]}:{at[10:12]}:{at[12:14]}.{at[14:]}"
    try:
        datetime.fromisoformat(f"{date} {time}")
    except ValueError:
        return None
    return {"timestampAsOf": f"{date} {time}"}


def named_catalog(path: str) -> tuple[str | None, str]:
    """The catalog of a table named as in Spark, and its identifier there.

    The default catalog applies to names that begin with no other catalog and are not directories.
    None if there is no catalog: the path is a location.
    """
    parts = table_name_parts(path)
    if len(parts) < 2:
        return None, path
    if is_configured(parts[0]):
        return parts[0], quote_name(parts[1:])
    default = default_catalog_name()
    if is_configured(default) and not os.path.exists(path):
        return default, path
    return None, path


def catalog_among(session: Collection[str], path: str) -> tuple[str | None, str]:
    """The catalog that the path of a load or save begins with, and the identifier in it.

    An existing file or directory of that name takes precedence. None if there is no catalog.
    Otherwise as for `begins_with_catalog`.
    """
    parts = table_name_parts(path)
    if os.path.exists(path) or not begins_with_catalog(session, parts):
        return None, path
    return parts[0], quote_name(parts[1:])


def begins_with_catalog(session: Collection[str], parts: Sequence[str]) -> bool:
    """Whether a table's name begins with a catalog that a session knows.

    For catalogs of the environment and the file, which Spark does not know, only if the name has at
    least three parts: a name of two parts may be a table in a database of Spark's own.

    Args:
        session: the names of the catalogs in its configuration.

    Raises:
        InvalidOptionError: the configuration file cannot be read or is malformed.
    """
    if len(parts) < 2:
        return False
    return parts[0] in session or (len(parts) > 2 and is_configured(parts[0]))


def known_catalogs(name: str) -> str:
    """For errors: the configured catalogs, and how to configure another one.

    Args:
        name: of a table; it begins with none of them.

    Raises:
        InvalidOptionError: as `configured_catalogs` does.
    """
    known, parts = configured_catalogs(), table_name_parts(name)
    near = did_you_mean(name.partition(".")[0], known)
    configure = how_to_configure(parts[0] if len(parts) > 2 else "<name>")
    return f"there are: {', '.join(known) or 'none'}{'; ' + near if near else ''}; {configure}"


def default_hint(catalog: str, identifier: Sequence[str]) -> str:
    """A note that a name begins with no catalog and was looked up in the default; may be empty."""
    with suppress(InvalidOptionError):
        is_default = len(identifier) > 2 and catalog == default_catalog_name()
        if is_default and not is_configured(identifier[0]):
            return (
                f"; no catalog {identifier[0]} is configured (there are: "
                f"{', '.join(configured_catalogs())}), so this is a name in the default catalog"
            )
    return ""


def catalog_hint(path: str) -> str:
    """How to name a catalog's table, for a path as the user gave it; empty for other paths.

    Only parts that are identifiers count: a directory may be called `v1.2`.
    """
    parts = table_name_parts(path)
    if len(parts) < 2 or not all(part.replace("-", "_").isidentifier() for part in parts):
        return ""
    catalog, *rest = parts if len(parts) > 2 else ("<name>", *parts)
    near = ""
    with suppress(InvalidOptionError):
        known = configured_catalogs()
        near = "" if parts[0] in known else did_you_mean(parts[0], known, shown=repr)
    asked = f" (no catalog is called {parts[0]!r}; {near})" if near else ""
    return f"set option('catalog', {catalog!r}) with {quote_name(rest)!r}{asked}"
