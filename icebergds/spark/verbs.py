"""Shares what readers and writers of registered sessions have in common."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

from icebergds.catalog.config import catalogs_of_active_session
from icebergds.catalog.naming import (
    begins_with_catalog,
    catalog_among,
    known_catalogs,
    named_catalog,
    table_name_parts,
)
from icebergds.errors import InvalidFilterError, NoSuchTableError
from icebergds.expr.names import split_name
from icebergds.spark.registered import need_source, registered
from icebergds.spark.session import acting_in

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

FORMAT = "icebergpy"

READER = "spark.icebergpy.reader"
"""The setting that makes the readers of a registered session ours."""

WRITER = "spark.icebergpy.writer"
"""The setting that makes the writers of a registered session ours."""

_IS_FORMAT = "_icebergds_is_format"
# Scala's separator between key and value of a pair.
_ARROW = " -> "


def is_format(source: object) -> bool:
    """Whether a format that a user names is `icebergpy`."""
    return isinstance(source, str) and source.lower() == FORMAT


def noting_format(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`format` of readers and writers; notes on them whether it is this format."""

    @wraps(of_spark)
    def format(self: Any, source: str) -> Any:
        setattr(self, _IS_FORMAT, is_format(source))
        return of_spark(self, source)

    return format


def changes(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`changes` of readers, of batches and of streams."""

    @wraps(of_spark)
    def changes(self: Any, tableName: str) -> Any:  # noqa: N803 - the name in PySpark
        session = session_of_verb(self)
        name = our_name(session, tableName)
        if name is None:
            return of_spark(self, tableName)
        with acting_in(session):
            named = named_table({}, name)
        reader = self.format(FORMAT).option("changes", "true").option("catalog", named["catalog"])
        return reader.load(named["path"])

    return changes


def our_name(session: SparkSession, table: object, *, may_be_temporary: bool = True) -> str | None:
    """The whole name of a table of our catalogs, as the session means it; None for others.

    In a session that was registered with `sql=True`, `USE` names what a name leaves out.

    Args:
        may_be_temporary: look for temporary views first. Spark does so unless it creates a table.
    """
    known = registered(session)
    if known is None or not isinstance(table, str):
        return None
    if known.statements is not None:
        return known.statements.whole_name(session, table, may_be_temporary=may_be_temporary)
    return table if names_our_table(session, table) else None


def has_format(verb: Any) -> bool:
    """Whether this format was chosen for a reader or writer."""
    return getattr(verb, _IS_FORMAT, False)


def is_ours_by_name(verb: Any, setting: str, table: str, *, may_be_temporary: bool = True) -> bool:
    """Whether we handle a reader or writer of a table by name: by its format, or else by the name.

    One that names no format gets ours if the name is that of a table of our catalogs. Otherwise as
    for `our_name`.
    """
    if hasattr(verb, _IS_FORMAT):
        return is_ours(verb, setting)
    session = session_of_verb(verb)
    if not is_on(session, setting):
        return False
    if our_name(session, table, may_be_temporary=may_be_temporary) is None:
        return False
    verb.format(FORMAT)
    return True


def is_ours(verb: Any, setting: str) -> bool:
    """Whether we handle a reader or writer, by its format and a setting of its session.

    If Spark handles the format instead, its session gets the data source.
    """
    if not has_format(verb):
        return False
    spark = session_of_verb(verb)
    if is_on(spark, setting):
        return True
    need_source(spark)
    return False


def is_on(spark: SparkSession, setting: str) -> bool:
    """Whether a session is registered and a setting of it is true."""
    return registered(spark) is not None and spark.conf.get(setting, "false") == "true"


def session_of_verb(verb: Any) -> SparkSession:
    """The session of a reader or writer, of streams too."""
    kinds = ("_client", "_session", "_spark")
    session: SparkSession = next(getattr(verb, name) for name in kinds if hasattr(verb, name))
    return session


def named_table(
    given: Mapping[str, str],
    name: str,
    spark: SparkSession | None = None,
    *,
    may_be_temporary: bool = True,
) -> dict[str, str]:
    """The options of a table named as in Spark, beginning with a catalog.

    Args:
        given: the options so far; if they have `catalog`, `name` is the name in that catalog.
        spark: the session whose `USE` names what the name leaves out.
        may_be_temporary: as for `our_name`.

    Raises:
        NoSuchTableError: the name does not begin with a known catalog.
    """
    if any(option.lower() == "catalog" for option in given):
        return {**given, "path": name}
    if spark is not None:
        name = our_name(spark, name, may_be_temporary=may_be_temporary) or name
    catalog, identifier = named_catalog(name)
    if catalog is None:
        raise NoSuchTableError(
            f"table {name}: its name begins with no configured catalog ({known_catalogs(name)}). "
            "Set option('catalog', '<name>') and the catalog's properties, or give the table's "
            "location to load or save"
        )
    return {**given, "catalog": catalog, "path": identifier}


def with_name(given: Mapping[str, str], path: str) -> dict[str, str]:
    """The options of a path, which may be a name that begins with one of our catalogs.

    A file or directory of that name, and the option `catalog`, take precedence.
    """
    if any(option.lower() == "catalog" for option in given):
        return {**given, "path": path}
    catalog, identifier = catalog_among(catalogs_of_active_session(), path)
    named = {"path": identifier}
    return {**given, **named} if catalog is None else {**given, "catalog": catalog, **named}


def names_our_table(session: SparkSession, table: str) -> bool:
    """Whether a name begins with a catalog that is configured for us, and not for Spark.

    Raises:
        InvalidOptionError: the configuration file cannot be read or is malformed.
    """
    parts = table_name_parts(table)
    if not parts or session.conf.get(f"spark.sql.catalog.{parts[0]}", None) is not None:
        return False
    with acting_in(session):
        return begins_with_catalog(catalogs_of_active_session(), parts)


# Spark's errors for a name without a known catalog: its own has no multi-part namespaces.
_NESTED = (
    "REQUIRES_SINGLE_PART_NAMESPACE",
    "NESTED_DATABASE_UNSUPPORTED_BY_V1_SESSION_CATALOG",
)


def unknown_catalog(error: PySparkException) -> str | None:
    """The catalog that Spark did not find in a name; None for other errors."""
    if error.getCondition() not in _NESTED:
        return None
    parameters = error.getMessageParameters() or {}
    try:
        return split_name(parameters.get("identifier") or parameters.get("namespace") or "")[0]
    except InvalidFilterError:
        return None


def options_of(extra_options: Any) -> dict[str, str]:
    """The options that a classic reader or writer holds, with names as they were given."""
    # As one text, because each JVM call takes long; the separator occurs in no option.
    separator = f"\n{uuid.uuid4()}\n"
    text: str = extra_options.originalMap().mkString(separator)
    options = (option.partition(_ARROW) for option in text.split(separator) if text)
    return {name: value for name, _, value in options}
