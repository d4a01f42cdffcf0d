"""Implements the SQL catalog, in the database tables of Java's JDBC catalog and PyIceberg."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from typing import ClassVar, Literal

from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from icebergds.catalog.base import Identifier, nearest_table
from icebergds.catalog.pointer.catalog import PointerCatalog, has_changes
from icebergds.catalog.pointer.view_operations import PointerViewOperations
from icebergds.catalog.sql.database import Database, Write, without_secrets
from icebergds.catalog.sql.layout import prepare_tables
from icebergds.catalog.sql.mysql import MYSQL, be_strict, require_transactions
from icebergds.catalog.sql.pointer import SqlPointer, commit_tables
from icebergds.catalog.sql.tables import EXISTS, VIEW, NamespaceRows, TableRows
from icebergds.catalog.sql.url import JDBC_PREFIX, database_url, missing_driver, timeouts
from icebergds.catalog.views import ViewState, no_view
from icebergds.commit.operations import TableCommit, TableState
from icebergds.errors import (
    AlreadyExistsError,
    InvalidOptionError,
    NamespaceNotEmptyError,
    NoSuchViewError,
    UnsupportedFeatureError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.views.updates import ViewUpdate
from icebergds.suggestions import nearest_of

__all__ = ["SqlCatalog", "sql_catalog"]


@dataclass(frozen=True, slots=True)
class SqlCatalog(PointerCatalog):
    """A catalog that stores the current metadata file of each table in a row of a database.

    A namespace exists if it was created or contains tables or namespaces. The namespace () always
    exists.

    Attributes:
        require_transactions: raises UnsupportedFeatureError if the database's tables do not support
            transactions.
    """

    tables: TableRows
    namespaces: NamespaceRows
    require_transactions: Callable[[], None] = field(repr=False, compare=False)
    deletes_exactly: ClassVar[bool] = True

    # Tables.

    def load(self, identifier: Identifier) -> TableState:
        """The current state of a table; errors are those of `PointerCatalog.load`."""
        with no_view(self, identifier, "load it with load_view"):
            return PointerCatalog.load(self, identifier)

    def list_tables(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's tables, sorted. Raises NoSuchNamespaceError."""
        return self._listed(self.tables, namespace)

    @property
    def commits_atomically(self) -> bool:
        """It commits in one database transaction."""
        return True

    def check_transactions(self) -> None:
        """Raises UnsupportedFeatureError if the tables' engine lacks them (MySQL, MariaDB)."""
        self.require_transactions()

    def commit_tables(self, commits: Sequence[TableCommit]) -> Sequence[TableState]:
        """Commits to several tables in one transaction; errors are those of `CommitsTables`."""
        self.check_transactions()
        return commit_tables(
            self.tables, [(self.operations(each.identifier), each) for each in commits]
        )

    # Views, in rows with their own type.

    def load_view(self, identifier: Identifier) -> ViewState:
        """Implements `ViewCatalog.load_view`."""
        try:
            return self._view(identifier).refresh()
        except NoSuchViewError as error:
            near = nearest_table(identifier, self._views.names(identifier[:-1]))
            raise NoSuchViewError(f"{error}{near}") from None

    def create_view(self, identifier: Identifier, updates: Sequence[ViewUpdate]) -> ViewState:
        """Implements `ViewCatalog.create_view`."""
        operations = self._view(identifier)
        self._require(identifier[:-1])
        return operations.create(updates)

    def register_view(self, identifier: Identifier, metadata_location: str) -> ViewState:
        """Implements `RegisteringViews.register_view`."""
        operations = self._view(identifier)
        self._require(identifier[:-1])
        return operations.register(self.io.absolute(metadata_location))

    def commit_view(
        self, identifier: Identifier, base: ViewState, updates: Sequence[ViewUpdate]
    ) -> ViewState:
        """Implements `ViewCatalog.commit_view`."""
        return self._view(identifier).commit(base, updates)

    def drop_view(self, identifier: Identifier) -> None:
        """Implements `ViewCatalog.drop_view`."""
        operations = self._view(identifier)
        # Repeated if there is a concurrent commit.
        while not operations.pointer.delete(operations.existing()):
            pass

    def rename_view(self, source: Identifier, target: Identifier) -> None:
        """Implements `ViewCatalog.rename_view`."""
        old, new = self._view(source), self._view(target)
        self._require(target[:-1])
        old.rename(new)

    def list_views(self, namespace: Identifier) -> list[Identifier]:
        """Implements `ViewCatalog.list_views`."""
        return self._listed(self._views, namespace)

    def new_view_location(self, identifier: Identifier) -> str:
        """Implements `ViewCatalog.new_view_location`, with the location of a table of this name."""
        return self.new_table_location(identifier)

    # Namespaces.

    def list_namespaces(self, parent: Identifier = ()) -> list[Identifier]:
        """Namespaces directly below another, sorted. Raises NoSuchNamespaceError."""
        depth = len(parent) + 1
        return sorted({n[:depth] for n in self._below(parent) if len(n) >= depth})

    def create_namespace(self, namespace: Identifier, properties: Mapping[str, str]) -> None:
        """Creates a namespace; its parents need not exist.

        Raises:
            AlreadyExistsError: it exists, even if only because it contains something.
            InvalidOptionError: the property `exists` is reserved.
        """
        self._check_namespace(namespace)
        self._check_unreserved(properties)
        exists = AlreadyExistsError(f"namespace {self._named(namespace)} already exists")
        if not namespace or self.namespaces.below(namespace):
            raise exists
        write = self.namespaces.insert(namespace, properties)
        if write.breaks_rule and self.namespaces.has_key(namespace):
            raise exists
        self._finish(write, "create", namespace, lambda: bool(self.namespaces.below(namespace)))

    def drop_namespace(self, namespace: Identifier) -> None:
        """Drops an empty namespace. Raises NoSuchNamespaceError, NamespaceNotEmptyError."""
        below = self._below(namespace) - {namespace}
        if not namespace or below or self.namespaces.has_rows_of_tables(namespace):
            what = f"contains {'.'.join(min(below))}" if below else "contains tables or views"
            raise NamespaceNotEmptyError(f"namespace {self._named(namespace)} is not empty: {what}")
        write = self.namespaces.delete(namespace)
        self._finish(write, "drop", namespace, lambda: not self.namespaces.below(namespace))

    def namespace_properties(self, namespace: Identifier) -> dict[str, str]:
        """Raises NoSuchNamespaceError."""
        self._require(namespace)
        return self.namespaces.properties(namespace)

    def _update_namespace(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        self._check_unreserved((*removals, *updates))
        self._require(namespace)

        def is_changed() -> bool:
            return has_changes(self.namespaces.properties(namespace), removals, updates)

        write = self.namespaces.update(namespace, set(removals), updates)
        self._finish(write, "change", namespace, is_changed)

    def _finish(
        self, write: Write, verb: str, namespace: Identifier, is_done: Callable[[], bool]
    ) -> None:
        what = f"{verb} namespace {self._named(namespace)}"
        self.namespaces.database.require(write, what, is_done)

    # Implementation of `PointerCatalog`.

    def _pointer(self, identifier: Identifier) -> SqlPointer:
        return SqlPointer(self.tables, identifier, f"table {self._named(identifier)}")

    def _require(self, namespace: Identifier) -> None:
        self._below(namespace)

    def _location_of(self, namespace: Identifier) -> str | None:
        return self.namespaces.properties(namespace).get("location")

    def _in_warehouse(self, namespace: Identifier) -> str | None:
        if not self.warehouse:
            return None
        return "/".join((self.io.absolute(self.warehouse).rstrip("/"), *namespace))

    def _some_tables(self, namespace: Identifier) -> list[str] | None:
        exists = not namespace or self.namespaces.below(namespace)
        return self.tables.names(namespace) if exists else None

    def _some_namespaces(self) -> set[Identifier]:
        return self.namespaces.below(())

    def _elsewhere(self) -> str:
        """A hint: other catalogs in the database, in case one of them is meant; may be empty."""
        names = self.namespaces.other_catalogs()
        if not names:
            return ""
        return (
            f"; its database also has {'the catalog' if len(names) == 1 else 'catalogs'} "
            f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''}: a catalog has only what "
            "was created under its own name"
        )

    def _check(self, identifier: Identifier) -> None:
        if not identifier or not identifier[-1]:
            raise InvalidOptionError(
                f"catalog {self.name}: {'.'.join(identifier)!r} is not an identifier: expected "
                "names joined by dots, such as db.events; to load a location, leave the catalog out"
            )
        self._check_namespace(identifier[:-1])

    def _check_namespace(self, namespace: Identifier) -> None:
        # The database stores parts joined by dots, so a dot in a part would be ambiguous.
        if any(not part or "." in part for part in namespace):
            raise InvalidOptionError(
                f"catalog {self.name}: {namespace!r} is not a namespace: expected names without "
                "dots, such as ('db', 'raw')"
            )

    def _check_unreserved(self, names: Sequence[str] | Mapping[str, str]) -> None:
        if EXISTS in names:
            raise InvalidOptionError(
                f"catalog {self.name}: the namespace property {EXISTS!r} is reserved"
            )

    def _below(self, namespace: Identifier) -> set[Identifier]:
        """An existing namespace and those below it. Raises NoSuchNamespaceError."""
        self._check_namespace(namespace)
        found = self.namespaces.below(namespace)
        if namespace and not found:
            raise self._no_namespace(namespace)
        return found

    def _listed(self, rows: TableRows, namespace: Identifier) -> list[Identifier]:
        self._require(namespace)
        return sorted((*namespace, name) for name in rows.names(namespace))

    def _view(self, identifier: Identifier) -> PointerViewOperations:
        self._check(identifier)
        name = self._named(identifier)
        pointer = SqlPointer(self._views, identifier, f"view {name}")
        return PointerViewOperations(pointer, self.io, name)

    @property
    def _views(self) -> TableRows:
        """The rows of views. Raises UnsupportedFeatureError if the layout does not support them."""
        if not self.tables.typed:
            raise UnsupportedFeatureError(
                f"catalog {self.name} has no views: its database tables are of version 0; set its "
                "property jdbc.schema-version to V1, which adds a column to them"
            )
        return replace(self.tables, kind=VIEW)


