"""Storage: where a location of the metadata is, and its bytes.

Local files are read directly, everything else through fsspec. A location is taken literally: it is
not percent-decoded, and `?`, `#`, spaces and brackets in it mean nothing.
"""

from __future__ import annotations

import builtins
import errno
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import fsspec
import pyarrow as pa

from icebergds.errors import (
    IcebergError,
    InvalidOptionError,
    MissingFileError,
    UnsupportedFeatureError,
)
from icebergds.io import local_files
from icebergds.io.deleting import delete_key, delete_keys
from icebergds.io.directory_markers import make_marker, remove_marker
from icebergds.io.exclusive import create_local, create_remote, require_exclusive
from icebergds.io.fsspec_options import EXTRAS, fsspec_options, fsspec_protocol

_T = TypeVar("_T")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(?=/)")
# They have no directories: names with slashes just look as if they had.
_OBJECT_STORES = ("s3", "gs", "abfs")


@dataclass(frozen=True)
class FileIO:
    """Reads and writes files by the locations that table metadata holds.

    It holds no open handles, so it is cheap to pickle, and any number of threads may use it.

    Args:
        properties: storage properties under Iceberg's names (`s3.endpoint`, `s3.access-key-id`,
            `gcs.oauth2.token`, `adls.account-key`, ...); others are ignored.
        location_map: prefixes of locations to what stands in their place, for tables that were
            moved. The longest prefix that ends at a path segment wins; the empty prefix stands
            for every relative path.
        working_directory: what relative paths without a mapping are relative to; the process's
            working directory if empty.
    """

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    location_map: Mapping[str, str] = field(default_factory=dict)
    working_directory: str = ""

    def __post_init__(self) -> None:
        directory = os.path.abspath(self.working_directory)
        mapping = {
            prefix: _absolute(target, directory)
            for prefix, target in sorted(self.location_map.items(), key=lambda kv: -len(kv[0]))
        }
        object.__setattr__(self, "working_directory", directory)
        object.__setattr__(self, "location_map", mapping)
        object.__setattr__(self, "properties", dict(self.properties))

    def resolve(self, location: str) -> str:
        """Where a location is read from: an absolute local path, or a location with its scheme."""
        for prefix, target in self.location_map.items():
            if not prefix:
                if not _is_absolute(location):
                    return f"{target.rstrip('/')}/{_without_dot(location)}"
            elif location.startswith(prefix):
                rest = location[len(prefix) :]
                if not rest or rest[0] == "/" or prefix[-1] in "/:":
                    return _absolute(_joined(prefix, target, rest), self.working_directory)
        return _absolute(location, self.working_directory)

    def read_bytes(self, location: str) -> bytes:
        """The whole file, in one call to the storage.

        Raises:
            MissingFileError: there is no such file.
        """
        path = self.resolve(location)
        with self._missing_named(location, path):
            if _is_local(path):
                with open(path, "rb", buffering=0) as file:
                    return file.read()
            return self._remote(path, _read_whole)

    def open(self, location: str) -> pa.NativeFile:
        """The file for random access; the caller closes it.

        Raises:
            MissingFileError: there is no such file.
        """
        path = self.resolve(location)
        with self._missing_named(location, path):
            if _is_local(path):
                if os.path.isdir(path):
                    raise IsADirectoryError(path)
                return pa.OSFile(path, "rb")
            return self._remote(
                path, lambda fs, key: pa.PythonFile(fs.open(key, "rb", cache_type="none"), "r")
            )

    def exists(self, location: str) -> bool:
        """Whether there is a file or directory at a location."""
        path = self.resolve(location)
        if _is_local(path):
            return os.path.exists(path)
        return self._remote(path, lambda fs, key: bool(fs.exists(key)))

    def size(self, location: str) -> int:
        """Length of a file in bytes.

        Raises:
            MissingFileError: there is no such file.
        """
        path = self.resolve(location)
        with self._missing_named(location, path):
            if _is_local(path):
                return os.stat(path).st_size
            return self._remote(path, lambda fs, key: int(fs.size(key)))

    def list(self, location: str) -> builtins.list[str]:
        """Names of the files and directories directly inside a directory, in no order.

        Raises:
            MissingFileError: there is no such directory.
        """
        path = self.resolve(location)
        with self._missing_named(location, path):
            if _is_local(path):
                return os.listdir(path)
            return self._remote(path, _names_in)

    def absolute(self, location: str) -> str:
        """The location in a form that means the same to every process; not mapped unless relative.

        This is what metadata may hold.
        """
        return location if _is_absolute(location) else self.resolve(location)

    def is_directory(self, location: str) -> bool:
        """Whether there is a directory; in object stores, whether anything has that prefix."""
        path = self.resolve(location)
        if _is_local(path):
            return os.path.isdir(path)
        return self._remote(path, lambda fs, key: bool(fs.isdir(key)))

    def write(self, location: str, data: bytes) -> None:
        """Writes a file at once, in the place of one that is there; makes its directories."""
        path = self.resolve(location)
        if _is_local(path):
            local_files.write_file(path, data)
        else:
            self._write_remote(path, lambda fs, key: fs.pipe_file(key, data))

    def open_output(self, location: str) -> pa.NativeFile:
        """A writable stream to a file, in the place of one that is there; the caller closes it."""
        path = self.resolve(location)
        if _is_local(path):
            return local_files.open_output(path)
        return self._write_remote(path, lambda fs, key: pa.PythonFile(fs.open(key, "wb"), "w"))

    def create(self, location: str, data: bytes) -> None:
        """Writes a file if none is there, in one step: of two writers exactly one succeeds.

        Raises:
            AlreadyExistsError: a file is there. It may be this one: where the storage's client
                sent a request again because the answer was lost, the first may have succeeded.
            UnsupportedFeatureError: the storage cannot do that.
            Exception: what the storage's client raises; whether the file is there is not known.
        """
        path = self.resolve(location)
        if _is_local(path):
            create_local(path, data)
            return
        self.require_create(location)
        protocol = _protocol(path)
        self._remote(path, lambda fs, key: create_remote(fs, protocol, key, data))

    def require_create(self, location: str) -> None:
        """Makes sure that `create` works at a location, before work is done that ends in it.

        Raises:
            UnsupportedFeatureError: the storage cannot do that.
        """
        path = self.resolve(location)
        if not _is_local(path):
            protocol = _protocol(path)
            self._remote(path, lambda fs, key: require_exclusive(fs, protocol, key))

    def delete(self, location: str) -> None:
        """Deletes a file; a missing one is fine."""
        path = self.resolve(location)
        if _is_local(path):
            local_files.delete_file(path)
        else:
            self._remote(path, delete_key)

    def delete_all(self, locations: Iterable[str]) -> None:
        """Deletes files, in few requests where the storage can; missing ones are fine.

        Raises:
            IcebergError: some could not be deleted; all others were.
        """
        failed: dict[str, Exception] = {}
        remote: dict[tuple[str, str], list[str]] = {}
        paths = dict.fromkeys(self.resolve(location) for location in locations)
        for path in paths:
            if _is_local(path):
                try:
                    local_files.delete_file(path)
                except OSError as error:
                    failed[path] = error
            else:
                remote.setdefault(_split(path)[:2], []).append(path)
        for group in remote.values():
            failed |= self._delete_remote(group)
        if failed:
            first = next(iter(failed))
            raise IcebergError(
                f"{len(failed)} of {len(paths)} files could not be deleted, the first is {first}: "
                f"{failed[first]}"
            ) from failed[first]

    def make_directory(self, location: str) -> None:
        """Makes a directory and those above it; one that is there is fine.

        Raises:
            UnsupportedFeatureError: object stores have no directories, but for S3's marked ones.
        """
        path = self.resolve(location)
        if _is_local(path):
            os.makedirs(path, exist_ok=True)
        elif _protocol(path) == "s3":
            self._remote(path, make_marker)
        elif (protocol := _protocol(path)) in _OBJECT_STORES:
            raise UnsupportedFeatureError(f"{location}: {protocol} storage has no directories")
        else:
            self._remote(path, lambda fs, key: fs.makedirs(key, exist_ok=True))

    def remove_empty_directory(self, location: str) -> None:
        """Removes a directory if nothing is in it.

        Raises:
            OSError: it is not there or not empty.
            UnsupportedFeatureError: the storage has no directories, or would remove what is in
                them, as Arrow's HDFS does.
        """
        path = self.resolve(location)
        if _is_local(path):
            os.rmdir(path)
        elif (protocol := _protocol(path)) == "memory":
            self._remote(path, lambda fs, key: fs.rmdir(key))
        elif protocol == "s3":
            self._remote(path, remove_marker)
        else:
            raise UnsupportedFeatureError(
                f"{location}: {protocol} storage cannot remove a directory only if it is empty"
            )

    def _delete_remote(self, paths: builtins.list[str]) -> dict[str, Exception]:
        """Deletes files of one authority; gives those that could not be, with their errors."""
        protocol = _protocol(paths[0])
        by_key: dict[str, str] = {}
        for path in paths:
            by_key[self._remote(path, lambda fs, key: key)] = path
        failed = self._remote(paths[0], lambda fs, _: delete_keys(fs, protocol, list(by_key)))
        return {by_key[key]: error for key, error in failed.items()}

    def _write_remote(self, path: str, use: Callable[[Any, str], _T]) -> _T:
        """`_remote`, with the file's directory made where the storage has directories."""

        def make_parents(fs: Any, key: str) -> _T:
            if _protocol(path) not in _OBJECT_STORES:
                fs.makedirs(key.rpartition("/")[0] or "/", exist_ok=True)
            return use(fs, key)

        return self._remote(path, make_parents)

    def _remote(self, path: str, use: Callable[[Any, str], _T]) -> _T:
        scheme, authority, rest = _split(path)
        protocol = fsspec_protocol(scheme)
        try:
            file_system = fsspec.get_filesystem_class(protocol)
        except ImportError as error:
            raise InvalidOptionError(_missing_package(path, protocol)) from error
        except ValueError as error:
            raise InvalidOptionError(
                f"location {path!r}: no file system is known for the scheme {scheme!r}; "
                "local paths, file:, s3:, gs:, abfs:, hdfs: and fsspec's other protocols are read"
            ) from error
        # fsspec keeps one instance for equal options, so this is cheap.
        fs = file_system(**fsspec_options(protocol, authority, self.properties))
        return use(fs, _key(fs, protocol, path, authority, rest))

    @contextmanager
    def _missing_named(self, location: str, path: str) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            # A value error: the name cannot be that of a file, for a NUL or half a character in it.
            if isinstance(error, OSError) and not _names_no_file(error):
                raise
            where = "" if path == location else f" (looked for at {path!r})"
            raise MissingFileError(
                f"no such file: {location!r}{where}; if the table was moved, 'location-map'"
                " leads the locations in its metadata to where the files are now"
            ) from error


