"""Opens the file system that a remote location leads to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set as AbstractSet
from typing import Any, TypeVar

import fsspec

from icebergds.errors import InvalidOptionError, UnsupportedFeatureError
from icebergds.io.azure_blobs import bound_retries, connect_by
from icebergds.io.fsspec_options import (
    EXTRAS,
    fsspec_options,
    fsspec_protocol,
    lacks_credentials,
    lacks_libhdfs,
    missing_credentials,
    missing_libhdfs,
)
from icebergds.io.locations import split_location
from icebergds.io.option_values import first
from icebergds.io.request_signing import RequestSigner
from icebergds.io.webhdfs import WEBHDFS, WebHdfs

_T = TypeVar("_T")
# The classes of file systems that this process has used.
_USED: set[Any] = set()


def use_file_system(
    path: str,
    properties: Mapping[str, str],
    use: Callable[[Any, str], _T],
    signer: RequestSigner | None = None,
) -> _T:
    """Calls a function with the file system of a remote file, and its path there.

    Args:
        path: the file's resolved location.
        properties: storage properties.
        use: is called.
        signer: signs requests to S3 if the properties ask for it; by default, one that they lead
            to.

    Raises:
        InvalidOptionError: a package or credentials are missing, or a property is malformed.
        UnsupportedFeatureError: the file system cannot have a file of this name, or nothing can
            sign its requests.
        Exception: what `use` raises.
    """
    scheme, authority, rest = split_location(path)
    protocol = fsspec_protocol(scheme)
    try:
        file_system = _class(protocol, properties)
    except ImportError as error:
        raise InvalidOptionError(_missing_package(path, protocol)) from error
    except ValueError as error:
        raise InvalidOptionError(
            f"location {path!r}: fsspec has no protocol for the scheme {scheme!r}"
        ) from error
    try:
        _USED.add(file_system)
        # fsspec keeps one instance for equal options, so this is cheap.
        options = fsspec_options(protocol, authority, properties, signer)
        fs = file_system(**options)
        if protocol in WEBHDFS:
            fs = WebHdfs(fs)
        if protocol == "abfs":
            connect_by(options, fs)
            bound_retries(fs)
        return use(fs, _key(fs, protocol, path, authority, rest))
    except Exception as error:
        if lacks_libhdfs(protocol, error):
            raise InvalidOptionError(missing_libhdfs(path, error)) from error
        if not lacks_credentials(error):
            raise
        # The client of S3 has many lines, which say no more than its last; Azure's tells why.
        cause = error if protocol == "abfs" else None
        raise InvalidOptionError(missing_credentials(protocol, path)) from cause


def forget_file_systems(secrets: AbstractSet[str]) -> None:
    """Lets go of the file systems that have one of these secrets among their options.

    fsspec keeps each one, with its connections, as long as the process lives. Open files keep
    theirs.
    """
    if not secrets:
        return
    for file_system in tuple(_USED):
        for key, kept in list(file_system._cache.items()):
            # Those of Google are objects with a token.
            options = [getattr(each, "token", each) for each in kept.storage_options.values()]
            texts = [each for each in options if isinstance(each, str)]
            if any(secret in text for text in texts for secret in secrets):
                file_system._cache.pop(key, None)


def _class(protocol: str, properties: Mapping[str, str]) -> Any:
    if protocol == "gs" and first(properties, "gcs.service.host", "gcs.endpoint"):
        # Its successor asks for a bucket's kind by a protocol that only Google's servers have.
        from gcsfs.core import GCSFileSystem

        return GCSFileSystem
    return fsspec.get_filesystem_class("webhdfs" if protocol in WEBHDFS else protocol)


# adlfs parses names as URLs.
_UNSAFE_FOR_ADLFS = re.compile(r"^[^#]*\?[^#]*#|^[^#]*#$|^[^#?]*\?$|\?versionid=|[\t\r\n]")


def _key(fs: Any, protocol: str, path: str, authority: str, rest: str) -> str:
    """The file system's path of a file. Never parsed as a URL, so no character is special."""
    match protocol:
        case "s3" | "gs":
            return authority + rest
        case "abfs":
            if _UNSAFE_FOR_ADLFS.search(rest):
                raise UnsupportedFeatureError(
                    f"{path!r}: the client of Azure storage would take it for another name; names "
                    "must not end in '?' or '#', nor have a '?' before a '#', '?versionid=', or "
                    "tabs and newlines"
                )
            return authority.partition("@")[0] + rest
        case "hdfs" | "viewfs" | "webhdfs" | "swebhdfs":
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
