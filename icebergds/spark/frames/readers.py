"""Implements the readers of registered sessions: `spark.read.format("icebergpy")`.

Their DataFrames prune files by their own conditions. Options and schemas that were set before the
format count, too.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icebergds.catalog.metadata_files import is_metadata_file
from icebergds.catalog.naming import split_version
from icebergds.errors import IcebergError, InvalidOptionError
from icebergds.operations.metadata_tables.load import open_metadata_table
from icebergds.operations.metadata_tables.plan import plan_metadata_table
from icebergds.operations.read.options import METADATA_TABLE
from icebergds.spark.errors import prepare_thread
from icebergds.spark.frames.pruning import pruning_frame
from icebergds.spark.frames.table_load import MetadataLoad, open_load
from icebergds.spark.jvm import Private, with_private
from icebergds.spark.metadata_tables import LOCAL, metadata_table_frame
from icebergds.spark.planned_load import PLANNED_SCAN
from icebergds.spark.registered import Statements, need_source, registered
from icebergds.spark.session import acting_in, in_zone_of, is_connect
from icebergds.spark.types import spark_schema
from icebergds.spark.verbs import (
    READER,
    has_format,
    is_ours,
    is_ours_by_name,
    named_table,
    options_of,
    session_of_verb,
    with_name,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_LOG = logging.getLogger(__name__)


def load(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`DataFrameReader.load` of a location, a metadata file, or an identifier in `catalog`.

    The replacement raises IcebergError if an option is malformed or does not fit the table, or it
    cannot be loaded.
    """

    def by_spark(reader: Any, path: Any) -> DataFrame:
        need_source(session_of_verb(reader))
        found: DataFrame = of_spark(reader, path)
        return found

    @wraps(of_spark)
    def load(
        self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
    ) -> Any:
        if format is not None:
            self.format(format)
        if not is_ours(self, READER):
            return of_spark(self, path, None, schema, **options)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        asked = _asked(self)
        if asked is None or _is_left_to_spark({**asked[0], **_named_path(path)}):
            return by_spark(self, path)
        try:
            return _loaded(self, path, *asked, lambda: by_spark(self, path))
        except IcebergError as error:
            found = _loaded_by_server(self, path, error, by_spark)
            if found is None:
                raise
            return found

    return load


