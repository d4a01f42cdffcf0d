"""Creates tables from tables of Spark's session catalog, without copying files."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icebergds.api.jobs import describing_jobs, task_runner, zone_of
from icebergds.api.progress import ProgressOption, showing
from icebergds.catalog.address import TableAddress, identifier_of
from icebergds.catalog.naming import named_catalog
from icebergds.display import html_result
from icebergds.errors import AlreadyExistsError, CommitStateUnknownError, InvalidOptionError
from icebergds.expr.names import quote_name
from icebergds.interrupts import interrupts_held
from icebergds.operations.imports.foreign_table import (
    ForeignTable,
    check_import_with_files,
    import_table,
    renamed,
)
from icebergds.operations.options.arguments import (
    flag_argument,
    mapping_argument,
    path_argument,
    text_argument,
)
from icebergds.operations.outcomes import nothing_committed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icebergds.api.catalog import Catalog

_LOG = logging.getLogger(__name__)
_SNAPSHOT = {"gc.enabled": "false", "snapshot": "true"}
_MIGRATED = {"migrated": "true"}


@dataclass(frozen=True, slots=True)
class SnapshotTable:
    """The result of `snapshot`.

    Attributes:
        imported_files_count: the number of files that the new table has.
    """

    imported_files_count: int

    def _repr_html_(self) -> str:
        return html_result("Snapshot table", self)


@dataclass(frozen=True, slots=True)
class MigratedTable:
    """The result of `migrate`.

    Attributes:
        migrated_files_count: the number of files that the new table has.
        backup_table: the new name of the old table; None if it was dropped.
    """

    migrated_files_count: int
    backup_table: str | None

    def _repr_html_(self) -> str:
        return html_result("Migrated table", self)


def snapshot(
    spark: SparkSession,
    source_table: str,
    table: str | os.PathLike[str],
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
    *,
    catalog: Catalog | None = None,
    progress: ProgressOption = None,
) -> SnapshotTable:
    """Creates a table from the files of a Parquet, ORC or Avro table of Spark, to try things out.

    The source and its files stay unchanged: the new table has its own location for new files. It
    has the properties `snapshot` = true and `gc.enabled` = false, so that maintenance does not
    delete the source's files. If files of the source are
    deleted, the new table cannot be read any more.

    Args:
        spark: the session, classic or of Spark Connect, with the source in its session catalog. The
            client reads the files' footers, so that it must reach them.
        source_table: such as `db.events`.
        table: the new table, named as for `load_table`: by a location, or by a name that begins
            with a configured catalog; with `catalog`, its identifier there.
        location: the new table's directory; the catalog chooses it by default.
        properties: of the new table, in addition to those of the source.
        catalog: the catalog of the new table, from `load_catalog`.
        progress: whether to show progress, or a function that is called with each
            `icebergds.Progress`; see `icebergds.progress`.

    Raises:
        NoSuchTableError: there is no such source.
        AlreadyExistsError: the new table exists.
        InvalidOptionError: the source is not a table of files, the locations overlap, or another
            argument is wrong.
        InvalidDataError: a column has a type that Iceberg lacks, or a file does not fit the
            source's own columns; the message names it.
        CorruptFileError, UnsupportedFeatureError: a file is damaged or encrypted.
        CommitStateUnknownError: it is not known whether the table was created.
        PySparkException: Spark failed.

    Examples:
        >>> snapshot(spark, "db.events", "lake.db.events_trial")  # doctest: +SKIP
        SnapshotTable(imported_files_count=24)
    """
    from icebergds.spark.session_files import session_table

    address = _address(table, catalog)
    asked = {**mapping_argument("properties", properties), **_SNAPSHOT}
    with showing("snapshot", address.path, progress):
        source = session_table(spark, path_argument("source_table", source_table))
        return SnapshotTable(_import(spark, source, address, asked, location, apart=True))


def migrate(
    spark: SparkSession,
    source_table: str,
    table: str | os.PathLike[str],
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
    *,
    backup_table_name: str | None = None,
    drop_backup: bool = False,
    catalog: Catalog | None = None,
    progress: ProgressOption = None,
) -> MigratedTable:
    """Replaces a Parquet, ORC or Avro table of Spark with a table of the same files.

    The files are checked first. Then the old table is renamed, so that nobody writes to it, and
    renamed back if it could not be replaced. Spark's session catalog cannot hold tables of this
    format: the new table is at a location or in a catalog of this package, and queries name it as
    such. The old name is free afterwards. The new table owns the files: its maintenance deletes
    those it no longer needs, and the backup then lacks them.

    When Spark renames a managed table, it moves its directory: the new table has the files at their
    new place, and tables that `snapshot` created from the old one lose them. **Do not drop the
    backup of a managed table**: Spark would delete its directory, and with it the files of the new
    table.

    Args:
        backup_table_name: the new name of the old table, in its namespace; by default its own name
            followed by `_BACKUP_`. No table may have this name.
        drop_backup: drop the old table afterwards. Not for managed tables, which Spark drops with
            their files.

    Other arguments and errors are those of `snapshot`.

    Examples:
        >>> migrate(spark, "db.events", "lake.db.events")  # doctest: +SKIP
        MigratedTable(migrated_files_count=24, backup_table='db.events_BACKUP_')
    """
    from icebergds.spark.session_files import drop_session_table, session_table

    address = _address(table, catalog)
    name = path_argument("source_table", source_table)
    found = session_table(spark, name)
    if flag_argument("drop_backup", drop_backup) and found.is_managed:
        raise InvalidOptionError(
            f"drop_backup: table {name} is managed, so that Spark would delete its files, which "
            "the new table has; leave drop_backup out and keep the backup"
        )
    backup = _backup_name(name, text_argument("backup_table_name", backup_table_name))
    asked = {**mapping_argument("properties", properties), **_MIGRATED}
    with showing("migrate", address.path, progress):
        count = _replace(spark, name, found, address, asked, location, backup)
        if drop_backup:
            drop_session_table(spark, backup)
        elif found.is_managed:
            _LOG.warning(
                "table %s: its files are those of the managed table %s; do not drop that one, "
                "because Spark would delete them",
                address.path,
                backup,
            )
    return MigratedTable(count, None if drop_backup else backup)


def _replace(
    spark: SparkSession,
    name: str,
    found: ForeignTable,
    address: TableAddress,
    properties: Mapping[str, str],
    location: str | None,
    backup: str,
) -> int:
    """Renames a table of Spark, and creates one of its files; returns their number."""
    from icebergds.spark.session_files import rename_session_table, session_table

    with nothing_committed(address.path), describing_jobs("migrate", address.path):
        # A rename loses partitions in some of Spark's catalogs, for good.
        check_import_with_files(
            found,
            address,
            properties,
            location=text_argument("location", location),
            time_zone=zone_of(spark) or "UTC",
            runner=task_runner(spark),
        )
    if spark.catalog.tableExists(backup):
        raise AlreadyExistsError(
            f"table {name} cannot be renamed to {backup}, which exists already; choose another "
            "backup_table_name, or drop that table"
        )
    with interrupts_held():
        rename_session_table(spark, name, backup)
        try:
            source = renamed(found, session_table(spark, backup))
            return _import(spark, source, address, properties, location, apart=False)
        except CommitStateUnknownError:
            raise
        except (Exception, KeyboardInterrupt):
            rename_session_table(spark, backup, name)
            raise


def _import(
    spark: SparkSession,
    source: ForeignTable,
    address: TableAddress,
    properties: Mapping[str, str],
    location: str | None,
    *,
    apart: bool,
) -> int:
    done = "snapshot" if apart else "migrate"
    with nothing_committed(address.path), describing_jobs(done, address.path):
        count = import_table(
            source,
            address,
            properties,
            location=text_argument("location", location),
            apart=apart,
            time_zone=zone_of(spark) or "UTC",
            runner=task_runner(spark),
        )
    _LOG.info("table %s: created of %d files of table %s", address.path, count, source.name)
    return count


def _address(table: str | os.PathLike[str], catalog: Catalog | None) -> TableAddress:
    path = path_argument("table", table)
    if catalog is not None:
        return catalog.address(path)
    name, path = named_catalog(path)
    return TableAddress(path, name)


def _backup_name(name: str, chosen: str | None) -> str:
    *namespace, last = identifier_of(name)
    return quote_name((*namespace, chosen or f"{last}_BACKUP_"))