def sql_catalog(name: str, properties: Mapping[str, str], io: FileIO) -> SqlCatalog:
    """The catalog in the database at `uri`.

    Args:
        name: the catalog's name, which is stored in its rows: another name is another catalog.
        properties: `uri`; `warehouse`, for tables created without a location;
            `init_catalog_tables` (true: missing database tables are created); `schema_version` (v1:
            database tables of version 0 are upgraded); `echo` (true or debug: statements are
            logged); `pool_pre_ping`, accepted as PyIceberg has it but without effect, because
            connections are not reused; `jdbc.user`, `jdbc.password` and other parameters of Java's
            catalog.

    Raises:
        InvalidOptionError: a property is unknown or malformed, or the database's driver is missing.
        IcebergError: the database cannot be used.
    """
    options = _options(name, properties)
    # Relative paths are resolved like the storage's, so that every process uses the same database.
    url = database_url(name, properties, io.resolve(""))
    try:
        engine = _engine(url, _echo(name, options))
    except (ImportError, NoSuchModuleError) as error:
        raise missing_driver(name, url, error) from error
    except (SQLAlchemyError, TypeError, ValueError) as error:
        # Not chained: it may quote a parameter.
        raise InvalidOptionError(
            f"catalog {name}: the driver of {url.drivername} databases refuses the uri or its "
            f"parameters: {without_secrets(str(error), url)}"
        ) from None
    database = Database(name, engine)
    typed = prepare_tables(
        database,
        create=_flag(name, options, "init_catalog_tables", True),
        upgrade=_schema_version(name, options) == "v1",
    )
    warehouse = properties.get("warehouse")
    return SqlCatalog(
        name,
        warehouse,
        io,
        TableRows(database, typed),
        NamespaceRows(database),
        # Checked once; a refusal is not cached.
        cache(partial(require_transactions, database)),
    )


