"""Files of HDFS by WebHDFS: pages, errors of its nodes, directories, and options."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from icebergds.errors import InvalidOptionError, MissingFileError, StorageError
from icebergds.io.fileio import FileIO
from icebergds.io.webhdfs import webhdfs_options

if TYPE_CHECKING:
    from hdfs_server import HdfsServer


@pytest.fixture
def io(hdfs: HdfsServer) -> FileIO:
    return FileIO(hdfs.properties)


@pytest.fixture
def root(hdfs: HdfsServer) -> str:
    return hdfs.new_location()


def test_long_directories_are_listed_in_pages(io: FileIO, root: str) -> None:
    """The server tells three names at once."""
    names = [f"{number:02}" for number in range(8)]
    for name in names:
        io.write(f"{root}/{name}", b"x")
        io.write(f"{root}/d/{name}", b"x")
    assert io.list(root) == [*names, "d"]
    pages = list(io.list_recursively(root))
    assert max(page.files.num_rows for page in pages) <= 3
    found = [name for page in pages for name in page.files["location"].to_pylist()]
    assert sorted(found) == [f"{root}/{name}" for name in [*names, *(f"d/{n}" for n in names)]]


def test_readers_never_see_half_of_a_created_file(io: FileIO, root: str) -> None:
    content, seen, done = bytes(3 * 2**20), set(), threading.Event()

    def watch() -> None:
        while not done.is_set():
            if io.exists(f"{root}/f"):
                seen.add(io.size(f"{root}/f"))

    io.make_directory(root)
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        io.create(f"{root}/f", content)
        done.set()
        watching.result()
    assert seen <= {len(content)}
    assert io.list(root) == ["f"]


def test_a_stream_is_written_in_parts(io: FileIO, root: str) -> None:
    part = bytes(range(256)) * 2**15
    with io.open_output(f"{root}/f") as stream:
        for _ in range(4):
            stream.write(part)
    assert io.read_bytes(f"{root}/f") == part * 4


def test_empty_directories_are_made_and_removed(io: FileIO, root: str) -> None:
    for _ in range(2):
        io.make_directory(f"{root}/a")
    assert io.list(f"{root}/a") == []
    io.remove_empty_directory(f"{root}/a")
    assert not io.exists(f"{root}/a")
    with pytest.raises(StorageError):
        io.remove_empty_directory(f"{root}/a")


def test_directories_with_files_are_not_removed(io: FileIO, root: str) -> None:
    io.write(f"{root}/a/f", b"x")
    for directory in (root, f"{root}/a"):
        with pytest.raises(StorageError, match=r"not empty|non empty"):
            io.remove_empty_directory(directory)
    with pytest.raises(StorageError):
        io.remove_empty_directory(f"{root}/a/f")
    assert io.list(f"{root}/a") == ["f"]


def test_a_map_leads_from_the_locations_of_hadoop_to_webhdfs(hdfs: HdfsServer) -> None:
    location = hdfs.new_location()
    there = f"webhdfs://127.0.0.1:{hdfs.http_port}"
    io = FileIO(hdfs.properties, {"hdfs://name-node:8020": there})
    io.create(location.replace(there, "hdfs://name-node:8020"), b"x")
    assert FileIO(hdfs.properties).read_bytes(location) == b"x"


def test_a_server_out_of_reach_is_no_missing_file() -> None:
    io = FileIO()
    uses: list[Any] = [io.read_bytes, io.exists, io.is_directory, io.size, io.list, io.delete]
    for use in uses:
        with pytest.raises(StorageError, match="refused"):
            use("webhdfs://127.0.0.1:1/f")


def test_an_error_of_a_data_node_is_not_the_content_of_a_file(
    hdfs: HdfsServer, io: FileIO, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data node is asked for a file that vanishes after the name node told where it is."""
    from fsspec.implementations.webhdfs import WebHDFS

    io.write(f"{root}/f", b"x")
    call = WebHDFS._call

    def vanishing(self: Any, op: str, *arguments: Any, **options: Any) -> Any:
        answer = call(self, op, *arguments, **options)
        if op == "OPEN":
            io.delete(f"{root}/f")
        return answer

    monkeypatch.setattr(WebHDFS, "_call", vanishing)
    with pytest.raises(MissingFileError):
        io.read_bytes(f"{root}/f")


# Options.


@pytest.mark.parametrize(
    ("protocol", "authority", "expected"),
    [
        ("webhdfs", "nn", {"host": "nn", "port": 9870, "use_https": False}),
        ("webhdfs", "me@nn:14000", {"host": "nn", "port": 14000, "use_https": False, "user": "me"}),
        ("swebhdfs", "nn", {"host": "nn", "port": 9871, "use_https": True}),
    ],
)
def test_locations_give_host_port_and_user(
    protocol: str, authority: str, expected: dict[str, Any]
) -> None:
    assert webhdfs_options(protocol, authority, {}) == expected


def test_what_is_not_supported_is_named() -> None:
    with pytest.raises(InvalidOptionError, match="address of the name node"):
        webhdfs_options("webhdfs", "", {})
    with pytest.raises(InvalidOptionError, match="no password") as raised:
        webhdfs_options("webhdfs", "me:hunter2@nn", {})
    assert "hunter2" not in str(raised.value)
    with pytest.raises(InvalidOptionError, match="kerberos_ticket"):
        webhdfs_options("webhdfs", "nn", {"hdfs.kerberos_ticket": "/tmp/t"})


def test_without_libhdfs_it_is_said_what_to_do() -> None:
    with pytest.raises(InvalidOptionError, match=r"libhdfs.*map it to WebHDFS"):
        FileIO().read_bytes("hdfs://name-node:8020/f")
