"""Implements the writers of registered sessions for tables by name: `df.writeTo`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from icebergds.catalog.naming import known_catalogs, table_name_parts
from icebergds.errors import AlreadyExistsError, InvalidOptionError, NoSuchTableError
from icebergds.expr.names import in_backticks, split_name
from icebergds.operations.write.options import WriteOptions, parse_write_options
from icebergds.spark.session import acting_in
from icebergds.spark.verbs import (
    FORMAT,
    WRITER,
    is_format,
    is_on,
    named_table,
    our_name,
    unknown_catalog,
)
from icebergds.spark.writers.request import terms
from icebergds.spark.writers.table_writes import (
    create_from,
    create_or_replace,
    replace_by,
    table_to_write,
    write_into,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from icebergds.catalog.loaded_table import LoadedTable

_OF = "_icebergds_of"


def write_to(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`DataFrame.writeTo`: our writer for tables in our catalogs, else once `using` says so."""

    @wraps(of_spark)
    def write_to(self: Any, table: str) -> Any:
        session = self.sparkSession
        if not is_on(session, WRITER):
            return of_spark(self, table)
        if our_name(session, table, may_be_temporary=False) is not None:
            return TableWriter(self, table)
        writer = of_spark(self, table)
        setattr(writer, _OF, (self, table))
        return writer

    return write_to