@lru_cache(maxsize=32)
def _engine(url: URL, echo: bool | Literal["debug"]) -> Engine:
    """A cached engine for a database; a new one would first query the server's version."""
    # Connections are not pooled: processes may be forked, and servers close idle connections.
    engine = create_engine(
        url, poolclass=NullPool, echo=echo, connect_args=timeouts(url), hide_parameters=True
    )
    if url.get_backend_name() in MYSQL:
        be_strict(engine)
    return engine


_PROPERTIES = (
    "type",
    "uri",
    "warehouse",
    "init_catalog_tables",
    "schema_version",
    "echo",
    "pool_pre_ping",
)
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def _options(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The catalog's own properties, with PyIceberg's names."""
    options: dict[str, str] = {}
    for key, value in properties.items():
        # Names from environment variables have dashes; Java's have dashes and a prefix.
        option = key.removeprefix(JDBC_PREFIX).replace("-", "_")
        if "." in key and not (key.startswith(JDBC_PREFIX) and option in _PROPERTIES):
            continue
        if option not in _PROPERTIES:
            raise InvalidOptionError(
                f"catalog {name}: an SQL catalog has no property {key!r}; "
                f"{nearest_of(option, _PROPERTIES)} (besides those of the storage, such as "
                "s3.endpoint)"
            )
        options[option] = value
    _flag(name, options, "pool_pre_ping", False)
    return options


def _flag(name: str, options: Mapping[str, str], option: str, default: bool) -> bool:
    text = options.get(option)
    if text is None:
        return default
    value = _BOOLEANS.get(text.strip().lower())
    if value is None:
        raise InvalidOptionError(f"catalog {name}: {option} is {text!r}, expected true or false")
    return value


def _echo(name: str, options: Mapping[str, str]) -> bool | Literal["debug"]:
    if options.get("echo", "").strip().lower() == "debug":
        return "debug"
    return _flag(name, options, "echo", False)


def _schema_version(name: str, options: Mapping[str, str]) -> str:
    version = options.get("schema_version", "v0").lower()
    if version not in ("v0", "v1"):
        raise InvalidOptionError(f"catalog {name}: schema_version is {version!r}, expected v0, v1")
    return version
