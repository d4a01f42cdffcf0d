"""Runs statements that show what exists, and those on namespaces."""

from __future__ import annotations

from icebergds.statements.commands.command import Command
from icebergds.statements.commands.descriptions import (
    caches,
    functions,
    listings,
    namespaces,
    refused,
    statistics,
    table_texts,
)
from icebergds.statements.commands.descriptions.explain import explain
from icebergds.statements.commands.descriptions.table_descriptions import describe

_OF_NAMESPACES = tuple(
    command
    for word in namespaces.NAMESPACE
    for command in (
        Command(("CREATE", word), namespaces.create_namespace),
        Command(("DROP", word), namespaces.drop_namespace),
        Command(("ALTER", word), namespaces.alter_namespace),
        Command(("COMMENT", "ON", word), namespaces.comment_on_namespace),
        Command(("SHOW", f"{word}S"), listings.show_namespaces),
    )
)

_FUNCTIONS = (
    *(
        Command(("CREATE", *replaces, *is_temporary, "FUNCTION"), refused.create_function)
        for replaces in ((), ("OR", "REPLACE"))
        for is_temporary in ((), ("TEMPORARY",))
    ),
    *(
        Command(("SHOW", *kind, "FUNCTIONS"), functions.show_functions)
        for kind in ((), ("ALL",), ("USER",), ("SYSTEM",))
    ),
    Command(("DESCRIBE", "FUNCTION"), functions.describe_function),
    Command(("DESC", "FUNCTION"), functions.describe_function),
)

COMMANDS: tuple[Command, ...] = (
    *_OF_NAMESPACES,
    *_FUNCTIONS,
    Command(("USE",), namespaces.use),
    Command(("SET", "CATALOG"), namespaces.set_catalog),
    Command(("SHOW", "CURRENT"), namespaces.show_current_namespace),
    Command(("SHOW", "CATALOGS"), listings.show_catalogs),
    Command(("SHOW", "TABLES"), listings.show_tables),
    Command(("SHOW", "TABLE", "EXTENDED"), listings.show_table_extended),
    Command(("SHOW", "VIEWS"), listings.show_views),
    Command(("SHOW", "CREATE", "TABLE"), table_texts.show_create_table),
    Command(("SHOW", "TBLPROPERTIES"), table_texts.show_properties),
    Command(("SHOW", "COLUMNS"), table_texts.show_columns),
    Command(("SHOW", "PARTITIONS"), refused.show_partitions),
    Command(("DESCRIBE",), describe),
    Command(("DESC",), describe),
    Command(("EXPLAIN",), explain),
    Command(("CACHE",), caches.cache_table),
    Command(("UNCACHE",), caches.uncache_table),
    Command(("CLEAR", "CACHE"), caches.clear_cache),
    Command(("REFRESH", "TABLE"), caches.refresh_table),
    Command(("ANALYZE", "TABLE"), statistics.analyze_table),
    Command(("ANALYZE", "TABLES"), statistics.analyze_tables),
    Command(("MSCK",), refused.repair_table),
    Command(("REPAIR",), refused.repair_table),
    Command(("LOAD", "DATA"), refused.load_data),
)