def _read_whole(fs: Any, key: str) -> bytes:
    # Newer releases of s3fs ask for the size first unless they are to read one part at a time.
    in_parts = "max_concurrency" in inspect.signature(fs.cat_file).parameters
    return bytes(fs.cat_file(key, **({"max_concurrency": 1} if in_parts else {})))


def _names_in(fs: Any, key: str) -> list[str]:
    found = [name.rstrip("/") for name in fs.ls(key, detail=False)]
    # What marks an empty directory of an object store is listed as if it were inside.
    return [name.rpartition("/")[2] for name in found if name != key.rstrip("/")]


def _names_no_file(error: OSError) -> bool:
    is_absent = isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)
    return is_absent or error.errno == errno.ENAMETOOLONG


def _is_absolute(location: str) -> bool:
    return location.startswith("/") or _SCHEME.match(location) is not None


def _is_local(path: str) -> bool:
    return path.startswith("/")


def _absolute(location: str, directory: str) -> str:
    """Local locations as absolute paths, others as they are."""
    if location.startswith("/"):
        return location
    match = _SCHEME.match(location)
    if match is None:
        return f"{directory}/{_without_dot(location)}"
    if match[1].lower() != "file":
        return location
    rest = location[match.end() :]
    if not rest.startswith("//"):
        return rest
    host, slash, path = rest[2:].partition("/")
    if host not in ("", "localhost"):
        raise InvalidOptionError(
            f"location {location!r}: {host!r} stands where file: locations have a host; only local "
            "files can be read, map the prefix to where the files are with location_map"
        )
    return slash + path


