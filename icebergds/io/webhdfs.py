"""Files of HDFS by its REST interface, WebHDFS.

fsspec's client sends the requests. What it makes of answers is not used: it takes every failure for
a missing file, and an error of a data node for the content of a file; it replaces files that it
should create, and has no timeouts.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from icebergds.errors import InvalidOptionError
from icebergds.io.option_values import number

WEBHDFS = ("webhdfs", "swebhdfs")
"""Schemes of locations; the second one's requests are encrypted."""

DirectoryToken = tuple[tuple[str, str], ...]
"""Directories that are still to be listed, each with the name after which to go on."""


def webhdfs_options(protocol: str, authority: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """Keyword arguments of fsspec's client.

    Args:
        protocol: `webhdfs`, or `swebhdfs` for TLS.
        authority: of the location: host and port of the name node's HTTP server, and a user.
        properties: storage properties; `hdfs.user` is used if the location names no user.

    Raises:
        InvalidOptionError: there is no host, or a property is not supported.
    """
    user, _, address = authority.rpartition("@")
    host, colon, port = address.rpartition(":")
    host, port = (host, port) if colon else (address, "")
    if not host or ":" in user:
        raise InvalidOptionError(
            f"locations of {protocol}: need the address of the name node's HTTP server, and no "
            f"password: {protocol}://host:port/path"
        )
    if properties.get("hdfs.kerberos_ticket"):
        raise InvalidOptionError(
            f"property 'hdfs.kerberos_ticket' is not supported for {protocol}: locations"
        )
    is_secure = protocol == "swebhdfs"
    found = number("the port of the location", port or ("9871" if is_secure else "9870"), int)
    options: dict[str, Any] = {"host": host, "port": int(found), "use_https": is_secure}
    if user := user or properties.get("hdfs.user", ""):
        options["user"] = user
    return options


@dataclass(frozen=True, slots=True)
class WebHdfs:
    """A file system, with those methods of fsspec's that storage uses.

    Args:
        client: fsspec's.
    """

    client: Any

    def __post_init__(self) -> None:
        _prepare(self.client.session)

    @property
    def async_impl(self) -> bool:
        return False

    def cat_file(self, key: str, start: int | None = None, end: int | None = None) -> bytes:
        """The bytes of a file, or those from one place to another."""
        span = {} if start is None or end is None else {"offset": start, "length": end - start}
        data = self._send("get", self._redirect("OPEN", "get", key, **span))
        return bytes(data.content)

    def pipe_file(self, key: str, data: bytes) -> None:
        """Writes a file, replacing one that is there."""
        location = self._redirect("CREATE", "put", key, overwrite="true")
        self._send("put", location, data)

    def create(self, key: str, data: bytes) -> None:
        """Writes a file that appears as a whole, and only if there is none.

        Raises:
            FileExistsError: there is one.
        """
        directory = key.rpartition("/")[0]
        temporary = f"{directory}/.{uuid.uuid4()}.tmp"
        try:
            self.pipe_file(temporary, data)
            # CREATE without overwriting would show readers an incomplete file. A renamed file does
            # not replace another: the name node refuses.
            renamed = self._call("RENAME", "put", temporary, destination=key)
            if not renamed.json()["boolean"]:
                if self.exists(key):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), key)
                raise OSError(f"HDFS did not rename {temporary} to {key}")
        finally:
            with suppress(Exception):
                self.rm_file(temporary)

    def open(self, key: str, mode: str, **_: Any) -> Any:
        """A file that is written in parts; it appears at once, and grows."""
        return self.client.open(key, mode, block_size=_PART)

    def info(self, key: str) -> dict[str, Any]:
        found: dict[str, Any] = self._call("GETFILESTATUS", "get", key).json()["FileStatus"]
        return found

    def exists(self, key: str) -> bool:
        try:
            self.info(key)
        except FileNotFoundError:
            return False
        return True

    def isdir(self, key: str) -> bool:
        try:
            return _is_directory(self.info(key))
        except FileNotFoundError:
            return False

    def size(self, key: str) -> int:
        found = self.info(key)
        if _is_directory(found):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), key)
        return int(found["length"])

    def ls(self, key: str, detail: bool = False) -> list[str]:
        """The paths of what is in a directory; `detail` must be false."""
        names, after = [], ""
        while True:
            found, is_last = self._page(key, after)
            names += [entry["pathSuffix"] for entry in found]
            if is_last or not found:
                # Of a file, it lists the file, without a name.
                if names == [""]:
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), key)
                return [f"{key.rstrip('/')}/{name}" for name in names]
            after = names[-1]

    def files_below(
        self, key: str, token: DirectoryToken | None
    ) -> tuple[list[tuple[str, int, int]], DirectoryToken | None]:
        """Some files below a directory: names below it, times in milliseconds, and sizes.

        Args:
            token: what the call before returned; None for the first one.

        Returns:
            The files, and the token of the next call; None if there are no more.
        """
        (directory, after), *rest = token if token is not None else (("", ""),)
        try:
            found, is_last = self._page(f"{key.rstrip('/')}{directory}", after)
        except FileNotFoundError:
            # It may vanish while its parent is listed.
            found, is_last = [], True
        files = []
        for entry in found:
            name = f"{directory}/{entry['pathSuffix']}".rstrip("/")
            if _is_directory(entry):
                rest.append((name, ""))
            elif name:
                files.append((name[1:], int(entry["modificationTime"]), int(entry["length"])))
        if found and not is_last:
            rest.insert(0, (directory, found[-1]["pathSuffix"]))
        return files, tuple(rest) or None

    def makedirs(self, key: str, exist_ok: bool = True) -> None:
        if not self._call("MKDIRS", "put", key).json()["boolean"]:
            raise OSError(f"HDFS did not make the directory {key}")

    def remove_empty(self, key: str) -> None:
        """Removes a directory if it is empty.

        Raises:
            OSError: it does not exist or is not empty.
        """
        if not _is_directory(self.info(key)):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), key)
        self._call("DELETE", "delete", key, recursive="false")

    def rm_file(self, key: str) -> None:
        self._call("DELETE", "delete", key, recursive="false")

    def _page(self, key: str, after: str) -> tuple[list[dict[str, Any]], bool]:
        """Some entries of a directory, and whether these are the last."""
        more = {"startAfter": after} if after else {}
        answer = self._call("LISTSTATUS_BATCH", "get", key, **more).json()["DirectoryListing"]
        entries = answer["partialListing"]["FileStatuses"]["FileStatus"]
        return entries, not answer["remainingEntries"]

    def _redirect(self, operation: str, method: str, key: str, **options: Any) -> str:
        """The address of the data node that reads or writes."""
        answer = self._call(operation, method, key, redirect=False, **options)
        return str(self.client._apply_proxy(answer.headers["Location"]))

    def _call(self, operation: str, method: str, key: str, **options: Any) -> Any:
        try:
            return self.client._call(operation, method, key, **options)
        except RuntimeError as error:
            raise OSError(str(error)) from error

    def _send(self, method: str, location: str, data: bytes | None = None) -> Any:
        headers = {"Content-Type": "application/octet-stream"}
        answer = self.client.session.request(method, location, data=data, headers=headers)
        if answer.status_code == _NOT_FOUND:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), location)
        answer.raise_for_status()
        return answer


# Of a file that is written, so much is in memory.
_PART = 16 * 2**20
_NOT_FOUND = 404
# To connect, and to wait for the next bytes, in seconds.
_TIMEOUTS = (20, 120)
_RETRIES = 5


def _prepare(session: Any) -> None:
    """Gives a session timeouts, and retries of what may be sent twice. fsspec keeps the session."""
    if isinstance(session.request, partial):
        return
    from requests.adapters import HTTPAdapter
    from urllib3 import Retry

    retries = Retry(
        _RETRIES,
        connect=2,
        status_forcelist=(429, 503),
        allowed_methods={"GET"},
        backoff_factor=0.5,
        backoff_jitter=0.5,
        raise_on_status=False,
    )
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=retries))
    session.request = partial(session.request, timeout=_TIMEOUTS)


def _is_directory(entry: Mapping[str, Any]) -> bool:
    return str(entry["type"]).upper() == "DIRECTORY"
