"""Extends a session's own `spark.catalog` to our catalogs (`catalog_of_session`)."""
# ruff: noqa: N803 - names of arguments are those in PySpark

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, types
from pyspark.sql.catalog import CatalogMetadata, Column, Database, Function, Table

from icebergds.api.view import View
from icebergds.errors import (
    AlreadyExistsError,
    IcebergError,
    InvalidFilterError,
    InvalidStatementError,
    NoSuchNamespaceError,
    NotFoundError,
)
from icebergds.expr.names import in_backticks, split_name
from icebergds.spark.dataframe_schema import iceberg_schema
from icebergds.spark.patches import own
from icebergds.spark.session import acting_in
from icebergds.spec.schema import Schema
from icebergds.spec.transforms import BucketTransform, IdentityTransform, Transform
from icebergds.statements.commands.definitions.new_table import (
    TableDefinition,
    add_options,
    use_format,
    with_owner,
)
from icebergds.statements.commands.descriptions.caches import cache_whole
from icebergds.statements.commands.descriptions.details import COMMENT
from icebergds.statements.commands.descriptions.patterns import matches
from icebergds.statements.names.scope import (
    CatalogName,
    CurrentNamespace,
    NameScope,
    set_current_namespace,
)
from icebergds.statements.names.table_names import shown_name
from icebergds.statements.names.tables import NamedTable
from icebergds.statements.queries.cached import cached_rows, forget_all_rows
from icebergds.statements.queries.functions import (
    SYSTEM,
    function_named,
    function_names,
    function_usage,
)
from icebergds.statements.queries.relations import source_schema, table_or_view
from icebergds.statements.run import sql
from icebergds.statements.text.parameters import literal


def catalog_of_session(spark: SparkSession) -> Any:
    """A `catalog` of Spark's class for a session, whose methods include our catalogs.

    Names resolve as in statements; what is not ours goes to Spark's own methods. Methods that this
    version of Spark lacks are left out.
    """
    of_spark = own(spark, "catalog")
    found = type(of_spark)(spark)
    ours = _SessionCatalog(spark)
    for name in vars(_SessionCatalog):
        if not name.startswith("_") and hasattr(of_spark, name):
            method = _acting(spark, getattr(ours, name))
            setattr(found, name, wraps(getattr(of_spark, name))(method))
    return found


def _acting(spark: SparkSession, method: Callable[..., Any]) -> Callable[..., Any]:
    def acting(*args: Any, **kwargs: Any) -> Any:
        with acting_in(spark):
            return method(*args, **kwargs)

    return acting


