"""Chooses the client of Hadoop by which Spark reads files of a storage with properties."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from icebergds.io.fileio import FileIO
from icebergds.io.hadoop_abfs import ABFS, abfs_address, abfs_obstacle, abfs_options
from icebergds.io.hadoop_s3a import S3A, s3a_address, s3a_obstacle, s3a_options
from icebergds.io.locations import is_local, protocol_of, split_location


@dataclass(frozen=True, slots=True)
class HadoopClient:
    """A client of one kind of storage.

    Attributes:
        java_class: its class.
        name: for messages, with the package that has it.
        storage: the name of the storage.
        obstacle: why it cannot open a resolved path as a storage with properties does; None if it
            can.
        address: of a resolved path, for Hadoop.
        options: of Hadoop, by which it opens the addresses of resolved paths.
    """

    java_class: str
    name: str
    storage: str
    obstacle: Callable[[FileIO, str], str | None]
    address: Callable[[FileIO, str], str]
    options: Callable[[FileIO, Iterable[str]], dict[str, str]]


def client_of(path: str) -> HadoopClient | None:
    """The client for a resolved path; None if there is none to which properties are passed."""
    return None if is_local(path) else _CLIENTS.get(protocol_of(path))


def files_obstacle(io: FileIO, location: str, files: Iterable[str]) -> str | None:
    """Why Hadoop cannot open files of a table as a storage with properties does.

    Args:
        location: of the table.
        files: their locations.
    """
    root = io.resolve(location)
    # Properties may be those of one account or bucket alone.
    paths = {_place(path): path for path in map(io.resolve, files)}
    if is_local(root):
        are_local = all(map(is_local, paths.values()))
        return None if are_local else "the table has storage properties, and remote files"
    client = client_of(root)
    if client is None:
        return "the table has storage properties, and is on a storage to which they are not passed"
    if any(client_of(path) is not client for path in paths.values()):
        return f"the table has storage properties, and files that are not on {client.storage}"
    if client.java_class == ABFS and len(paths) > 1:
        return f"the table has files in several places of {client.storage}"
    return next(filter(None, (client.obstacle(io, path) for path in [root, *paths.values()])), None)


def _place(path: str) -> tuple[str, str]:
    return ("file", "") if is_local(path) else (protocol_of(path), split_location(path)[1])


_CLIENTS = {
    "s3": HadoopClient(
        S3A,
        "S3A (hadoop-aws)",
        "S3",
        lambda io, path: s3a_obstacle(io),
        s3a_address,
        s3a_options,
    ),
    "abfs": HadoopClient(
        ABFS, "ABFS (hadoop-azure)", "Azure", abfs_obstacle, abfs_address, abfs_options
    ),
}