def using(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """`DataFrameWriterV2.using`."""

    @wraps(of_spark)
    def using(self: Any, provider: str) -> Any:
        of = getattr(self, _OF, None)
        if of is not None and is_format(provider):
            return TableWriter(*of)
        return of_spark(self, provider)

    return using


def explaining(of_spark: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a `DataFrameWriterV2` method's error say how to configure a missing catalog."""

    @wraps(of_spark)
    def explaining(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            of_spark(self, *args, **kwargs)
        except AnalysisException as error:
            _, table = getattr(self, _OF, (None, ""))
            if unknown_catalog(error) not in (table_name_parts(table) or ())[:1]:
                raise
            raise NoSuchTableError(
                f"table {table}: its name begins with no configured catalog "
                f"({known_catalogs(table)})"
            ) from None

    return explaining


def _in_its_session(verb: Callable[..., None]) -> Callable[..., None]:
    @wraps(verb)
    def acting(self: TableWriter, *args: Any, **kwargs: Any) -> None:
        with acting_in(self._df.sparkSession):
            verb(self, *args, **kwargs)

    return acting


class TableWriter:
    """Writes a DataFrame to a table by name: what `df.writeTo` returns."""

    def __init__(self, df: DataFrame, name: str) -> None:
        self._df, self._name = df, name
        self._options: dict[str, str] = {}
        self._properties: dict[str, str] = {}
        self._partitioning: tuple[str, ...] = ()

    def using(self, provider: str) -> TableWriter:
        """Names the format.

        Raises:
            InvalidOptionError: it is neither `icebergpy` nor `iceberg`.
        """
        if not (is_format(provider) or provider == "iceberg"):
            raise InvalidOptionError(
                f"using({provider!r}): table {self._name} is in a catalog of Iceberg tables; use "
                f"using({FORMAT!r}) or leave it out"
            )
        return self

    def option(self, key: str, value: Any) -> TableWriter:
        """Sets an option of the write."""
        if value is not None:
            self._options[key] = _text(value)
        return self

    def options(self, **options: Any) -> TableWriter:
        """Sets options of the write."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def tableProperty(self, property: str, value: str) -> TableWriter:
        """Sets a property of the table that is created or replaced."""
        self._properties[property] = value
        return self

    def partitionedBy(self, col: str | Column, *cols: str | Column) -> TableWriter:
        """Partitions the table that is created or replaced, by columns or transforms of them.

        Raises:
            InvalidOptionError: an argument is something else.
        """
        columns = self._df.columns
        self._partitioning = tuple(
            terms([each], columns)[0] if isinstance(each, str) else _partition_term(each)
            for each in (col, *cols)
        )
        return self

    def clusterBy(self, col: str, *cols: str) -> TableWriter:
        """Refuses clustering, which Iceberg tables do not have."""
        raise InvalidOptionError(
            f"clusterBy({', '.join((col, *cols))}) is not supported: tables of Iceberg are "
            "partitioned and sorted; use partitionedBy and option('sort-by', ...)"
        )

    @_in_its_session
    def create(self) -> None:
        """Creates the table with the rows.

        Raises:
            AlreadyExistsError: it exists.
        """
        options = self._definition()
        if (table := table_to_write(options)) is not None:
            raise AlreadyExistsError(
                f"table {table.name} exists; use append(), overwritePartitions() or "
                "createOrReplace()"
            )
        create_from(self._df, options)

    @_in_its_session
    def replace(self) -> None:
        """Replaces the table's definition and rows, and keeps its history.

        Raises:
            NoSuchTableError: it does not exist.
        """
        options = self._definition()
        replace_by(self._df, self._existing(options, "createOrReplace() creates it"), options)

    @_in_its_session
    def createOrReplace(self) -> None:
        """Creates the table, or replaces its definition and rows."""
        create_or_replace(self._df, self._definition())

    @_in_its_session
    def append(self) -> None:
        """Appends the rows, by the names of their columns.

        Raises:
            NoSuchTableError: the table does not exist.
        """
        options = self._of_rows("append")
        write_into(self._df, self._existing(options), options)

    @_in_its_session
    def overwrite(self, condition: str | Column) -> None:
        """Replaces the rows that meet a condition.

        Args:
            condition: a column, or Spark SQL.

        Raises:
            NoSuchTableError: the table does not exist.
        """
        if not isinstance(condition, str) and not hasattr(condition, "isNull"):
            raise InvalidOptionError(
                f"overwrite({condition!r}): expected the rows to replace as a Column or SQL text, "
                "such as col('day') == '2026-03-01'; lit(True) replaces all"
            )
        options = self._of_rows("overwrite")
        table = self._existing(options)
        if isinstance(condition, str):
            given = parse_write_options({**self._given(), "overwrite-filter": condition})
            write_into(self._df, table, given, overwrite=True)
        elif _is_true(condition):
            write_into(self._df, table, options, overwrite=True)
        else:
            write_into(self._df, table, options, overwrite=True, condition=condition)

    @_in_its_session
    def overwritePartitions(self) -> None:
        """Replaces the partitions of the rows.

        Raises:
            NoSuchTableError: the table does not exist.
        """
        self._of_rows("overwritePartitions")
        options = parse_write_options({**self._given(), "overwrite-mode": "dynamic"})
        write_into(self._df, self._existing(options), options, overwrite=True)

    def _given(self) -> dict[str, str]:
        return named_table(self._options, self._name, self._df.sparkSession, may_be_temporary=False)

    def _definition(self) -> WriteOptions:
        given = self._given()
        if self._partitioning:
            if any(name.lower() == "partition-by" for name in given):
                raise InvalidOptionError(
                    "option 'partition-by' and partitionedBy both say it; give one"
                )
            given["partition-by"] = ", ".join(self._partitioning)
        for name, value in self._properties.items():
            # Spark's property for the location of a table.
            given["location" if name.lower() == "location" else f"table-property.{name}"] = value
        return parse_write_options({**given, "create": "true"})

    def _of_rows(self, verb: str) -> WriteOptions:
        if self._partitioning or self._properties:
            raise InvalidOptionError(
                f"{verb}() writes to table {self._name} as it is; partitionedBy and tableProperty "
                "are for create(), replace() and createOrReplace()"
            )
        self._refuse_view(verb)
        return parse_write_options(self._given())

    def _refuse_view(self, verb: str) -> None:
        """Refuses to write rows to a table whose name a temporary view has, as Spark does."""
        spark, name = self._df.sparkSession, self._name
        whole = our_name(spark, name, may_be_temporary=False)
        if any(option.lower() == "catalog" for option in self._options):
            return
        if whole is not None and our_name(spark, name) is None:
            raise InvalidOptionError(
                f"{verb}(): {name} is a temporary view, which cannot be written; drop the view, or "
                f"write to {whole}"
            )

    def _existing(self, options: WriteOptions, instead: str = "create() creates it") -> LoadedTable:
        table = table_to_write(options)
        if table is None:
            missing = f"table {self._name} does not exist; {instead}"
            raise NoSuchTableError(options.address.with_catalog_hint(missing))
        return table


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _partition_term(column: Any) -> str:
    """A term of a partition spec for a column or a transform of one, such as `years(f.col("ts"))`.

    Raises:
        InvalidOptionError: it is something else.
    """
    if hasattr(column, "_jc"):
        return _classic_term(column._jc.node(), column)
    if not hasattr(column, "_expr"):
        raise _refused(column)
    return _connect_term(column._expr, column)


def _is_true(column: Any) -> bool:
    """Whether a column is the constant true."""
    if hasattr(column, "_jc"):
        node = column._jc.node()
        return _kind(node) == "Literal" and node.value() is True
    expression = column._expr
    return type(expression).__name__ == "LiteralExpression" and expression._value is True


def _classic_term(node: Any, column: Any) -> str:
    match _kind(node):
        case "UnresolvedAttribute":
            parts = node.nameParts()
            return in_backticks([parts.apply(at) for at in range(parts.size())])
        case "Literal" if isinstance(node.value(), int):
            return str(node.value())
        case "UnresolvedFunction":
            given = node.arguments()
            arguments = [_classic_term(given.apply(at), column) for at in range(given.size())]
            return f"{node.functionName()}({', '.join(arguments)})"
        case _:
            raise _refused(column)


def _connect_term(expression: Any, column: Any) -> str:
    match type(expression).__name__:
        case "ColumnReference":
            return in_backticks(split_name(expression._unparsed_identifier))
        case "LiteralExpression" if isinstance(expression._value, int):
            return str(expression._value)
        case "UnresolvedFunction":
            arguments = [_connect_term(argument, column) for argument in expression._args]
            return f"{expression._name}({', '.join(arguments)})"
        case _:
            raise _refused(column)


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _refused(column: Any) -> InvalidOptionError:
    return InvalidOptionError(
        f"partitionedBy({column}): expected columns and transforms of columns, such as "
        "partitioning.days('ts') and partitioning.bucket(16, 'id')"
    )
