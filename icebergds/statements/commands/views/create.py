"""CREATE VIEW, in a catalog."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icebergds.errors import AlreadyExistsError
from icebergds.statements.commands.views.definition import read_definition
from icebergds.statements.commands.views.new_view import analysed_view
from icebergds.statements.commands.views.spark_views import refuse_ours_in_spark
from icebergds.statements.names.scope import NameScope
from icebergds.statements.names.table_names import read_name
from icebergds.statements.results import nothing
from icebergds.statements.spark_sql import Arguments
from icebergds.statements.text.cursor import Cursor


def create_view(scope: NameScope, cursor: Cursor, arguments: Arguments) -> DataFrame | None:
    """Runs `CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name ... AS query`."""
    cursor.expect("CREATE")
    replaces = cursor.take("OR", "REPLACE")
    cursor.expect("VIEW")
    may_exist = cursor.take("IF", "NOT", "EXISTS")
    if may_exist and replaces:
        raise cursor.error("the name of a view: OR REPLACE does without IF NOT EXISTS, before")
    parts = read_name(scope, cursor, "the name of a view")
    name = scope.table(parts, may_be_temporary=False)
    if name is None:
        refuse_ours_in_spark(scope, parts, cursor.rest())
        return None
    made = analysed_view(scope, name, read_definition(cursor), arguments)
    if replaces:
        made.create_or_replace(scope)
        return nothing(scope.spark)
    try:
        made.create(scope)
    except AlreadyExistsError:
        if not may_exist:
            raise
    return nothing(scope.spark)
