"""Reads, writes, lists and deletes files by their locations in table metadata.

Local files are accessed directly, all others through fsspec. A location is taken literally: it is
not percent-decoded, and `?`, `#`, spaces and brackets have no special meaning.
"""

from __future__ import annotations

import builtins
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, TypeVar

import pyarrow as pa

from icebergds.errors import (
    MissingFileError,
    StorageError,
    UnsupportedFeatureError,
)
from icebergds.io import local_files
from icebergds.io.deleting import delete_key, delete_keys
from icebergds.io.exclusive import create_local, create_remote, require_exclusive
from icebergds.io.failures import storage_error, storage_failures
from icebergds.io.file_systems import use_file_system
from icebergds.io.kept_reads import MAX_KEPT_BYTES, KeptReads, RecentReads
from icebergds.io.key_wrapping import WrapsKeys
from icebergds.io.location_checks import (
    leaves_by_dots,
    leaving_error,
    refuse_chains,
    refuse_other_schemes,
)
from icebergds.io.locations import (
    absolute_location,
    is_absolute,
    is_local,
    joined_location,
    protocol_of,
    split_location,
    without_dot,
)
from icebergds.io.ranged_file import Open, PrefetchingFile, Range
from icebergds.io.read_ahead import ReadAhead
from icebergds.io.recursive_listing import (
    ListedFiles,
    list_local,
    list_remote,
    modified_local,
    modified_remote,
)
from icebergds.io.remote_files import (
    MARKED,
    OutputStream,
    exists_in,
    is_directory_in,
    make_marker,
    names_in,
    open_remote,
    read_whole,
    remove_marker,
)
from icebergds.io.storage_options import (
    MAX_BLOCK_BYTES,
    MAX_METADATA_BYTES,
    STORAGE_CREDENTIALS,
    check_storage_options,
    size_limit,
)
from icebergds.io.vended_credentials import (
    VendedCredentials,
    credentials_of,
    credentials_to_text,
)
from icebergds.io.webhdfs import WEBHDFS
from icebergds.reporting import advance

_T = TypeVar("_T")