def table(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`DataFrameReader.table` of a name in the option `catalog`, or after a catalog's name.

    Without a format, names of tables of our catalogs are ours.

    The replacement raises NoSuchTableError if the name does not begin with a known catalog, and
    InvalidOptionError if it ends with a version (`t@v12`) and an option gives one, too.
    """

    @wraps(of_spark)
    def table(self: Any, tableName: str) -> Any:  # noqa: N803 - the name in PySpark
        plain, version = split_version(tableName)
        names_format = has_format(self)
        if not is_ours_by_name(self, READER, plain):
            return of_spark(self, tableName)
        spark = session_of_verb(self)
        asked = _asked(self)
        options, schema = asked or ({}, None)
        statements = _statements_of(spark)
        is_named_alone = asked is not None and not options and schema is None
        if statements is not None and is_named_alone and not names_format:
            # It knows views, too.
            return statements.table(spark, tableName)
        with acting_in(spark):
            given = named_table(options, plain, spark)
        if twice := {name.lower() for name in given} & {name.lower() for name in version}:
            raise InvalidOptionError(
                f"table {tableName}: option {twice.pop()!r} and the end of the name both say which "
                "version is read; give one"
            )
        given |= version
        if asked is None:
            # The reader itself holds the other options.
            return self.options(**given).load()
        return _loaded(self, given["path"], given, schema)

    return table


def _statements_of(spark: SparkSession) -> Statements | None:
    known = registered(spark)
    return None if known is None else known.statements


def _is_left_to_spark(given: Mapping[str, str]) -> bool:
    """Whether a load is planned already, or will be in the process that Spark pushes filters to."""
    options = {name.lower(): value.lower() for name, value in given.items()}
    if PLANNED_SCAN in options or options.get("pushdown") == "true":
        return True
    # `metadata_table_frame` loads one state of a table through the data source.
    return METADATA_TABLE in options and is_metadata_file(options.get("path", ""))


def _loaded(
    reader: Any,
    path: Any,
    given: Mapping[str, str],
    schema: StructType | None,
    by_source: Callable[[], DataFrame] | None = None,
) -> DataFrame:
    spark = session_of_verb(reader)
    named = _named_path(path)
    options = {name: value for name, value in given.items() if not named or name.lower() != "path"}
    with acting_in(spark):
        if "path" in named:
            named = with_name({**options, **named}, named["path"])
        # Spark is asked for its time zone once.
        named = in_zone_of(spark, {**options, **named})
        metadata_table = _load_metadata_table(spark, named, schema)
        if metadata_table is not None:
            return metadata_table
        load = open_load(spark, named, schema)
    return pruning_frame(spark, load, by_source)


def _loaded_by_server(
    reader: Any, path: Any, error: IcebergError, load: Callable[[Any, Any], DataFrame]
) -> DataFrame | None:
    """Loads with the data source, if only the Spark Connect server reaches the table."""
    from pyspark.errors import PySparkException

    if not is_connect(session_of_verb(reader)):
        return None
    try:
        df = load(reader, path)
        # This makes Spark analyze it now.
        columns = len(df.schema.fields)
    except PySparkException:
        return None
    _LOG.info("the server loads %s (%d columns); this process does not: %s", path, columns, error)
    return df


def _named_path(path: Any) -> dict[str, str]:
    match path:
        case None:
            return {}
        case str():
            return {"path": path}
        case [str() as only]:
            return {"path": only}
        case _:
            return {"paths": json.dumps(list(path))}


def _asked(reader: Any) -> tuple[dict[str, str], StructType | None] | None:
    """The options and the schema of a reader; None if they cannot be read from it."""
    return with_private(
        Private.READERS, lambda: (_given(reader), _user_schema(reader)), lambda: None
    )


def _given(reader: Any) -> dict[str, str]:
    """The options of a reader."""
    if hasattr(reader, "_client"):
        return {name: value for name, value in reader._options.items() if value is not None}
    return options_of(reader._jreader.extraOptions())


def _user_schema(reader: Any) -> StructType | None:
    from pyspark.sql.types import StructType

    if hasattr(reader, "_client"):
        text = reader._schema
        if not text:
            return None
        return StructType.fromJson(json.loads(text)) if text.startswith("{") else _ddl(text)
    found = reader._jreader.userSpecifiedSchema()
    return StructType.fromJson(json.loads(found.get().json())) if found.isDefined() else None


def _ddl(text: str) -> StructType:
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(text)
    if not isinstance(schema, StructType):
        raise InvalidOptionError(f"schema {text!r} of the load is not one of columns")
    return schema


def _load_metadata_table(
    spark: SparkSession, options: Mapping[str, str], schema: StructType | None
) -> DataFrame | None:
    """The metadata table that the options of a load name; None if they name a table.

    Args:
        schema: the columns that the user asks for; None for those of the options.

    Errors are those of `open_metadata_table` and `metadata_table_frame`.
    """
    load = open_metadata_table(in_zone_of(spark, options))
    if load is None:
        return None

    def by_source() -> DataFrame:
        return metadata_table_frame(spark, load.state, load.kind, load.given, schema)

    if schema is not None or load.kind in LOCAL or is_connect(spark):
        return by_source()
    from icebergds.spark.frames.classic_frame import classic_frame

    plan = plan_metadata_table(load.kind, load.state, load.options)
    prepare_thread(spark)
    return classic_frame(
        spark, MetadataLoad(plan, load.options, spark_schema(plan.columns)), by_source
    )
