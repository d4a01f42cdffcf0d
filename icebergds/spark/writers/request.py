"""Reads a Spark writer's options, save mode, partitioning and order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from icebergds.errors import InvalidOptionError
from icebergds.expr.names import in_backticks
from icebergds.spark.jvm import Private, with_private
from icebergds.spark.session import is_connect
from icebergds.spark.verbs import options_of

_MODES = {
    "append": "append",
    "overwrite": "overwrite",
    "ignore": "ignore",
    "error": "errorifexists",
    "errorifexists": "errorifexists",
    "default": "errorifexists",
}


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A DataFrame to write, and how.

    Attributes:
        options: with names as they were given.
        mode: `append`, `overwrite`, `ignore` or `errorifexists`.
        partition_by, sort_by: terms of a partition spec and a sort order.
    """

    df: DataFrame
    options: Mapping[str, str]
    mode: str = "errorifexists"
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()

    def definition(self) -> dict[str, str]:
        """The partitioning and order as options.

        Raises:
            InvalidOptionError: one of them is also given as an option.
        """
        terms = {"partition-by": self.partition_by, "sort-by": self.sort_by}
        given = {name.lower() for name in self.options}
        for name, listed in terms.items():
            if listed and name in given:
                raise InvalidOptionError(
                    f"option {name!r} and the writer's own method both say it; give one"
                )
        return {name: ", ".join(listed) for name, listed in terms.items() if listed}


def request_of(writer: Any) -> WriteRequest | None:
    """Reads the request from a `DataFrameWriter`, of classic Spark or Spark Connect.

    None if classic Spark does not give access to it.

    Raises:
        InvalidOptionError: it asks for something that Iceberg tables do not have.
    """
    asked: _Asked | None
    if is_connect(writer._spark):
        asked = _of_connect(writer)
    else:
        asked = with_private(Private.WRITERS, lambda: _of_classic(writer), lambda: None)
    if asked is None:
        return None
    if asked.clustering:
        raise InvalidOptionError(
            "clusterBy is not supported: tables of Iceberg are partitioned and sorted; use "
            "partitionBy('bucket(16, id)', 'days(ts)') and sortBy('id')"
        )
    mode = _MODES.get(asked.mode.lower())
    if mode is None:
        raise InvalidOptionError(
            f"save mode {asked.mode!r} is not known; expected append, overwrite, ignore or "
            "errorifexists"
        )
    columns = asked.df.columns
    partition_by = [*terms(asked.partitioning, columns), *_bucket(asked, columns)]
    sort_by = tuple(terms(asked.sorting, columns))
    return WriteRequest(asked.df, asked.options, mode, tuple(partition_by), sort_by)


def terms(named: Iterable[str], columns: Sequence[str]) -> list[str]:
    """The terms of a spec or an order for what a user named: columns, or terms as text."""
    known = {column.lower() for column in columns}
    return [in_backticks((name,)) if name.lower() in known else name for name in named]


@dataclass(frozen=True, slots=True)
class _Asked:
    df: DataFrame
    options: Mapping[str, str]
    mode: str
    partitioning: Sequence[str]
    sorting: Sequence[str]
    clustering: Sequence[str]
    buckets: int
    bucketing: Sequence[str]


def _bucket(asked: _Asked, columns: Sequence[str]) -> list[str]:
    match terms(asked.bucketing, columns):
        case []:
            return []
        case [column]:
            return [f"bucket({asked.buckets}, {column})"]
        case _:
            raise InvalidOptionError(
                f"bucketBy({asked.buckets}, {', '.join(asked.bucketing)}): a bucket of Iceberg is "
                "one of a single column; use partitionBy('bucket(16, a)', 'bucket(16, b)')"
            )


def _of_classic(writer: Any) -> _Asked:
    state, df = writer._jwrite, writer._df
    return _Asked(
        df,
        options_of(state.extraOptions()),
        state.curmode().name(),
        _listed(state.partitioningColumns()),
        _listed(state.sortColumnNames()),
        _listed(state.clusteringColumns()),
        state.numBuckets().get() if state.numBuckets().isDefined() else 0,
        _listed(state.bucketColumnNames()),
    )


def _listed(names: Any) -> list[str]:
    """The elements of an optional Scala sequence."""
    if not names.isDefined():
        return []
    found = names.get()
    return [found.apply(at) for at in range(found.size())]


def _of_connect(writer: Any) -> _Asked:
    from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame

    state = writer._write
    df: Any = ConnectDataFrame(writer._df, writer._spark)
    return _Asked(
        df,
        {name: value for name, value in state.options.items() if value is not None},
        state.mode or "errorifexists",
        list(state.partitioning_cols),
        list(state.sort_cols),
        list(state.clustering_cols),
        state.num_buckets,
        list(state.bucket_cols),
    )
