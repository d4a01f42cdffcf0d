"""Refuses writes that would publish rows which the session says are to be audited first."""

from __future__ import annotations

from icebergds.catalog.loaded_table import LoadedTable
from icebergds.errors import InvalidOptionError
from icebergds.operations.conditions import Setting
from icebergds.operations.write.options import WriteOptions
from icebergds.spec.table_properties import WAP_ENABLED

_SETTINGS = ("wap.branch", "wap.id")


def refuse_ignored_audit(setting: Setting, table: LoadedTable, options: WriteOptions) -> None:
    """Refuses to write to main if a setting of Java Iceberg names a branch or an id.

    Args:
        setting: looks up settings of the session; SQL statements follow them, other writes do not.

    Raises:
        InvalidOptionError: the table has `write.wap.enabled`, and the write says nothing else.
    """
    if not WAP_ENABLED.of(table.metadata.properties):
        return
    if options.names_branch or options.wap_id is not None:
        return
    for name in _SETTINGS:
        if value := setting(f"spark.{name}"):
            raise InvalidOptionError(
                f"table {table.name} has {WAP_ENABLED.name}, and the session has spark.{name} = "
                f"{value!r}, which is not read here; set the option {name!r} = {value!r} for the "
                "write, or 'branch' = 'main' to write to main"
            )
