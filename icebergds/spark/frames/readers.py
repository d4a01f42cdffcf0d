"""Gives registered sessions a reader of ours: `spark.read.format("icebergpy")`.

Spark's readers choose the class of themselves where they are asked for a format, at one place for
classic Spark and at one for Spark Connect. Readers of other formats and other sessions stay as they
are, and so do options and schemas that were set before the format.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

from icebergds.catalog.metadata_files import is_metadata_file
from icebergds.errors import IcebergError, InvalidOptionError
from icebergds.operations.read.options import METADATA_TABLE
from icebergds.spark.frames.metadata_load import load_metadata_table
from icebergds.spark.frames.pruning import pruning_frame
from icebergds.spark.frames.table_load import open_load
from icebergds.spark.jvm import Private, with_private
from icebergds.spark.planned_load import PLANNED_SCAN
from icebergds.spark.session import acting_in, in_zone_of, is_connect
from icebergds.spark.sources import need_source
from icebergds.spark.verbs import is_format, named_table, options_of, with_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

READER = "spark.icebergpy.reader"
"""The setting of a session whose reader is ours."""

_IS_OURS = "_icebergds_reader"
_LOG = logging.getLogger(__name__)


def take_over_reader(spark: SparkSession) -> None:
    """Makes `spark.read` of this session, and of others with the setting, give our reader."""
    kind: Any = _connect_reader() if is_connect(spark) else _classic_reader()
    if getattr(kind, _IS_OURS, None) is None:
        _take_over(kind)


def _classic_reader() -> type:
    from pyspark.sql.readwriter import DataFrameReader

    return DataFrameReader


def _connect_reader() -> type:
    from pyspark.sql.connect.readwriter import DataFrameReader

    return DataFrameReader


def _take_over(kind: Any) -> None:
    choose, load = kind.format, kind.load

    def load_by_spark(self: Any, path: Any) -> DataFrame:
        need_source(_session(self))
        found: DataFrame = load(self, path)
        return found

    ours: Any = type("IcebergDataFrameReader", (_Verbs, kind), {"_load_by_spark": load_by_spark})

    @wraps(choose)
    def format(self: Any, source: str) -> Any:
        if is_format(source) and _session(self).conf.get(READER, "false") == "true":
            self.__class__ = ours
            return choose(self, source)
        if is_format(source):
            need_source(_session(self))
        if isinstance(self, ours):
            self.__class__ = kind
        return choose(self, source)

    @wraps(load)
    def loaded(
        self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
    ) -> Any:
        if format is not None:
            self.format(format)
        # The format may have changed the class.
        verb = ours.load if isinstance(self, ours) else load
        return verb(self, path, None, schema, **options)

    kind.format, kind.load = format, loaded
    setattr(kind, _IS_OURS, ours)


class _Verbs:
    """A reader of Iceberg tables, whose DataFrames prune by their own conditions."""

    def load(
        self: Any, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
    ) -> DataFrame:
        """Loads a table by its location, a metadata file, or with `catalog` its identifier.

        Raises:
            IcebergError: an option is malformed or does not fit the table, or it cannot be loaded.
        """
        if format is not None:
            chosen = self.format(format)
            if not isinstance(chosen, _Verbs):
                return chosen.load(path, None, schema, **options)  # type: ignore[no-any-return]
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        asked = _asked(self)
        if asked is None or _is_left_to_spark({**asked[0], **_named_path(path)}):
            return self._load_by_spark(path)  # type: ignore[no-any-return]
        try:
            return _loaded(self, path, *asked)
        except IcebergError as error:
            found = _loaded_by_server(self, path, error)
            if found is None:
                raise
            return found

    def table(self: Any, tableName: str) -> DataFrame:  # noqa: N803 - the name in PySpark
        """Loads a table by its name: in the option `catalog`, or with a catalog's name first.

        Raises:
            NoSuchTableError: the name begins with no catalog that is known.
        """
        asked = _asked(self)
        options, schema = asked or ({}, None)
        with acting_in(_session(self)):
            given = named_table(options, tableName)
        if asked is None:
            # The reader has its other options.
            return self.options(**given)._load_by_spark(None)  # type: ignore[no-any-return]
        return _loaded(self, given["path"], given, schema)


def _is_left_to_spark(given: Mapping[str, str]) -> bool:
    """Whether a load is planned already, or in the process that gets filters from Spark."""
    options = {name.lower(): value.lower() for name, value in given.items()}
    if PLANNED_SCAN in options or options.get("pushdown") == "true":
        return True
    # `metadata_table_frame` loads one state of a table, in the data source.
    return METADATA_TABLE in options and is_metadata_file(options.get("path", ""))


def _loaded(
    reader: Any, path: Any, given: Mapping[str, str], schema: StructType | None
) -> DataFrame:
    spark = _session(reader)
    named = _named_path(path)
    options = {name: value for name, value in given.items() if not named or name.lower() != "path"}
    with acting_in(spark):
        if "path" in named:
            named = with_name({**options, **named}, named["path"])
        # Spark is asked for its time zone once.
        named = in_zone_of(spark, {**options, **named})
        metadata_table = load_metadata_table(spark, named, schema)
        if metadata_table is not None:
            return metadata_table
        load = open_load(spark, named, schema)
    return pruning_frame(spark, load, lambda: reader._load_by_spark(path))


def _loaded_by_server(reader: Any, path: Any, error: IcebergError) -> DataFrame | None:
    """The load of the data source, if only the server of Spark Connect reaches the table."""
    from pyspark.errors import PySparkException

    if not is_connect(_session(reader)):
        return None
    try:
        df: DataFrame = reader._load_by_spark(path)
        # It is analyzed now.
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


def _session(reader: Any) -> SparkSession:
    session: SparkSession = reader._client if hasattr(reader, "_client") else reader._spark
    return session


def _asked(reader: Any) -> tuple[dict[str, str], StructType | None] | None:
    """The options and the schema that a reader has; None if it keeps them to itself."""
    return with_private(
        Private.READERS, lambda: (_given(reader), _user_schema(reader)), lambda: None
    )


def _given(reader: Any) -> dict[str, str]:
    """The options that a reader has."""
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
