"""Carries out `save`, `saveAsTable` and `insertInto`."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from icebergds.catalog.address import TableAddress
from icebergds.catalog.loaded_table import LoadedTable
from icebergds.errors import (
    AlreadyExistsError,
    InvalidDataError,
    InvalidOptionError,
    MissingFileError,
    NoSuchTableError,
)
from icebergds.operations.options.partition_text import parse_partition_by, parse_sort_by
from icebergds.operations.write.options import WriteOptions, parse_write_options
from icebergds.spark.verbs import named_table, with_name
from icebergds.spark.writers.request import WriteRequest
from icebergds.spark.writers.table_writes import (
    create_from,
    create_or_replace,
    table_to_write,
    write_into,
)

_CREATE = {"create": "true"}
_LOG = logging.getLogger(__name__)


def save(request: WriteRequest) -> None:
    """Writes a DataFrame to the table that the options name.

    Appends and overwrites need a table that exists, unless option `create` is set; the other save
    modes create one, by path only if there are no other files.

    Raises:
        AlreadyExistsError: the mode is `errorifexists`, and the table or files at its path exist.
        NoSuchTableError: the table does not exist and should not be created.
        InvalidOptionError: options are malformed, or do not fit the write or the table.

    Other errors are those of `Table.append` and `Table.overwrite`.
    """
    creates = request.mode in ("errorifexists", "ignore")
    path = [value for name, value in request.options.items() if name.lower() == "path"]
    named = with_name(request.options, path[-1]) if path else request.options
    given = {**named, **(_CREATE if creates else {})}
    options = _parsed(request, given)
    table = table_to_write(options)
    if table is None:
        if options.creation is None:
            address = options.address
            name = f"{address.catalog}.{address.path}" if address.catalog else address.path
            raise NoSuchTableError(
                address.with_catalog_hint(
                    f"table {name} does not exist; to create it with this write, "
                    "set option('create', 'true') or mode('errorifexists')"
                )
            )
        file = _other_file(options.address) if creates else None
        if file is None:
            create_from(request.df, options)
        else:
            _refuse_other_files(request, options.address.path, file)
        return
    _write(request, table, options)


def save_as_table(request: WriteRequest, name: str) -> None:
    """Writes a DataFrame to a table of a catalog, which is created if it does not exist.

    The mode `overwrite` replaces the table, with its columns, partitioning and order, as in Spark.

    Raises:
        NoSuchTableError: the name does not begin with a known catalog.

    Other errors are those of `save`.
    """
    given = {option: value for option, value in request.options.items() if option.lower() != "path"}
    path = [value for option, value in request.options.items() if option.lower() == "path"]
    location = {"location": path[-1]} if path else {}
    named = named_table(given, name, request.df.sparkSession, may_be_temporary=False)
    options = _parsed(request, {**named, **location, **_CREATE})
    if request.mode == "overwrite":
        create_or_replace(request.df, options)
    elif (table := table_to_write(options)) is None:
        create_from(request.df, options)
    else:
        _write(request, table, options)


def insert_into(request: WriteRequest, name: str) -> None:
    """Writes the columns of a DataFrame to a table's columns by position.

    An overwrite replaces all rows, or with `spark.sql.sources.partitionOverwriteMode` = `dynamic`
    the partitions of the new rows.

    Raises:
        InvalidDataError: the table has a different number of columns.
        NoSuchTableError: there is no such table.
    """
    if request.partition_by or request.sort_by:
        raise InvalidOptionError(
            "insertInto writes to a table that has its partitioning and order; leave partitionBy "
            "and sortBy out"
        )
    given = named_table(request.options, name, request.df.sparkSession)
    overwrite = request.mode == "overwrite"
    if overwrite and _is_dynamic(request) and not _names_rows(given):
        given["overwrite-mode"] = "dynamic"
    options = parse_write_options(given)
    table = table_to_write(options)
    if table is None:
        raise NoSuchTableError(f"table {name} does not exist; saveAsTable creates it")
    names = [field.name for field in table.metadata.schema().fields]
    if len(names) != len(request.df.columns):
        raise InvalidDataError(
            f"table {table.name}: insertInto writes columns by position, and the rows have "
            f"{len(request.df.columns)} columns, the table {len(names)}: {', '.join(names)}; "
            "select as many, or append by name with mode('append').save"
        )
    write_into(request.df.toDF(*names), table, options, overwrite=overwrite)


def _other_file(address: TableAddress) -> str | None:
    """A file in the directory of a table to create by path; None if all its files are hidden."""
    if address.catalog is not None:
        return None
    io = address.io()
    directory = io.resolve(address.path).rstrip("/")
    try:
        for found in io.list_recursively(address.path):
            for location in found.files["location"].to_pylist():
                file: str = location.removeprefix(directory).lstrip("/")
                if not any(map(_is_hidden, file.split("/"))):
                    return file
    except MissingFileError:
        pass
    return None


def _is_hidden(name: str) -> bool:
    # A partition's directory, such as _day=1, is not hidden.
    return name.startswith((".", "_")) and "=" not in name


def _refuse_other_files(request: WriteRequest, path: str, file: str) -> None:
    """Refuses a directory with other files: the table may delete files that it does not know.

    Raises:
        AlreadyExistsError: the mode is not `ignore`.
    """
    if request.mode == "ignore":
        _LOG.info("%s holds other files, such as %s; nothing was written", path, file)
        return
    raise AlreadyExistsError(
        f"{path} is no table, but holds other files, such as {file}, and the save mode is "
        "errorifexists, which is Spark's default; choose an empty directory, or create the table "
        "there all the same: mode('append') with option('create', 'true')"
    )


def _write(request: WriteRequest, table: LoadedTable, options: WriteOptions) -> None:
    """Writes to a table that exists."""
    if request.mode == "ignore":
        return
    if request.mode == "errorifexists":
        raise AlreadyExistsError(
            f"table {table.name} exists, and the save mode is errorifexists, which is Spark's "
            "default; use mode('append'), mode('overwrite') or mode('ignore')"
        )
    _check_definition(request, table)
    write_into(request.df, table, options, overwrite=request.mode == "overwrite")


def _parsed(request: WriteRequest, given: Mapping[str, str]) -> WriteOptions:
    definition = request.definition()
    creates = any(name.lower() == "create" and value == "true" for name, value in given.items())
    # A table that exists is checked against the definition instead.
    return parse_write_options({**given, **(definition if creates else {})})


def _check_definition(request: WriteRequest, table: LoadedTable) -> None:
    """Refuses a partitioning or order that differs from that of the existing table."""
    metadata = table.metadata
    schema = metadata.schema()
    if request.partition_by:
        asked = parse_partition_by(", ".join(request.partition_by), schema, "partitionBy")
        terms = [(field.source_ids, str(field.transform)) for field in asked.fields]
        known = [(field.source_ids, str(field.transform)) for field in metadata.spec().fields]
        if terms != known:
            partitioning = ", ".join(f.name for f in metadata.spec().fields) or "nothing"
            raise InvalidOptionError(
                f"partitionBy({', '.join(request.partition_by)}): table {table.name} exists and is "
                f"partitioned by {partitioning} (names of its partition fields); leave partitionBy "
                "out"
            )
    if request.sort_by:
        order = parse_sort_by(", ".join(request.sort_by), schema, "sortBy")
        if order.fields != metadata.sort_order().fields:
            raise InvalidOptionError(
                f"sortBy({', '.join(request.sort_by)}): table {table.name} exists and has another "
                "sort order; leave sortBy out"
            )


def _is_dynamic(request: WriteRequest) -> bool:
    mode = request.df.sparkSession.conf.get("spark.sql.sources.partitionOverwriteMode", "static")
    return str(mode).lower() == "dynamic"


def _names_rows(given: Mapping[str, str]) -> bool:
    return bool({"overwrite-mode", "overwrite-filter"} & {name.lower() for name in given})
