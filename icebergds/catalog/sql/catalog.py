"""Implements the SQL catalog, in the database tables of Java's JDBC catalog and PyIceberg."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from typing import Literal

from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from icebergds.catalog.base import Identifier, nearest_namespace, nearest_table
from icebergds.catalog.pointer.table_operations import PointerTableOperations
from icebergds.catalog.sql import transactions, views
from icebergds.catalog.sql.database import Database, Write
from icebergds.catalog.sql.layout import prepare_tables
from icebergds.catalog.sql.mysql import MYSQL, be_strict, require_transactions
from icebergds.catalog.sql.pointer import SqlPointer
from icebergds.catalog.sql.secrets import without_secrets
from icebergds.catalog.sql.tables import EXISTS, VIEW, NamespaceRows, TableRows
from icebergds.catalog.sql.timeouts import timeouts
from icebergds.catalog.sql.url import JDBC_PREFIX, database_url, missing_driver
from icebergds.catalog.views import view_not_table
from icebergds.commit.operations import TableCommit, TableState
from icebergds.errors import (
    AlreadyExistsError,
    FormatError,
    InvalidOptionError,
    MissingFileError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.updates.table_updates import TableUpdate
from icebergds.suggestions import did_you_mean, nearest_of

__all__ = ["SqlCatalog", "sql_catalog"]


@dataclass(frozen=True, slots=True)
class SqlCatalog:
    """A catalog that stores the current metadata file of each table in a row of a database.

    A namespace exists if it was created or contains tables or namespaces. The namespace () always
    exists.

    Attributes:
        require_transactions: raises UnsupportedFeatureError if the database's tables do not take
            part in transactions.
    """

    name: str
    warehouse: str | None
    io: FileIO
    tables: TableRows
    namespaces: NamespaceRows
    require_transactions: Callable[[], None] = field(repr=False, compare=False)

    def operations(self, identifier: Identifier) -> PointerTableOperations:
        self._check(identifier)
        name = self._named(identifier)
        return PointerTableOperations(
            SqlPointer(self.tables, identifier, f"table {name}"), self.io, name
        )

    def load(self, identifier: Identifier) -> TableState:
        """The current state of a table.

        Raises:
            NoSuchTableError: the catalog has no such table; the message suggests a similar name.
            InvalidOptionError: the identifier has an empty part.
        """
        try:
            return self.operations(identifier).refresh()
        except NoSuchTableError as error:
            namespace = identifier[:-1]
            if self.tables.typed and replace(self.tables, kind=VIEW).find(identifier):
                raise NoSuchTableError(view_not_table(self, identifier)) from None
            near = nearest_table(identifier, self.tables.names(namespace))
            if namespace and not self.namespaces.below(namespace):
                near = f"; there is no namespace {'.'.join(namespace)}"
                near += nearest_namespace(namespace, self.namespaces.below(()))
                near += self._other_catalogs()
            raise NoSuchTableError(f"{error}{near}") from None

    def new_table_location(self, identifier: Identifier) -> str:
        """A location in the `location` of the namespace, or else in the warehouse.

        Raises:
            InvalidOptionError: there is no warehouse, or the identifier is not a directory name.
        """
        self._check(identifier)
        if any(part in (".", "..") or "/" in part for part in identifier):
            raise InvalidOptionError(
                f"catalog {self.name}: {'.'.join(identifier)!r} cannot be the name of a directory; "
                "give the table a location"
            )
        *namespace, table = identifier
        if location := self.namespaces.properties(tuple(namespace)).get("location"):
            return f"{self.io.absolute(location).rstrip('/')}/{table}"
        if not self.warehouse:
            raise InvalidOptionError(
                f"catalog {self.name} has no warehouse for {'.'.join(identifier)}: set "
                "option('catalog.warehouse', '<directory>'), or give the table a location"
            )
        return "/".join((self.io.absolute(self.warehouse).rstrip("/"), *namespace, table))

    def check_creation(self, identifier: Identifier, location: str) -> None:
        """Checks that the table's namespace exists.

        Raises:
            NoSuchNamespaceError: its namespace does not exist.
            InvalidOptionError: the identifier has an empty part, or a namespace with dots.
        """
        self._check(identifier)
        self._require(identifier[:-1])

    def create(self, identifier: Identifier, updates: Sequence[TableUpdate]) -> TableState:
        """Creates a table in an existing namespace.

        Raises:
            AlreadyExistsError: a table or view with this name exists.
            NoSuchNamespaceError: its namespace does not exist.
            CommitStateUnknownError: it is unknown whether the table was created.
        """
        operations = self.operations(identifier)
        self._require(identifier[:-1])
        return operations.create(updates)

    def register(self, identifier: Identifier, metadata_location: str) -> TableState:
        """Adds an existing table by its metadata file, which stays where it is.

        Raises:
            AlreadyExistsError: a table or view with this name exists.
            NoSuchNamespaceError: its namespace does not exist.
            MissingFileError: the metadata file does not exist.
            CommitStateUnknownError: it is unknown whether the table was registered.
        """
        operations = self.operations(identifier)
        self._require(identifier[:-1])
        return operations.register(self.io.absolute(metadata_location))

    @property
    def commits_atomically(self) -> bool:
        """In one transaction of the database."""
        return True

    def check_transactions(self) -> None:
        """Raises UnsupportedFeatureError if the tables' engine lacks them (MySQL, MariaDB)."""
        self.require_transactions()

    def commit_tables(self, commits: Sequence[TableCommit]) -> Sequence[TableState]:
        """Commits to several tables in one transaction; errors are those of `CommitsTables`."""
        self.check_transactions()
        return transactions.commit_tables(
            self.tables, [(self.operations(each.identifier), each) for each in commits]
        )

    def drop(self, identifier: Identifier) -> TableState | None:
        """Drops a table but keeps its files.

        Returns:
            The table's last state; None if its metadata is missing or damaged.

        Raises:
            NoSuchTableError: there is no such table.
        """
        operations = self.operations(identifier)
        while True:
            row = self.tables.find(identifier)
            if row is None:
                raise NoSuchTableError(f"table {operations.name} does not exist in its catalog")
            try:
                state = operations.refresh()
            except (FormatError, MissingFileError):
                state = None
            last = row.metadata_location if state is None else state.metadata_location
            write = self.tables.delete(identifier, last)
            # Repeated if there was a commit meanwhile.
            if self.tables.database.require(
                write,
                f"drop table {operations.name}",
                lambda: self.tables.find(identifier) is None,
            ):
                return state

    def rename(self, source: Identifier, target: Identifier) -> None:
        """Renames a table; its files stay where they are.

        Raises:
            NoSuchTableError: there is no such table.
            NoSuchNamespaceError: the namespace of the target does not exist.
            AlreadyExistsError: the target exists.
        """
        self._check(source)
        self._check(target)
        self._require(target[:-1])
        exists = AlreadyExistsError(
            f"table {self._named(source)} cannot be renamed: {self._named(target)} exists"
        )
        if source == target and self.tables.find(source) is not None:
            raise exists
        write = self.tables.rename(source, target)
        if write.breaks_rule and self.tables.has_key(target):
            raise exists
        if not self.tables.database.require(
            write,
            f"rename table {self._named(source)}",
            lambda: self.tables.find(source) is None and self.tables.find(target) is not None,
        ):
            raise NoSuchTableError(f"table {self._named(source)} does not exist in its catalog")

    def list_tables(self, namespace: Identifier) -> list[Identifier]:
        """Identifiers of a namespace's tables, sorted. Raises NoSuchNamespaceError."""
        self._require(namespace)
        return sorted((*namespace, name) for name in self.tables.names(namespace))

    load_view = views.load_view
    create_view = views.create_view
    commit_view = views.commit_view
    drop_view = views.drop_view
    rename_view = views.rename_view
    list_views = views.list_views
    new_view_location = views.new_view_location

    def list_namespaces(self, parent: Identifier = ()) -> list[Identifier]:
        """Namespaces directly below another, sorted. Raises NoSuchNamespaceError."""
        depth = len(parent) + 1
        return sorted({n[:depth] for n in self._require(parent) if len(n) >= depth})

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
        below = self._require(namespace) - {namespace}
        if not namespace or below or self.namespaces.has_rows_of_tables(namespace):
            what = f"contains {'.'.join(min(below))}" if below else "contains tables or views"
            raise NamespaceNotEmptyError(f"namespace {self._named(namespace)} is not empty: {what}")
        write = self.namespaces.delete(namespace)
        self._finish(write, "drop", namespace, lambda: not self.namespaces.below(namespace))

    def namespace_properties(self, namespace: Identifier) -> dict[str, str]:
        """Raises NoSuchNamespaceError."""
        self._require(namespace)
        return self.namespaces.properties(namespace)

    def update_namespace_properties(
        self, namespace: Identifier, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """Removes and sets properties in one transaction.

        Raises:
            NoSuchNamespaceError: there is no such namespace.
            InvalidOptionError: a property is both removed and set, or is the reserved `exists`.
        """
        if both := set(removals) & updates.keys():
            raise InvalidOptionError(
                f"namespace {self._named(namespace)}: {', '.join(sorted(both))} cannot be both "
                "removed and set"
            )
        self._check_unreserved((*removals, *updates))
        self._require(namespace)

        def is_changed() -> bool:
            found = self.namespaces.properties(namespace)
            return updates.items() <= found.items() and found.keys().isdisjoint(removals)

        write = self.namespaces.update(namespace, set(removals), updates)
        self._finish(write, "change", namespace, is_changed)

    def _finish(
        self, write: Write, verb: str, namespace: Identifier, is_done: Callable[[], bool]
    ) -> None:
        what = f"{verb} namespace {self._named(namespace)}"
        self.namespaces.database.require(write, what, is_done)

    def _require(self, namespace: Identifier) -> set[Identifier]:
        """An existing namespace and those below it. Raises NoSuchNamespaceError."""
        self._check_namespace(namespace)
        found = self.namespaces.below(namespace)
        if namespace and not found:
            text = ".".join(namespace)
            near = did_you_mean(text, (".".join(n) for n in self.namespaces.below(())))
            hint = near or f"create it with create_namespace({text!r}) or CREATE NAMESPACE"
            raise NoSuchNamespaceError(
                f"catalog {self.name} has no namespace {text}; {hint}{self._other_catalogs()}"
            )
        return found

    def _other_catalogs(self) -> str:
        """A hint: the database's other catalogs, of which one may be meant; may be empty."""
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

    def _named(self, identifier: Identifier) -> str:
        return ".".join((self.name, *identifier))


def sql_catalog(name: str, properties: Mapping[str, str], io: FileIO) -> SqlCatalog:
    """The catalog in the database at a `uri`.

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
    # Relative paths are resolved as by the storage, so every process uses the same database.
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
        # Asked once; a refusal is not remembered.
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
    """The catalog's own properties, by PyIceberg's names."""
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
