"""The types of catalogs of this package; each is imported only when one is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from icebergds.catalog.base import Catalog
from icebergds.catalog.plugins import CatalogFactory
from icebergds.errors import InvalidOptionError
from icebergds.io.fileio import FileIO


@dataclass(frozen=True, slots=True)
class OwnType:
    """A type of catalogs; called as a `CatalogFactory`.

    Attributes:
        factory: what makes a catalog, as `module:function` in this package.
        needs: the module of another package that it needs; empty if none.
        install: what to install for it.
    """

    factory: str
    needs: str = ""
    install: str = ""

    def __call__(self, name: str, properties: Mapping[str, str], io: FileIO) -> Catalog:
        """Makes a catalog. Raises InvalidOptionError if what it needs is not installed."""
        if self.needs and find_spec(self.needs) is None:
            raise InvalidOptionError(
                f"catalog {name} needs the package {self.needs}: pip install {self.install}"
            )
        module, _, function = self.factory.partition(":")
        factory: CatalogFactory = getattr(import_module(f"icebergds.catalog.{module}"), function)
        return factory(name, properties, io)


_FILESYSTEM = OwnType("filesystem.catalog:file_system_catalog")
_SQL = OwnType(
    "sql.catalog:sql_catalog",
    "sqlalchemy",
    "'icebergds[sql]', or 'icebergds[sql-postgres]' for PostgreSQL, 'icebergds[sql-mysql]' for "
    "MariaDB and MySQL",
)

OWN_TYPES: Mapping[str, OwnType] = {
    "filesystem": _FILESYSTEM,
    # Java Iceberg's names of the same types.
    "hadoop": _FILESYSTEM,
    "sql": _SQL,
    "jdbc": _SQL,
    "rest": OwnType("rest.catalog:rest_catalog", "requests", "'icebergds[rest]'"),
    "hive": OwnType("hive.catalog:hive_catalog", "thrift", "'icebergds[hive]'"),
    "glue": OwnType("glue.catalog:glue_catalog", "botocore", "'icebergds[glue]'"),
    "dynamodb": OwnType("dynamodb.catalog:dynamodb_catalog", "botocore", "'icebergds[dynamodb]'"),
    "s3tables": OwnType("s3tables.catalog:s3tables_catalog", "botocore", "'icebergds[s3tables]'"),
}
"""By the property `type`."""

TYPES_BY_SCHEME: Mapping[str, str] = {
    "postgresql": "sql",
    "postgres": "sql",
    "mysql": "sql",
    "mariadb": "sql",
    "sqlite": "sql",
    "jdbc": "sql",
    "thrift": "hive",
    "http": "rest",
    "https": "rest",
}
"""The type of a catalog without `type`, by the scheme of its `uri`."""