@dataclass(frozen=True)
class FileIO:
    """Reads and writes files by their locations in table metadata.

    It holds no open handles, so it is cheap to pickle and safe to share between threads.

    Args:
        properties: storage properties under Iceberg's names (`s3.endpoint`, `s3.access-key-id`,
            `gcs.oauth2.token`, `adls.account-key`, ...), and the options of
            `io.storage_options`; others are ignored.
        location_map: maps prefixes of locations to their replacements, for tables that were
            moved. The longest prefix that ends at a path segment wins, with or without a slash at
            its end; the empty prefix matches every relative path.
        working_directory: the base of relative paths that are not mapped; if empty, the process's
            working directory.
        table_root: the root directory of the one table whose files are accessed; a location with a
            `..` segment must then be inside of it. If empty, such locations are not checked.
        vended: credentials that a catalog gave for the files of the table; by default those of the
            property `storage-credentials`.
        rows_refused: why the rows of the table must not be read, if its catalog restricts that;
            its files can be accessed all the same, which appends need.
        recent: metadata that this process read or wrote lately; None to read all of it anew.
        key_service: wraps the keys of encrypted tables; None if none is configured. Copies in other
            processes do not have it.
        list_keys: gives the keys of the table's encrypted manifest lists by their ids; None if
            there are none. Copies in other processes have none.

    Raises:
        InvalidOptionError: an option among the properties is malformed.
    """

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    location_map: Mapping[str, str] = field(default_factory=dict)
    working_directory: str = ""
    table_root: str = ""
    vended: VendedCredentials | None = field(default=None, compare=False)
    rows_refused: str = field(default="", repr=False)
    recent: RecentReads | None = field(default=None, repr=False, compare=False)
    key_service: WrapsKeys | None = field(default=None, repr=False, compare=False)
    list_keys: Callable[[str], object] | None = field(default=None, repr=False, compare=False)
    _kept: KeptReads | None = field(default=None, init=False, repr=False, compare=False)
    _ahead: ReadAhead[pa.NativeFile] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    _read: ReadAhead[bytes] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        directory = os.path.abspath(self.working_directory)
        mapping = {
            prefix: absolute_location(target, directory)
            for prefix, target in sorted(self.location_map.items(), key=lambda kv: -len(kv[0]))
        }
        object.__setattr__(self, "working_directory", directory)
        object.__setattr__(self, "location_map", mapping)
        object.__setattr__(self, "properties", dict(self.properties))
        # A malformed option is an error before it matters.
        check_storage_options(self.properties)
        if self.vended is None:
            object.__setattr__(self, "vended", credentials_of(self.properties))

    @property
    def all_properties(self) -> Mapping[str, str]:
        """The properties, with the vended credentials as they are now, for other processes."""
        if self.vended is None:
            return self.properties
        text = credentials_to_text(self.vended.current())
        return {**self.properties, STORAGE_CREDENTIALS: text}

    def require_rows(self) -> None:
        """Checks that the rows of the table, and metadata that tells of them, may be read.

        Raises:
            UnsupportedFeatureError: the table's catalog restricts that; names the restrictions.
        """
        if self.rows_refused:
            raise UnsupportedFeatureError(self.rows_refused)

    @property
    def max_metadata_bytes(self) -> int | None:
        """The user's limit for decompressed metadata files; None for the default."""
        return size_limit(self.properties, MAX_METADATA_BYTES)

    @property
    def max_block_bytes(self) -> int | None:
        """The user's limit for decompressed Avro blocks and Puffin blobs; None for the default."""
        return size_limit(self.properties, MAX_BLOCK_BYTES)

    def resolve(self, location: str) -> str:
        """Maps a location to an absolute local path, or to a location with its scheme.

        Raises:
            InvalidMetadataError: it leaves the table's root directory by a `..` segment.
            InvalidOptionError: its scheme is neither known nor allowed, or it has several.
        """
        path, rest = self._mapped(location)
        if not is_local(path):
            refuse_other_schemes(location, split_location(path)[0], self.properties)
        elif "::" in location:
            refuse_chains(location)
        if self.table_root and ".." in rest and ".." in rest.split("/"):
            root, _ = self._mapped(self.table_root)
            if leaves_by_dots(path, root):
                raise leaving_error(location, self.table_root)
        return path

    def _mapped(self, location: str) -> tuple[str, str]:
        """The resolved location, and the part of the location that the map did not replace."""
        for prefix, target in self.location_map.items():
            if not prefix:
                if not is_absolute(location):
                    return f"{target.rstrip('/')}/{without_dot(location)}", location
            elif location.startswith(prefix):
                rest = location[len(prefix) :]
                if not rest or rest[0] == "/" or prefix[-1] in "/:":
                    joined = joined_location(prefix, target, rest)
                    return absolute_location(joined, self.working_directory), rest
            elif location and f"{location}/" == prefix:
                # The directory itself, such as a table's location.
                return absolute_location(target.rstrip("/") or "/", self.working_directory), ""
        return absolute_location(location, self.working_directory), location

    def locate(self, location: str) -> str:
        """Where a location leads, like `resolve`, but whether it may be opened is not checked."""
        return self._mapped(location)[0]

    def without_map(self) -> FileIO:
        """The same storage for locations that are resolved already."""
        return self._with(location_map={}, table_root="")

    def of_table(self, root: str) -> FileIO:
        """The same storage for the files of one table; see the argument `table_root`."""
        if self.table_root == root:
            return self
        return self._with(table_root=root, _kept=self._kept, _ahead=self._ahead, _read=self._read)

    def with_list_keys(self, list_keys: Callable[[str], object] | None) -> FileIO:
        """The same storage for a state of an encrypted table; see the argument `list_keys`."""
        if self.list_keys is None and list_keys is None:
            return self
        return self._with(
            list_keys=list_keys, _kept=self._kept, _ahead=self._ahead, _read=self._read
        )

    def keeping_reads(self, max_bytes: int = MAX_KEPT_BYTES) -> FileIO:
        """The same storage, which remembers what `read_bytes` read.

        For manifests and their lists, which never change, and while one statement runs: the files
        that were read stay in memory. Copies in other processes keep nothing.

        Args:
            max_bytes: how much stays in memory at most; the rest is read again.
        """
        if self._kept is not None:
            return self
        return self._with(_kept=KeptReads(max_bytes))

    def expecting(self, opens: Iterable[Open]) -> FileIO:
        """The same storage, which opens files ahead, for who opens them in this order.

        Local files are not opened ahead. Copies in other processes expect nothing.
        """
        remote = [each for each in opens if not is_local(self.locate(each.location))]
        if len(remote) < 2:
            return self
        files = [(each, partial(self._open, each)) for each in dict.fromkeys(remote)]
        return self._with(_ahead=ReadAhead(files))

    def reading_ahead(self, locations: Iterable[str], most: int) -> FileIO:
        """The same storage, whose `read_bytes` reads ahead, for who reads files in this order.

        Local files, and those that are kept, are not read ahead. Copies in other processes expect
        nothing.

        Args:
            most: how many files are in memory, at most, before they are asked for.
        """
        ahead = [each for each in dict.fromkeys(locations) if self._is_to_fetch(self.locate(each))]
        if len(ahead) < 2:
            return self
        files = [(each, partial(self._read_bytes, each)) for each in ahead]
        return self._with(_kept=self._kept, _read=ReadAhead(files, most))

    def _with(self, **changes: object) -> Self:
        """A copy for this process, which keeps and expects nothing but what it is given."""
        changed = object.__new__(type(self))
        nothing = {"_kept": None, "_ahead": None, "_read": None}
        changed.__dict__.update({**self.__dict__, **nothing, **changes})
        return changed

    def _is_to_fetch(self, path: str) -> bool:
        is_kept = any(kept is not None and kept.has(path) for kept in (self._kept, self.recent))
        return not is_local(path) and not is_kept

    def read_bytes(self, location: str) -> bytes:
        """Reads a whole file in one call to the storage.

        Raises:
            MissingFileError: the file does not exist.
            StorageError: it cannot be read.
        """
        path = self.resolve(location)
        if self._kept is not None:
            return self._kept.get(path, lambda: self._recent_or_read(location, path))
        return self._recent_or_read(location, path)

    def _recent_or_read(self, location: str, path: str) -> bytes:
        if self.recent is None or is_local(path):
            return self._taken_or_read(location)
        return self.recent.get(path, lambda: self._taken_or_read(location))

    def _taken_or_read(self, location: str) -> bytes:
        taken = None if self._read is None else self._read.take(location)
        return self._read_bytes(location) if taken is None else taken

    def _read_bytes(self, location: str) -> bytes:
        path = self.resolve(location)
        with self._failures("reading", location, path):
            if is_local(path):
                with open(path, "rb", buffering=0) as file:
                    return file.read()
            return self._remote(path, read_whole)

    def __getstate__(self) -> dict[str, Any]:
        nothing = ("recent", "key_service", "list_keys", "_kept", "_ahead", "_read")
        return {**self.__dict__, **dict.fromkeys(nothing)}

    def open(
        self, location: str, size: int | None = None, first: Range | None = None
    ) -> pa.NativeFile:
        """Opens a file for random access; the caller closes it.

        A remote file is a `PrefetchingFile`. Reads of the file raise errors of Arrow if it is
        local, else StorageError.

        Args:
            size: of the file in bytes, if it is known; it may be wrong.
            first: the bytes that are read first; the end by default, if the size is known.

        Raises:
            MissingFileError: the file does not exist.
            StorageError: it cannot be opened.
        """
        wanted = Open(location, size, first)
        ahead = None if self._ahead is None else self._ahead.take(wanted)
        return self._open(wanted) if ahead is None else ahead

    def _open(self, wanted: Open) -> pa.NativeFile:
        location = wanted.location
        path = self.resolve(location)
        with self._failures("opening", location, path):
            if is_local(path):
                if os.path.isdir(path):
                    raise IsADirectoryError(path)
                return pa.OSFile(path, "rb")
            return PrefetchingFile(
                self._remote(path, partial(open_remote, wanted)), "reading", location
            )

    def exists(self, location: str) -> bool:
        """Whether there is a file or directory at a location.

        Raises:
            StorageError: the storage does not tell.
        """
        path = self.resolve(location)
        with self._failures("looking for", location, path, told_missing=False):
            if is_local(path):
                return local_files.mode(path) is not None
            return self._remote(path, partial(exists_in, protocol_of(path)))

    def size(self, location: str) -> int:
        """Length of a file in bytes.

        Raises:
            MissingFileError: the file does not exist.
            StorageError: the storage does not tell.
        """
        path = self.resolve(location)
        with self._failures("looking for", location, path):
            if is_local(path):
                return os.stat(path).st_size
            return self._remote(path, lambda fs, key: int(fs.size(key)))

    def list(self, location: str) -> builtins.list[str]:
        """Names of the files and directories directly inside a directory, in no order.

        Raises:
            MissingFileError: the directory does not exist.
            StorageError: it cannot be listed.
        """
        path = self.resolve(location)
        with self._failures("listing", location, path):
            if is_local(path):
                return os.listdir(path)
            return self._remote(path, partial(names_in, protocol_of(path)))

    def list_recursively(self, location: str) -> Iterator[ListedFiles]:
        """All files below a directory with sizes and times, in batches and in no order.

        Locations are resolved. Symbolic links are neither listed nor followed.

        Raises:
            MissingFileError: the directory does not exist; in remote storage it may be just empty.
            StorageError: it cannot be listed.
        """
        path = self.resolve(location)
        with self._failures("listing", location, path):
            if is_local(path):
                batches = list_local(path.rstrip("/") or "/")
            else:
                batches = list_remote(partial(self._remote, path), protocol_of(path), path)
            for batch in batches:
                advance(len(batch.files))
                yield batch

    def modified_ms(self, location: str) -> int | None:
        """When a file was modified, in milliseconds since 1970; None if that is not known.

        Raises:
            MissingFileError: the file does not exist.
            StorageError: the storage does not tell.
        """
        path = self.resolve(location)
        with self._failures("looking for", location, path):
            if is_local(path):
                return modified_local(path)
            return self._remote(path, modified_remote)

    def absolute(self, location: str) -> str:
        """The location in a form that means the same to every process, as metadata must hold it.

        Only relative locations are mapped.
        """
        return location if is_absolute(location) else self.resolve(location)

    def is_directory(self, location: str) -> bool:
        """Whether a directory exists; in object stores, whether any file has that prefix.

        Raises:
            StorageError: the storage does not tell.
        """
        path = self.resolve(location)
        with self._failures("looking for", location, path, told_missing=False):
            if is_local(path):
                return stat.S_ISDIR(local_files.mode(path) or 0)
            return self._remote(path, partial(is_directory_in, protocol_of(path)))

    def write(self, location: str, data: bytes) -> None:
        """Writes a whole file. Replaces the file if it exists; creates parent directories.

        Raises:
            StorageError: it could not be written; part of it may be there if it is not local.
        """
        path = self.resolve(location)
        with self._failures("writing", location, path, told_missing=False):
            if is_local(path):
                local_files.write_file(path, data)
            else:
                self._write_remote(path, lambda fs, key: fs.pipe_file(key, data))
                self._wrote(path, data)

    def open_output(self, location: str) -> pa.NativeFile:
        """Opens a file for writing, replacing it if it exists; the caller closes it.

        A remote file is an `OutputStream`. Writes to the file raise errors of Arrow if it is
        local, else StorageError.

        Raises:
            StorageError: it cannot be opened.
        """
        path = self.resolve(location)
        with self._failures("creating", location, path, told_missing=False):
            if is_local(path):
                return local_files.open_output(path)
            protocol = protocol_of(path)
            return self._write_remote(
                path, lambda fs, key: OutputStream(fs, protocol, key, location)
            )

    def create(self, location: str, data: bytes) -> None:
        """Writes a file atomically if it does not exist: of two writers exactly one succeeds.

        Raises:
            AlreadyExistsError: the file exists. It may be this one: if the storage's client sent
                the request again because the answer was lost, the first may have succeeded.
            UnsupportedFeatureError: the storage does not support this.
            StorageError: it failed; the file may or may not exist.
        """
        path = self.resolve(location)
        if not is_local(path):
            self.require_create(location)
        with self._failures("creating", location, path, told_missing=False):
            if is_local(path):
                create_local(path, data)
            else:
                protocol = protocol_of(path)
                self._remote(path, lambda fs, key: create_remote(fs, protocol, key, data))
                self._wrote(path, data)

    def _wrote(self, path: str, data: bytes) -> None:
        if self.recent is not None:
            self.recent.put(path, data)

    def require_create(self, location: str) -> None:
        """Checks that `create` works at a location, before work that ends with it begins.

        Raises:
            UnsupportedFeatureError: the storage does not support this.
            StorageError: it could not be tried.
        """
        path = self.resolve(location)
        if not is_local(path):
            protocol = protocol_of(path)
            with self._failures("trying to create", location, path, told_missing=False):
                self._remote(path, lambda fs, key: require_exclusive(fs, protocol, key))

    def delete(self, location: str) -> None:
        """Deletes a file; a missing one is fine.

        Raises:
            StorageError: it could not be deleted.
        """
        path = self.resolve(location)
        self._forget([path])
        with self._failures("deleting", location, path, told_missing=False):
            if is_local(path):
                local_files.delete_file(path)
            else:
                self._remote(path, delete_key)

    def delete_all(self, locations: Iterable[str]) -> None:
        """Deletes files, in batches if the storage supports it; missing ones are fine.

        Raises:
            StorageError: some could not be deleted; all others were.
        """
        paths = dict.fromkeys(self.resolve(location) for location in locations)
        failed = self._delete_paths(paths)
        if failed:
            first = next(iter(failed))
            cause = storage_error("deleting", first, failed[first])
            raise StorageError(
                f"{len(failed)} of {len(paths)} files could not be deleted; the first is {first}: "
                f"{cause.reason}",
                location=first,
                errno=cause.errno,
            ) from failed[first]

    def delete_each(self, locations: Iterable[str]) -> dict[str, Exception]:
        """Deletes files as `delete_all` does.

        Returns:
            The resolved locations that could not be deleted, with their errors.

        Raises:
            StorageError: a storage refused all of its files at once.
        """
        return self._delete_paths(dict.fromkeys(map(self.resolve, locations)))

    def make_directory(self, location: str) -> None:
        """Creates a directory and its parents; an existing one is fine.

        Raises:
            StorageError: it could not be created.
        """
        path = self.resolve(location)
        with self._failures("creating", location, path, told_missing=False):
            if is_local(path):
                os.makedirs(path, exist_ok=True)
            elif (protocol := protocol_of(path)) in MARKED:
                self._remote(path, partial(make_marker, protocol))
            else:
                self._remote(path, lambda fs, key: fs.makedirs(key, exist_ok=True))

    def remove_empty_directory(self, location: str) -> None:
        """Removes a directory if it is empty.

        Raises:
            StorageError: it does not exist, is not empty, or could not be removed.
            UnsupportedFeatureError: the storage would also remove the files in it, as Arrow's HDFS
                does.
        """
        path = self.resolve(location)
        with self._failures("removing", location, path, told_missing=False):
            if is_local(path):
                os.rmdir(path)
            elif (protocol := protocol_of(path)) == "memory":
                self._remote(path, lambda fs, key: fs.rmdir(key))
            elif protocol in MARKED:
                self._remote(path, partial(remove_marker, protocol))
            elif protocol in WEBHDFS:
                self._remote(path, lambda fs, key: fs.remove_empty(key))
            else:
                raise UnsupportedFeatureError(
                    f"{location}: {protocol} storage cannot remove a directory only if it is empty"
                )

    def _delete_paths(self, paths: Iterable[str]) -> dict[str, Exception]:
        """Deletes files by their resolved locations; returns those that failed, with errors."""
        failed: dict[str, Exception] = {}
        remote: dict[tuple[str, str], list[str]] = {}
        for path in paths:
            if is_local(path):
                try:
                    local_files.delete_file(path)
                except OSError as error:
                    failed[path] = error
            else:
                remote.setdefault(split_location(path)[:2], []).append(path)
        for group in remote.values():
            self._forget(group)
            with self._failures("deleting", group[0], group[0], told_missing=False):
                failed |= self._delete_remote(group)
        return failed

    def _forget(self, paths: Iterable[str]) -> None:
        if self.recent is not None:
            self.recent.drop(paths)

    def _delete_remote(self, paths: builtins.list[str]) -> dict[str, Exception]:
        """Deletes files of one authority; returns the paths that failed, with their errors."""
        protocol = protocol_of(paths[0])
        by_key: dict[str, str] = {}
        for path in paths:
            by_key[self._remote(path, lambda fs, key: key)] = path
        failed = self._remote(paths[0], lambda fs, _: delete_keys(fs, protocol, list(by_key)))
        return {by_key[key]: error for key, error in failed.items()}

    def _write_remote(self, path: str, use: Callable[[Any, str], _T]) -> _T:
        """`_remote`, after creating parent directories if the storage has directories."""

        def make_parents(fs: Any, key: str) -> _T:
            if protocol_of(path) not in MARKED:
                fs.makedirs(key.rpartition("/")[0] or "/", exist_ok=True)
            return use(fs, key)

        return self._remote(path, make_parents)

    def _remote(self, path: str, use: Callable[[Any, str], _T]) -> _T:
        if self.vended is None:
            return use_file_system(path, self.properties, use)
        properties = self.vended.at(path, self.properties)
        return use_file_system(path, properties, use, self.vended.signer)

    @contextmanager
    def _failures(
        self, operation: str, location: str, path: str, *, told_missing: bool = True
    ) -> Iterator[None]:
        """Translates what the storage raises; `told_missing`: a missing file is an error apart."""
        on_disk = is_local(path)
        kinds = (OSError, ValueError) if on_disk else Exception
        with storage_failures(operation, location, kinds):
            try:
                yield
            except (OSError, ValueError) as error:
                # ValueError: not a valid file name (a NUL or a lone surrogate in it). Clients of
                # remote storages raise it for malformed settings and answers.
                is_missing = _is_missing_file(error) if isinstance(error, OSError) else on_disk
                if not (told_missing and is_missing):
                    raise
                where = "" if path == location else f" (looked for at {path!r})"
                raise MissingFileError(
                    f"no such file: {location!r}{where}; if snapshots of the table have expired "
                    "since it was loaded, load it again; if the table was moved, map the locations"
                    " in its metadata to the new ones with 'location-map'"
                ) from error


def _is_missing_file(error: OSError) -> bool:
    is_absent = isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)
    return is_absent or error.errno == errno.ENAMETOOLONG