def _without_dot(relative: str) -> str:
    return relative[2:] if relative.startswith("./") else relative


def _joined(prefix: str, target: str, rest: str) -> str:
    """`target` in place of `prefix`, with exactly one slash where both or neither had one."""
    if prefix.endswith("/") and rest:
        return f"{target.rstrip('/')}/{rest}"
    return target.rstrip("/") + rest if rest.startswith("/") else target + rest


def _split(path: str) -> tuple[str, str, str]:
    """Scheme (lower case), authority and the rest from its first slash on."""
    scheme, _, rest = path.partition(":")
    if not rest.startswith("//"):
        return scheme.lower(), "", rest
    authority, slash, key = rest[2:].partition("/")
    return scheme.lower(), authority, slash + key


def _protocol(path: str) -> str:
    """The name under which fsspec knows the file system of a remote path."""
    return fsspec_protocol(_split(path)[0])


def _key(fs: Any, protocol: str, path: str, authority: str, rest: str) -> str:
    """What the file system calls the file. Never parsed as a URL, so no character is special."""
    match protocol:
        case "s3" | "gs":
            return authority + rest
        case "abfs":
            return authority.partition("@")[0] + rest
        case "hdfs" | "viewfs":
            return rest
        case _:
            return str(fs._strip_protocol(path))


def _missing_package(path: str, protocol: str) -> str:
    package, extra = EXTRAS.get(protocol, ("", ""))
    remedy = (
        f"needs the package {package}: pip install 'icebergds[{extra}]'"
        if package
        else f"needs the package behind fsspec's protocol {protocol!r}"
    )
    return f"reading {path!r} {remedy}"
