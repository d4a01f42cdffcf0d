"""Stores a table's metadata file in its entry in the Hive Metastore (`HivePointer`).

An alteration is sent with the metadata file that it expects to replace. Metastores with HIVE-26882
refuse it if the table has another; older ones ignore that, so it also takes a lock, unless a
property says that no writer needs it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from icebergds.catalog.hive.calls import (
    ALTER_TABLE,
    CREATE_TABLE,
    DROP_TABLE,
    GET_DATABASE,
    GET_TABLE,
    AlreadyExists,
    InvalidObject,
    InvalidOperation,
    MetaError,
    NoSuchObject,
    RemoteError,
    Unanswerable,
)
from icebergds.catalog.hive.connection import (
    AnswerLost,
    Connection,
    Metastore,
    is_certain,
    is_modified,
    make_change,
)
from icebergds.catalog.hive.encryption import check_metadata, with_digest
from icebergds.catalog.hive.entries import EntryOptions, changed_entry, new_entry
from icebergds.catalog.hive.locks import Lock, LockOptions, table_lock
from icebergds.catalog.hive.messages import (
    INSERT_ONLY_TABLES,
    ClientCapabilities,
    EnvironmentContext,
    GetTableRequest,
    Table,
)
from icebergds.catalog.hive.parameters import (
    DO_NOT_UPDATE_STATISTICS,
    METADATA_LOCATION,
    PREVIOUS_METADATA_LOCATION,
    TABLE_TYPE,
    is_iceberg,
    properties_of_others,
)
from icebergds.catalog.pointer.pointer import Pointer, Swap, applied, refused, uncertain
from icebergds.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitStateUnknownError,
    IcebergError,
    InvalidOptionError,
    NoSuchNamespaceError,
    NoSuchTableError,
    StorageError,
)
from icebergds.io.fileio import FileIO
from icebergds.spec.json.metadata import parse_metadata
from icebergds.spec.metadata import TableMetadata
from icebergds.spec.table_properties import ENGINE_HIVE_LOCK_ENABLED


@dataclass(frozen=True, slots=True)
class HivePointer:
    """The entry of a table; implements `MetadataPointer`.

    Attributes:
        database: its name in lower case, as stored in Hive; so is `table`.
        what: the table in messages, such as `table lake.db.t`.
        lock_enabled: whether changes lock the table if it has no property for this.
    """

    metastore: Metastore
    io: FileIO
    database: str
    table: str
    what: str
    lock_enabled: bool
    lock: LockOptions
    entries: EntryOptions

    def find(self) -> Pointer | None:
        with self.metastore.connect() as connection:
            entry = self.entry(connection)
        if entry is None:
            return None
        parameters = entry.parameters or {}
        previous = parameters.get(PREVIOUS_METADATA_LOCATION)
        return Pointer(parameters.get(METADATA_LOCATION), previous, entry)

    def entry(self, connection: Connection) -> Table | None:
        """The current entry; None if there is none.

        Raises:
            NoSuchTableError: it is a table of another format, or a view.
            StorageError: the metastore cannot be asked.
        """
        request = GetTableRequest(
            self.database, self.table, ClientCapabilities((INSERT_ONLY_TABLES,))
        )
        try:
            entry = connection.ask(GET_TABLE, request).table
        except NoSuchObject:
            return None
        if not is_iceberg(entry.parameters):
            kind = (entry.parameters or {}).get(TABLE_TYPE) or entry.table_type or "unknown"
            raise NoSuchTableError(
                f"{self.what} is not an Iceberg table: its type in the Hive Metastore is {kind}"
            )
        return entry

    def check_metadata(self, found: Pointer, data: bytes, metadata: TableMetadata) -> None:
        """Implements `ChecksMetadata.check_metadata`."""
        assert isinstance(found.token, Table), "a pointer that `find` returned"
        location = found.metadata_location or ""
        check_metadata(found.token.parameters or {}, data, metadata, self.what, location)

    def insert(self, location: str, metadata: TableMetadata) -> Swap:
        entry = new_entry(self.database, self.table, location, metadata, self.entries)
        entry = with_digest(entry, self.io)
        with self.metastore.connect() as connection:
            try:
                connection.tell(CREATE_TABLE, entry)
                return applied()
            except AlreadyExists as error:
                return self._existing(connection, location, error)
            except (InvalidObject, NoSuchObject) as error:
                return refused(self._invalid(connection, error), error)
            except (RemoteError, AnswerLost) as error:
                failure = self._failure("create", error)
                return uncertain(failure, pending=not is_certain(error), cause=error)

    def swap(self, base: Pointer, location: str, metadata: TableMetadata) -> Swap:
        entry = base.token
        assert isinstance(entry, Table), "a pointer that `find` returned"
        assert base.metadata_location is not None, "a commit is based on a metadata file"
        removed = self._removed(entry, base.metadata_location, metadata)

        def changed(current: Table) -> Table:
            changed = changed_entry(current, location, metadata, removed, self.entries)
            return with_digest(changed, self.io)

        with self.metastore.connect() as connection:
            if self.locks(entry):
                return self._alter_locked(connection, base.metadata_location, changed)
            return self._alter_unlocked(connection, changed(entry), base.metadata_location)

    def delete(self, found: Pointer) -> bool:
        """Deletes the entry unconditionally, because a metastore has no condition for it."""
        with self.metastore.connect() as connection:
            try:
                make_change(
                    connection,
                    self.metastore,
                    f"drop {self.what}",
                    lambda: not self.is_taken(connection),
                    DROP_TABLE,
                    self.database,
                    self.table,
                    False,
                )
            except NoSuchObject:
                raise NoSuchTableError(f"{self.what} does not exist in its catalog") from None
        return True

    def move(self, target: HivePointer, found: Pointer) -> bool:
        """Replaces the entry as it was read.

        As in a commit, a lock and the expected metadata file prevent this from undoing a concurrent
        commit.

        Raises:
            CommitConflictError: another writer has the table's lock.
            CommitStateUnknownError: it is unknown whether it was renamed.
        """
        entry, location = found.token, found.metadata_location
        assert isinstance(entry, Table), "a pointer that `find` returned"
        with self.metastore.connect() as connection:

            def is_done() -> bool:
                if self.is_taken(connection):
                    return False
                now = target.find()
                return now is not None and now.metadata_location == location

            with self.locked(connection, location) if self.locks(entry) else nullcontext():
                try:
                    make_change(
                        connection,
                        self.metastore,
                        f"rename {self.what}",
                        is_done,
                        ALTER_TABLE,
                        self.database,
                        self.table,
                        replace(entry, database=target.database, name=target.table),
                        _alteration_context(location),
                    )
                except InvalidOperation as error:
                    # A metastore retries after failures of its database, and may have done it
                    # before.
                    if is_done():
                        return True
                    if target.is_taken(connection):
                        return False
                    raise self.metastore.failure(f"refused to rename {self.what}", error) from error
        return True

    def locks(self, entry: Table) -> bool:
        """Whether changes of the table lock it.

        Raises:
            InvalidOptionError: the table's property is malformed.
        """
        locks = ENGINE_HIVE_LOCK_ENABLED.of(entry.parameters or {})
        return self.lock_enabled if locks is None else locks

    def locked(self, connection: Connection, base: str | None) -> AbstractContextManager[Lock]:
        """The table's lock in the metastore; see `table_lock`.

        Args:
            base: the metadata file for which the lock is useful. Otherwise many writers would queue
                for a lock only to find that others were first.
        """

        def check() -> None:
            entry = self.entry(connection)
            if entry is None or not _has_location(entry, base):
                raise CommitConflictError(
                    f"{self.what} was changed by another commit: it is no longer at {base}, on "
                    "which this one is based"
                )

        return table_lock(connection, self.metastore, self.database, self.table, self.lock, check)

    def is_taken(self, connection: Connection) -> bool:
        """Whether a table or view of any format has this name."""
        try:
            return self.entry(connection) is not None
        except NoSuchTableError:
            return True

    def _alter_unlocked(self, connection: Connection, changed: Table, base: str) -> Swap:
        """Replaces the entry, if the metastore finds that it still has the metadata file `base`."""
        try:
            self._alter(connection, changed, base)
            return applied()
        except (RemoteError, AnswerLost) as error:
            failure = self._failure("change", error)
            return uncertain(failure, pending=not is_certain(error), cause=error)

    def _alter_locked(
        self, connection: Connection, base: str, changed: Callable[[Table], Table]
    ) -> Swap:
        """Replaces the entry under a lock, if it still has the metadata file `base`.

        Raises:
            CommitConflictError: the lock was not obtained, or lost before anything was sent.
            CommitStateUnknownError: it is unknown whether the entry was, or may yet be, replaced.
        """
        with self.locked(connection, base) as lock:
            entry = self.entry(connection)
            if entry is None or not _has_location(entry, base):
                return refused()
            new = changed(entry)
            if lock.failure is not None:
                raise CommitConflictError(
                    f"{self.what} was not changed: its lock {lock.lock_id} may have expired: "
                    f"{lock.failure}"
                ) from lock.failure
            swap = self._alter_in_lock(connection, new, base)
            self._check_kept(lock, swap, new)
            return swap

    def _alter_in_lock(self, connection: Connection, new: Table, base: str) -> Swap:
        try:
            self._alter(connection, new, base)
            return applied()
        except (MetaError, Unanswerable) as error:
            if is_certain(error):
                return uncertain(self._failure("change", error), pending=False, cause=error)
            # Some databases cannot compare the expected metadata file. Under the lock nobody else
            # changes it, and repeating the same change is harmless if it was already made.
            current = self._current(connection, error, new)
            if _same_location(current, new):
                return applied()
            if _has_location(current, base):
                return self._alter_unconditionally(connection, new)
            return refused()
        except RemoteError as error:
            return uncertain(self._failure("change", error), pending=False, cause=error)
        except AnswerLost as error:
            return self._settled(connection, new, error)

    def _alter_unconditionally(self, connection: Connection, new: Table) -> Swap:
        try:
            self._alter(connection, new, None)
            return applied()
        except (RemoteError, AnswerLost) as error:
            if is_certain(error):
                return uncertain(self._failure("change", error), pending=False, cause=error)
            return self._settled(connection, new, error)

    def _settled(self, connection: Connection, new: Table, error: Exception) -> Swap:
        """The outcome of a change whose answer was lost, as far as the entry shows it.

        An older metastore may still make the change later, over the changes of others, so an
        unchanged entry proves nothing.
        """
        for wait_s in (0.0, 0.1, 0.4, 1.5):
            time.sleep(wait_s)
            if _same_location(self._current(connection, error, new), new):
                return applied()
        raise self._unknown(new, error) from error

    def _current(self, connection: Connection, error: Exception, new: Table) -> Table:
        try:
            entry = self.entry(connection)
        except IcebergError as other:
            raise self._unknown(new, f"{error}; {other}") from error
        if entry is None:
            raise self._unknown(new, f"{error}; the table was dropped since") from error
        return entry

    def _check_kept(self, lock: Lock, swap: Swap, new: Table) -> None:
        """Another writer that got the lock since may unknowingly overwrite the change."""
        if lock.failure is not None and (swap.applied or swap.uncertain):
            reason = f"its lock {lock.lock_id} may have expired meanwhile: {lock.failure}"
            raise self._unknown(new, reason) from lock.failure

    def _alter(self, connection: Connection, new: Table, expected: str | None) -> None:
        context = _alteration_context(expected)
        connection.tell(ALTER_TABLE, self.database, self.table, new, context)

    def _existing(self, connection: Connection, location: str, error: Exception) -> Swap:
        """The outcome of a creation that was refused because the entry exists.

        A metastore retries after failures of its database, and may have created it itself.
        """
        exists = AlreadyExistsError(f"{self.what} already exists")
        try:
            entry = self.entry(connection)
        except NoSuchTableError:
            return refused(exists, error)
        except StorageError:
            return uncertain(exists, pending=False, cause=error)
        if entry is not None and _has_location(entry, location):
            return applied()
        return refused(exists, error)

    def _invalid(self, connection: Connection, error: Exception) -> IcebergError:
        """The reason why an entry cannot be created."""
        try:
            connection.ask(GET_DATABASE, self.database)
        except NoSuchObject:
            return NoSuchNamespaceError(
                f"{self.what} was not created: there is no namespace {self.database}"
            )
        except StorageError as other:
            return other
        return InvalidOptionError(f"{self.what} cannot be created in a Hive Metastore: {error}")

    def _removed(self, entry: Table, base: str, metadata: TableMetadata) -> frozenset[str]:
        """The properties that a commit removes; the entry mixes them with others' parameters."""
        if not properties_of_others(entry.parameters or {}, metadata):
            return frozenset()
        data = self.io.read_bytes(base)
        earlier = parse_metadata(data, base, self.io.max_metadata_bytes).properties
        return frozenset(earlier.keys() - metadata.properties.keys())

    def _failure(self, verb: str, error: Exception) -> IcebergError:
        if is_modified(error):
            return CommitConflictError(f"{self.what} was changed by another commit: {error}")
        if not isinstance(error, InvalidOperation):
            return self.metastore.failure(f"failed to {verb} {self.what}", error)
        hint = ""
        if "incompatible" in str(error):
            hint = (
                "; set metastore.disallow.incompatible.col.type.changes to false in the metastore, "
                "which Iceberg's changes of columns need"
            )
        return self.metastore.failure(f"refused to {verb} {self.what}", f"{error}{hint}")

    def _unknown(self, new: Table, why: object) -> CommitStateUnknownError:
        location = (new.parameters or {})[METADATA_LOCATION]
        return CommitStateUnknownError(
            f"{self.what}: it is unknown whether {location} was committed ({why}); check whether "
            "it is in the metadata log before trying again"
        )


def _alteration_context(expected: str | None) -> EnvironmentContext:
    """The condition of an alteration: only if the table has the expected metadata file, if any."""
    properties = {DO_NOT_UPDATE_STATISTICS: "true"}
    if expected is not None:
        properties["expected_parameter_key"] = METADATA_LOCATION
        properties["expected_parameter_value"] = expected
    return EnvironmentContext(properties)


def _has_location(entry: Table, location: str | None) -> bool:
    return (entry.parameters or {}).get(METADATA_LOCATION) == location


def _same_location(entry: Table, other: Table) -> bool:
    return _has_location(entry, (other.parameters or {}).get(METADATA_LOCATION))
