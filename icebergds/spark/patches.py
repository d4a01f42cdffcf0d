"""Patches attributes of PySpark's classes for registered sessions (`PATCHES`).

Each replacement checks whether the session that it is called for is registered, and otherwise calls
Spark's own. The patches are applied when the first session is registered, and undone when the last
one is unregistered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import pyspark

from icebergds.spark import native_failures, registration, session_verbs, stream_verbs, verbs
from icebergds.spark.frames import readers
from icebergds.spark.session import is_connect
from icebergds.spark.writers import merge_writer, save_writer, table_writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Patch:
    """An attribute of PySpark that is replaced.

    Attributes:
        owner: the class or module that has it, by its name in `OWNERS`.
        replacement: makes our attribute from Spark's own.
        why: what it does for registered sessions, as the documentation says it.
        is_added: whether versions of Spark that lack the attribute get it, too.
    """

    owner: str
    attribute: str
    replacement: Callable[[Any], Any]
    why: str
    is_added: bool = False


_CONNECT = "pyspark.sql.connect."
OWNERS = {
    "SparkSession": ("pyspark.sql.session:SparkSession", f"{_CONNECT}session:SparkSession"),
    "RuntimeConfig": ("pyspark.sql.conf:RuntimeConfig", f"{_CONNECT}conf:RuntimeConf"),
    "Catalog": ("pyspark.sql.catalog:Catalog", f"{_CONNECT}catalog:Catalog"),
    "DataFrame": ("pyspark.sql.classic.dataframe:DataFrame", f"{_CONNECT}dataframe:DataFrame"),
    **{
        name: (f"pyspark.sql.{module}:{name}", f"{_CONNECT}{module}:{name}")
        for name, module in {
            "DataFrameReader": "readwriter",
            "DataFrameWriter": "readwriter",
            "DataFrameWriterV2": "readwriter",
            "DataStreamReader": "streaming.readwriter",
            "DataStreamWriter": "streaming.readwriter",
        }.items()
    },
    # Spark Connect makes its errors elsewhere.
    "errors": ("pyspark.errors.exceptions.captured",),
}
"""Where the owners are in classic PySpark and in Spark Connect."""

_SQL = "with `sql=True`: knows tables of our catalogs"
_TABLES = "takes names of tables of our catalogs"
_FORMAT = "notes that `icebergpy` was chosen"
_UNKNOWN = "says in its error how a missing catalog is configured"
_CATALOGS = "catalogs that are set later are known at once"
_REFUSED = "refuses `icebergpy` for tables of Spark's own catalog"
_SORTED = "shuffles and sorts rows as the tables ask for"
_SOURCE = "gives the session the data source"
_CHANGES = "takes names of tables of our catalogs; Spark before 4.2 has no such method"
_PARTITIONED = "partitions the table that a stream creates"

PATCHES = (
    Patch("SparkSession", "sql", session_verbs.sql, _SQL),
    Patch("SparkSession", "table", session_verbs.table, _SQL),
    Patch("SparkSession", "catalog", session_verbs.catalog, _SQL),
    Patch(
        "SparkSession",
        "newSession",
        session_verbs.new_session,
        "registers the new session, with the same catalogs",
    ),
    Patch("RuntimeConfig", "set", registration.following, _CATALOGS),
    Patch("RuntimeConfig", "unset", registration.following, _CATALOGS),
    Patch("Catalog", "createTable", session_verbs.create_table, _REFUSED),
    Patch("DataFrame", "writeTo", table_writer.write_to, _TABLES),
    Patch("DataFrame", "mergeInto", merge_writer.merge_into, _TABLES),
    Patch("DataFrameReader", "format", verbs.noting_format, _FORMAT),
    Patch("DataFrameReader", "load", readers.load, "gives DataFrames that leave out files"),
    Patch("DataFrameReader", "table", readers.table, _TABLES),
    Patch("DataFrameReader", "changes", verbs.changes, _CHANGES, is_added=True),
    Patch("DataFrameWriter", "format", verbs.noting_format, _FORMAT),
    Patch("DataFrameWriter", "save", save_writer.save, _SORTED),
    Patch("DataFrameWriter", "saveAsTable", save_writer.save_as_table, _TABLES),
    Patch("DataFrameWriter", "insertInto", save_writer.insert_into, _TABLES),
    Patch("DataFrameWriterV2", "using", table_writer.using, _SORTED),
    Patch("DataFrameWriterV2", "append", table_writer.explaining, _UNKNOWN),
    Patch("DataFrameWriterV2", "create", table_writer.explaining, _UNKNOWN),
    Patch("DataFrameWriterV2", "createOrReplace", table_writer.explaining, _UNKNOWN),
    Patch("DataFrameWriterV2", "overwrite", table_writer.explaining, _UNKNOWN),
    Patch("DataFrameWriterV2", "overwritePartitions", table_writer.explaining, _UNKNOWN),
    Patch("DataFrameWriterV2", "replace", table_writer.explaining, _UNKNOWN),
    Patch("DataStreamReader", "format", stream_verbs.format, _SOURCE),
    Patch("DataStreamReader", "table", stream_verbs.table, _TABLES),
    Patch("DataStreamReader", "changes", verbs.changes, _CHANGES, is_added=True),
    Patch("DataStreamWriter", "format", stream_verbs.format, _SOURCE),
    Patch("DataStreamWriter", "partitionBy", stream_verbs.partition_by, _PARTITIONED),
    Patch("DataStreamWriter", "start", stream_verbs.start, _PARTITIONED),
    Patch("DataStreamWriter", "toTable", stream_verbs.to_table, _TABLES),
    Patch(
        "errors",
        "convert_exception",
        native_failures.converting,
        "says how files can be read that Spark cannot read",
    ),
)


@dataclass(frozen=True, slots=True)
class _Applied:
    own: Any
    ours: Any
    is_added: bool


_applied: dict[tuple[Any, str], _Applied] = {}


def apply_patches(spark: SparkSession) -> None:
    """Replaces the attributes for sessions of this kind, unless they are replaced already."""
    of_kind = slice(1, 2) if is_connect(spark) else slice(1)
    for patch in PATCHES:
        for place in OWNERS[patch.owner][of_kind]:
            owner = resolve_name(place)
            key = owner, patch.attribute
            # Not every version of Spark has every attribute.
            is_missing = patch.attribute not in vars(owner)
            if key not in _applied and (patch.is_added or not is_missing):
                own = _missing(patch.attribute) if is_missing else vars(owner)[patch.attribute]
                _applied[key] = applied = _Applied(own, patch.replacement(own), is_missing)
                setattr(owner, patch.attribute, applied.ours)


def _missing(attribute: str) -> Callable[..., Any]:
    """What a method that this version of Spark lacks does for what is not ours."""

    def missing(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {attribute!r} in Spark "
            f"{pyspark.__version__}; icebergds has it for names of tables of its catalogs, in "
            "registered sessions"
        )

    missing.__name__ = attribute
    return missing


def undo_patches() -> None:
    """Restores Spark's own attributes, except those that other code has replaced since."""
    for (owner, attribute), applied in list(_applied.items()):
        # Code that wraps ours keeps calling it; it then finds no registered session.
        if vars(owner)[attribute] is applied.ours:
            if applied.is_added:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, applied.own)
            del _applied[owner, attribute]


def own(thing: Any, attribute: str) -> Any:
    """An attribute as it would be without patches."""
    for kind in type(thing).__mro__:
        if (applied := _applied.get((kind, attribute))) is not None:
            return applied.own.__get__(thing, type(thing))
    return getattr(thing, attribute)