@dataclass(frozen=True, slots=True)
class _SessionCatalog:
    """The methods of `pyspark.sql.catalog.Catalog`, with the same names and arguments."""

    spark: SparkSession

    def currentCatalog(self) -> str:
        found: str = self._scope().current.catalog or self._own.currentCatalog()
        return found

    def setCurrentCatalog(self, catalogName: str) -> None:
        self._run("SET CATALOG", (catalogName,))

    def listCatalogs(self, pattern: str | None = None) -> list[CatalogMetadata]:
        found: list[CatalogMetadata] = self._own.listCatalogs(pattern)
        known = {each.name for each in found}
        names = [name for name in self._scope().catalogs() if name not in known]
        found += [CatalogMetadata(name, None) for name in names if matches(name, pattern)]
        return sorted(found, key=lambda each: each.name)

    def currentDatabase(self) -> str:
        current = self._scope().current
        if current.catalog is None:
            found: str = self._own.currentDatabase()
            return found
        return shown_name(current.namespace)

    def setCurrentDatabase(self, dbName: str) -> None:
        catalog = self._scope().current.catalog
        if catalog is None:
            self._own.setCurrentDatabase(dbName)
        elif dbName:
            self._run("USE NAMESPACE", _parts(dbName))
        else:
            # `currentDatabase` returns this when no namespace is current.
            set_current_namespace(self.spark, CurrentNamespace(catalog))

    def listDatabases(self, pattern: str | None = None) -> list[Database]:
        scope = self._scope()
        catalog = scope.current.catalog
        if catalog is None:
            of_spark: list[Database] = self._own.listDatabases(pattern)
            return of_spark
        names = scope.catalog(catalog).list_namespaces()
        return [
            _database(scope, CatalogName(catalog, name))
            for name in names
            if matches(shown_name(name), pattern)
        ]

    def getDatabase(self, dbName: str) -> Database:
        scope, name = self._namespace(dbName)
        if name is None:
            of_spark: Database = self._own.getDatabase(dbName)
            return of_spark
        if not name.parts:
            raise NoSuchNamespaceError(
                f"{name.catalog} is a catalog; name a namespace in it, such as {name.catalog}.db"
            )
        return _database(scope, name)

    def databaseExists(self, dbName: str) -> bool:
        scope, name = self._namespace(dbName)
        if name is None:
            return bool(self._own.databaseExists(dbName))
        return bool(name.parts) and scope.catalog(name.catalog).namespace_exists(name.parts)

    def createDatabase(
        self, dbName: str, ifNotExists: bool = False, properties: dict[str, str] | None = None
    ) -> None:
        scope, name = self._namespace(dbName)
        if name is None:
            self._own.createDatabase(dbName, ifNotExists, properties)
            return
        try:
            scope.catalog(name.catalog).create_namespace(name.parts, properties or {})
        except AlreadyExistsError:
            if not ifNotExists:
                raise

    def dropDatabase(self, dbName: str, ifExists: bool = False, cascade: bool = False) -> None:
        _, name = self._namespace(dbName)
        if name is None:
            self._own.dropDatabase(dbName, ifExists, cascade)
        else:
            self._run(f"DROP NAMESPACE{_if_exists(ifExists)}", (name.catalog, *name.parts))

    def listTables(self, dbName: str | None = None, pattern: str | None = None) -> list[Table]:
        scope, name = self._namespace(dbName)
        if name is None:
            of_spark: list[Table] = self._own.listTables(dbName, pattern)
            return of_spark
        names = scope.catalog(name.catalog).list_tables(name.parts)
        return [
            _listed(scope, CatalogName(name.catalog, each))
            for each in names
            if matches(each[-1], pattern)
        ]

    def listViews(self, dbName: str | None = None, pattern: str | None = None) -> list[Table]:
        scope, name = self._namespace(dbName)
        if name is None:
            of_spark: list[Table] = self._own.listViews(dbName, pattern)
            return of_spark
        like = "" if pattern is None else f"LIKE {literal(pattern)}"
        shown = self._run("SHOW VIEWS IN", (name.catalog, *name.parts), like).collect()
        return [
            self._own.getTable(in_backticks([view]))
            if is_temporary
            else _listed(scope, CatalogName(name.catalog, (*name.parts, view)))
            for _, view, is_temporary in shown
        ]

    def getTable(self, tableName: str) -> Table:
        scope, name = self._table(tableName)
        if name is None:
            of_spark: Table = self._own.getTable(tableName)
            return of_spark
        return _table(name, table_or_view(scope, name))

    def tableExists(self, tableName: str, dbName: str | None = None) -> bool:
        scope, name = self._table(tableName, dbName)
        if name is None:
            return bool(self._own.tableExists(tableName, dbName))
        try:
            # A branch or snapshot at the end of a name must exist, too.
            source_schema(self.spark, table_or_view(scope, name))
        except NotFoundError:
            return False
        return True

    def listColumns(self, tableName: str, dbName: str | None = None) -> list[Column]:
        scope, name = self._table(tableName, dbName)
        if name is None:
            of_spark: list[Column] = self._own.listColumns(tableName, dbName)
            return of_spark
        source = table_or_view(scope, name)
        transforms = _transforms(source)
        return [
            Column(
                name=field.name,
                description=(field.metadata or {}).get("comment"),
                dataType=field.dataType.simpleString(),
                nullable=field.nullable,
                isPartition=IdentityTransform in transforms.get(field.name, ()),
                isBucket=BucketTransform in transforms.get(field.name, ()),
                isCluster=False,
            )
            for field in source_schema(self.spark, source).fields
        ]

    def createTable(
        self,
        tableName: str,
        path: str | None = None,
        source: str | None = None,
        schema: types.StructType | None = None,
        description: str | None = None,
        **options: str,
    ) -> DataFrame:
        scope, name = self._table(tableName)
        if name is None:
            of_spark: DataFrame = self._own.createTable(
                tableName, path, source, schema, description, **options
            )
            return of_spark
        definition = TableDefinition()
        if source is not None:
            use_format(definition, (source,))
        add_options(definition, options)
        comment = {} if description is None else {COMMENT: description}
        scope.catalog(name.catalog).create_table(
            name.parts,
            Schema(()) if schema is None else iceberg_schema(schema),
            path,
            properties=with_owner(self.spark, {**definition.properties, **comment}),
        )
        return self.spark.table(tableName)

    def dropTable(self, tableName: str, ifExists: bool = False, purge: bool = False) -> None:
        if not self._ran(f"DROP TABLE{_if_exists(ifExists)}", tableName, "PURGE" if purge else ""):
            self._own.dropTable(tableName, ifExists, purge)

    def dropView(self, viewName: str, ifExists: bool = False) -> None:
        if not self._ran(f"DROP VIEW{_if_exists(ifExists)}", viewName):
            self._own.dropView(viewName, ifExists)

    def truncateTable(self, tableName: str) -> None:
        if not self._ran("TRUNCATE TABLE", tableName):
            self._own.truncateTable(tableName)

    def analyzeTable(self, tableName: str, noScan: bool = False) -> None:
        how = "COMPUTE STATISTICS NOSCAN" if noScan else "COMPUTE STATISTICS"
        if not self._ran("ANALYZE TABLE", tableName, how):
            self._own.analyzeTable(tableName, noScan)

    def listPartitions(self, tableName: str) -> Any:
        if not self._ran("SHOW PARTITIONS", tableName):
            return self._own.listPartitions(tableName)
        raise AssertionError("tables of ours refuse the statement")

    def recoverPartitions(self, tableName: str) -> None:
        if not self._ran("REPAIR TABLE", tableName):
            self._own.recoverPartitions(tableName)

    def getTableProperties(self, tableName: str) -> dict[str, str]:
        shown = self._shown("SHOW TBLPROPERTIES", tableName)
        if shown is None:
            of_spark: dict[str, str] = self._own.getTableProperties(tableName)
            return of_spark
        return {str(key): str(value) for key, value in shown}

    def getCreateTableString(self, tableName: str, asSerde: bool = False) -> str:
        shown = self._shown("SHOW CREATE TABLE", tableName, "AS SERDE" if asSerde else "")
        if shown is None:
            return str(self._own.getCreateTableString(tableName, asSerde))
        return str(shown[0][0])

    def isCached(self, tableName: str) -> bool:
        scope, name = self._table(tableName)
        if name is None:
            return bool(self._own.isCached(tableName))
        source = table_or_view(scope, name)
        return isinstance(source, NamedTable) and cached_rows(self.spark, source, None) is not None

    def cacheTable(self, tableName: str, storageLevel: StorageLevel | None = None) -> None:
        scope, name = self._table(tableName)
        if name is None:
            self._own.cacheTable(tableName, storageLevel)
        else:
            # Spark's method is lazy, unlike CACHE TABLE.
            cache_whole(scope, name, storageLevel, is_lazy=True)

    def uncacheTable(self, tableName: str) -> None:
        if not self._ran("UNCACHE TABLE", tableName):
            self._own.uncacheTable(tableName)

    def refreshTable(self, tableName: str) -> None:
        if not self._ran("REFRESH TABLE", tableName):
            self._own.refreshTable(tableName)

    def clearCache(self) -> None:
        forget_all_rows(self.spark)
        self._own.clearCache()

    def listFunctions(
        self, dbName: str | None = None, pattern: str | None = None
    ) -> list[Function]:
        _, name = self._namespace(dbName)
        found: list[Function] = self._own.listFunctions(None if name else dbName, pattern)
        if name is not None and [part.lower() for part in name.parts] in ([], [SYSTEM]):
            own = (each for each in function_names() if matches(each, pattern))
            found += [_function(name.catalog, each) for each in own]
        return found

    def functionExists(self, functionName: str, dbName: str | None = None) -> bool:
        try:
            if self._function(functionName, dbName) is not None:
                return True
        except InvalidStatementError:
            return False
        before = _parts(functionName)[:-1] if dbName is None else _parts(dbName)
        if before and self._scope().namespace(before) is not None:
            return False
        return bool(self._own.functionExists(functionName, dbName))

    def getFunction(self, functionName: str) -> Function:
        function = self._function(functionName)
        if function is None:
            of_spark: Function = self._own.getFunction(functionName)
            return of_spark
        scope, parts = self._scope(), _parts(functionName)
        catalog = parts[0] if scope.is_catalog(parts[0]) else scope.current.catalog
        return _function(str(catalog), function)

    @property
    def _own(self) -> Any:
        return own(self.spark, "catalog")

    def _scope(self) -> NameScope:
        return NameScope(self.spark)

    def _namespace(self, name: str | None) -> tuple[NameScope, CatalogName | None]:
        scope, parts = self._scope(), () if name is None else _parts(name)
        return scope, scope.namespace(parts) if parts or name is None else None

    def _table(
        self, name: str, database: str | None = None
    ) -> tuple[NameScope, CatalogName | None]:
        scope, parts = self._scope(), _parts(name)
        if database is None:
            return scope, scope.table(parts) if parts else None
        before = scope.namespace(_parts(database)) if _parts(database) else None
        return scope, before and CatalogName(before.catalog, (*before.parts, name))

    def _function(self, name: str, database: str | None = None) -> str | None:
        before = () if database is None else _parts(database)
        return function_named(self._scope(), (*before, *_parts(name)))

    def _ran(self, words: str, name: str, behind: str = "") -> bool:
        """Runs a statement on a table or view of ours; returns False if it is not ours."""
        _, found = self._table(name)
        if found is not None:
            self._run(words, (found.catalog, *found.parts), behind)
        return found is not None

    def _shown(self, words: str, name: str, behind: str = "") -> list[Any] | None:
        """The rows of a statement on a table or view of ours; None if it is not ours."""
        _, found = self._table(name)
        if found is None:
            return None
        return self._run(words, (found.catalog, *found.parts), behind).collect()

    def _run(self, words: str, name: tuple[str, ...], behind: str = "") -> DataFrame:
        return sql(self.spark, f"{words} {in_backticks(name)} {behind}")


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a name; empty to let Spark reject it."""
    try:
        return split_name(name)
    except (InvalidFilterError, TypeError):
        return ()


def _if_exists(wanted: bool) -> str:
    return " IF EXISTS" if wanted else ""


def _database(scope: NameScope, name: CatalogName) -> Database:
    properties = scope.catalog(name.catalog).load_namespace_properties(name.parts)
    # As in Spark, None if the catalog does not say where its tables are.
    location = cast(str, properties.get("location"))
    return Database(shown_name(name.parts), name.catalog, properties.get("comment"), location)


def _listed(scope: NameScope, name: CatalogName) -> Table:
    try:
        return _table(name, table_or_view(scope, name))
    except IcebergError:
        # Dropped in the meantime, or not readable: Spark lists the name, too.
        return Table(name.parts[-1], name.catalog, list(name.parts[:-1]), None, "", False)


def _table(name: CatalogName, source: NamedTable | View) -> Table:
    properties: Mapping[str, str] = {}
    if isinstance(source, View):
        properties = source.properties
    elif not source.has_other_rows:
        properties = source.table.properties
    return Table(
        name=name.parts[-1],
        catalog=name.catalog,
        namespace=list(name.parts[:-1]),
        description=properties.get(COMMENT),
        tableType="VIEW" if isinstance(source, View) else "MANAGED",
        isTemporary=False,
    )


def _transforms(source: NamedTable | View) -> dict[str, list[type[Transform]]]:
    """The partition transforms of each column, by the column's name."""
    if isinstance(source, View) or source.has_other_rows:
        return {}
    found: dict[str, list[type[Transform]]] = {}
    for field in source.table.spec().fields:
        name = source.table.schema().find_name(field.source_id)
        if name is not None:
            found.setdefault(name, []).append(type(field.transform))
    return found


def _function(catalog: str, name: str) -> Function:
    # It has no class in the JVM.
    return Function(name, catalog, [SYSTEM], function_usage(name), "", False)
