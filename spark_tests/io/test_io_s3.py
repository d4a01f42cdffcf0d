"""Files of an S3 server: written, created exclusively, listed and deleted."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from multiprocessing.pool import Pool
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from processes import CONTEXT
from s3_requests import counted

from icebergds.errors import (
    AlreadyExistsError,
    IcebergError,
    MissingFileError,
    StorageError,
    UnsupportedFeatureError,
)
from icebergds.formats.data_file.output_file import OutputFile
from icebergds.io import exclusive, multipart
from icebergds.io.fileio import FileIO
from icebergds.spec.manifest import FileContent, FileFormat

if TYPE_CHECKING:
    from minio_server import MinioServer
    from s3_server import S3Server

_NAMES = [
    "plain",
    "with space",
    "p%20q",
    "100%",
    "x#1?y=z",
    "a+b&c=d",
    "[1]*",
    "day=2026-01-01 00:00:00",
    "über 東京 🎈",
]


@pytest.fixture(params=["s3mock", "minio"])
def server(request: pytest.FixtureRequest) -> S3Server | MinioServer:
    found: S3Server | MinioServer
    found = request.getfixturevalue({"s3mock": "s3"}.get(request.param, request.param))
    return found


@pytest.fixture
def io(server: S3Server | MinioServer) -> FileIO:
    return FileIO(server.properties)


@pytest.fixture
def root(server: S3Server | MinioServer) -> str:
    return server.new_location()


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small parts: the least that S3 takes."""
    monkeypatch.setattr(multipart, "_PART", 5 * 2**20)


def uploads(io: FileIO, root: str) -> list[Any]:
    """The uploads to a bucket that were neither completed nor aborted."""
    found = io._remote(
        root, lambda fs, key: fs.call_s3("list_multipart_uploads", Bucket=key.split("/")[0])
    )
    return list(found.get("Uploads", []))


@pytest.fixture(scope="module")
def processes() -> Iterator[Pool]:
    with CONTEXT.Pool(4) as pool:
        yield pool


# Writing and reading.


@pytest.mark.parametrize("name", _NAMES)
def test_a_name_is_taken_as_it_is(io: FileIO, root: str, name: str) -> None:
    location = f"{root}/{name}/{name}.bin"
    io.write(location, b"one")
    assert io.read_bytes(location) == b"one"
    assert io.list(root) == [name]
    assert io.list(f"{root}/{name}") == [f"{name}.bin"]
    assert io.size(location) == 3
    assert io.exists(location)
    assert io.is_directory(f"{root}/{name}")
    with _arrow(io).open_input_stream(_key(location)) as stream:
        assert stream.read() == b"one"
    io.write(location, b"second")
    assert io.read_bytes(location) == b"second"


def test_files_are_read_at_any_place(io: FileIO, root: str) -> None:
    io.write(f"{root}/f", bytes(range(200)))
    with io.open(f"{root}/f") as file:
        assert file.size() == 200
        file.seek(150)
        assert file.read(10) == bytes(range(150, 160))
        file.seek(0)
        assert file.read(5) == bytes(range(5))


@pytest.mark.parametrize("content", [b"", b"x"])
def test_a_whole_file_is_read_in_one_request(
    io: FileIO, root: str, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    io.write(f"{root}/f", content)
    client = pytest.importorskip("s3fs").S3FileSystem
    call, sent = client._call_s3, []

    def noted(self: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        sent.append(method)
        return call(self, method, *args, **kwargs)

    monkeypatch.setattr(client, "_call_s3", noted)
    assert io.read_bytes(f"{root}/f") == content
    assert sent == ["get_object"]


def test_large_files_are_sent_in_parts_side_by_side(io: FileIO, root: str, parts: None) -> None:
    numbers = pa.table({"id": pa.array(range(3_000_000), pa.int64())})
    files = 3
    with counted() as requests, ExitStack() as opened:
        for number in range(files):
            stream = opened.enter_context(io.open_output(f"{root}/{number}.parquet"))
            pq.write_table(numbers, stream, compression="none", use_dictionary=False)
    assert requests.made == {
        "create_multipart_upload": files,
        # Of 24 MB and a little more, in parts of 5 MiB.
        "upload_part": files * 5,
        "complete_multipart_upload": files,
    }
    assert requests.most >= 4
    for number in range(files):
        with io.open(f"{root}/{number}.parquet") as file:
            assert pq.read_table(file).equals(numbers)


def test_so_many_parts_are_in_memory_at_most(
    io: FileIO, root: str, parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multipart, "_AT_ONCE", 3)
    monkeypatch.setattr(multipart, "_process_slots", None)
    with counted() as requests, io.open_output(f"{root}/f") as stream:
        stream.write(bytes(8 * multipart._PART))
    assert requests.most == 3
    assert io.size(f"{root}/f") == 8 * multipart._PART


@pytest.mark.parametrize(("surplus", "sent"), [(0, "put_object"), (1, "upload_part")])
def test_a_file_of_one_part_is_sent_by_one_request(
    io: FileIO, root: str, parts: None, surplus: int, sent: str
) -> None:
    content = bytes(multipart._PART + surplus)
    with counted() as requests, io.open_output(f"{root}/f") as stream:
        stream.write(content)
    assert sent in requests.made
    assert requests.made.total() == (1 if surplus == 0 else 4)
    assert io.read_bytes(f"{root}/f") == content


def test_a_stream_that_is_discarded_never_appears(io: FileIO, root: str, parts: None) -> None:
    for size in (1, 4 * multipart._PART):
        stream = io.open_output(f"{root}/f")
        stream.write(bytes(size))
        stream.discard()
        stream.close()
        assert not io.exists(f"{root}/f")
    assert uploads(io, root) == []


@pytest.mark.parametrize("refused", ["create_multipart_upload", "upload_part", "complete_"])
def test_a_file_of_which_a_part_fails_never_appears(
    io: FileIO, root: str, parts: None, refused: str
) -> None:
    def is_refused(method: str, arguments: dict[str, Any]) -> bool:
        return method.startswith(refused) and arguments.get("PartNumber", 2) == 2

    def write_all() -> None:
        for _ in range(3):
            stream.write(bytes(multipart._PART))
        stream.close()

    stream = io.open_output(f"{root}/f")
    with counted(is_refused), pytest.raises(StorageError, match=f"writing {root}/f.*refused"):
        write_all()
    with suppress(StorageError):
        stream.close()
    assert not io.exists(f"{root}/f")
    assert uploads(io, root) == []


def test_a_data_file_that_fails_is_not_completed(io: FileIO, root: str, parts: None) -> None:
    output = OutputFile(io, f"{root}/f", FileFormat.PARQUET, FileContent.DATA)
    output.handle.write(bytes(2 * multipart._PART))
    with counted() as requests:
        output.abort()
    assert requests.made == {"abort_multipart_upload": 1, "delete_object": 1}
    assert uploads(io, root) == []


def test_a_stream_replaces_what_was_there(io: FileIO, root: str) -> None:
    for content in (b"a longer one", b"short"):
        with io.open_output(f"{root}/f") as stream:
            stream.write(content)
        assert io.read_bytes(f"{root}/f") == content


def test_what_is_not_there_is_named(io: FileIO, root: str) -> None:
    for use in (io.read_bytes, io.size, io.open, io.list):
        with pytest.raises(MissingFileError, match="nothing"):
            use(f"{root}/nothing")
    assert not io.exists(f"{root}/nothing")
    assert not io.is_directory(f"{root}/nothing")


def test_what_others_wrote_is_seen_at_once(io: FileIO, root: str) -> None:
    io.write(f"{root}/a", b"x")
    assert io.list(root) == ["a"]
    assert not io.exists(f"{root}/b")
    with _arrow(io).open_output_stream(_key(f"{root}/b")) as stream:
        stream.write(b"y")
    assert sorted(io.list(root)) == ["a", "b"]
    assert io.read_bytes(f"{root}/b") == b"y"


@pytest.mark.parametrize("scheme", ["s3a", "s3n", "S3"])
def test_all_schemes_of_s3_lead_to_the_same_file(io: FileIO, root: str, scheme: str) -> None:
    io.write(f"{root}/f", b"x")
    assert io.read_bytes(scheme + root.removeprefix("s3") + "/f") == b"x"


def test_storage_goes_to_other_processes_with_its_properties(
    io: FileIO, root: str, processes: Pool
) -> None:
    io.write(f"{root}/f", b"x")
    assert processes.apply(io.read_bytes, (f"{root}/f",)) == b"x"


# Creating.


def test_a_file_is_created_once(io: FileIO, root: str) -> None:
    io.create(f"{root}/x #1?", b"first")
    with pytest.raises(AlreadyExistsError, match="#1"):
        io.create(f"{root}/x #1?", b"second")
    assert io.read_bytes(f"{root}/x #1?") == b"first"
    assert io.list(root) == ["x #1?"]


def test_of_many_threads_one_creates_a_file(io: FileIO, root: str) -> None:
    for i in range(10):
        location = f"{root}/f{i}"
        gate = threading.Barrier(8)

        def creates(number: int, location: str = location, gate: threading.Barrier = gate) -> bool:
            gate.wait()
            return _creates(io, location, number)

        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(creates, range(8)))
        assert sum(won) == 1
        assert io.read_bytes(location) == _content(won.index(True))


def test_of_many_processes_one_creates_a_file(io: FileIO, root: str, processes: Pool) -> None:
    locations = [f"{root}/f{i}" for i in range(20)]
    won = processes.starmap(_create_each, [(io, locations, number) for number in range(4)], 1)
    assert sorted(location for won_by in won for location in won_by) == sorted(locations)
    for number, won_by in enumerate(won):
        for location in won_by:
            assert io.read_bytes(location) == _content(number)


def test_a_server_that_looks_and_then_writes_is_refused(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its single answers are right, only a race shows what it is; more than every other one."""
    io, root = FileIO(s3.racing_properties), s3.new_location()
    io.write(f"{root}/f", b"x")

    def prove_again_and_again() -> None:
        for _ in range(50):
            monkeypatch.setattr(exclusive, "_PROVED", set())
            io.require_create(f"{root}/f")

    with pytest.raises(UnsupportedFeatureError, match=r"s3 storage of .*/lake/.*sql or rest"):
        prove_again_and_again()
    assert io.list(root) == ["f"]


def test_a_server_that_knows_no_conditions_is_refused(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = s3.new_location()
    monkeypatch.setattr(exclusive, "_PROVED", set())
    with _Forgetful(s3) as proxy:
        io = FileIO({**s3.properties, "s3.endpoint": proxy.endpoint})
        io.write(f"{root}/f", b"x")
        with pytest.raises(UnsupportedFeatureError, match="overwrites files"):
            io.create(f"{root}/g", b"x")
        assert io.list(root) == ["f"]


# Deleting.


def test_exactly_the_files_named_are_deleted(io: FileIO, root: str) -> None:
    for name in (*_NAMES, "1", "[1]xyz"):
        io.write(f"{root}/{name}", b"x")
    io.delete_all(f"{root}/{name}" for name in _NAMES)
    assert sorted(io.list(root)) == ["1", "[1]xyz"]
    io.delete(f"{root}/1")
    assert io.list(root) == ["[1]xyz"]


def test_deleting_what_is_missing_is_fine(io: FileIO, root: str) -> None:
    io.write(f"{root}/a", b"x")
    io.delete(f"{root}/nothing")
    io.delete_all([f"{root}/nothing", f"{root}/a", f"{root}/a"])
    assert not io.exists(root)


def test_what_could_not_be_deleted_is_named(io: FileIO, root: str) -> None:
    io.write(f"{root}/a", b"x")
    with pytest.raises(IcebergError, match=r"^1 of 2 files could not be deleted.*s3://no bucket/b"):
        io.delete_all([f"{root}/a", "s3://no bucket/b"])
    assert not io.exists(f"{root}/a")


# Directories.


@pytest.mark.parametrize("name", ["plain", "with space", "p%20q#1?"])
def test_empty_directories_are_made_and_removed(io: FileIO, root: str, name: str) -> None:
    for _ in range(2):
        io.make_directory(f"{root}/{name}")
    assert io.is_directory(f"{root}/{name}")
    assert io.list(root) == [name]
    assert io.list(f"{root}/{name}") == []
    io.remove_empty_directory(f"{root}/{name}")
    assert not io.exists(f"{root}/{name}")
    with pytest.raises(StorageError, match="no such directory"):
        io.remove_empty_directory(f"{root}/{name}")


def test_directories_with_files_are_not_removed(io: FileIO, root: str) -> None:
    io.make_directory(f"{root}/a")
    io.write(f"{root}/a/f", b"x")
    for directory in (root, f"{root}/a"):
        with pytest.raises(OSError, match="not empty"):
            io.remove_empty_directory(directory)
    assert io.list(f"{root}/a") == ["f"]
    io.delete(f"{root}/a/f")
    assert io.is_directory(f"{root}/a")


# Moved files.


def test_a_mapping_leads_from_s3_to_local_files_and_back(
    io: FileIO, root: str, tmp_path: Path
) -> None:
    here = FileIO(io.properties, {"s3://elsewhere/t": f"file://{tmp_path}"})
    here.write("s3://elsewhere/t/a b%20", b"x")
    assert (tmp_path / "a b%20").read_bytes() == b"x"
    there = FileIO(io.properties, {f"file:{tmp_path}": root})
    there.create(f"file:{tmp_path}/c d#", b"y")
    assert FileIO(io.properties).read_bytes(f"{root}/c d#") == b"y"


class _Forgetful:
    """A proxy in front of the server that spells the header of the condition wrong."""

    def __init__(self, s3: S3Server) -> None:
        self._port = s3.atomic_port
        self._listener = socket.create_server(("127.0.0.1", 0))

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> _Forgetful:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    @staticmethod
    def _forward(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 20):
                target.sendall(data.replace(b"If-None-Match:", b"X-None-Match_:"))
        except OSError:
            pass
        finally:
            target.close()


def _create_each(io: FileIO, locations: list[str], number: int) -> list[str]:
    return [location for location in locations if _creates(io, location, number)]


def _creates(io: FileIO, location: str, number: int) -> bool:
    try:
        io.create(location, _content(number))
    except AlreadyExistsError:
        return False
    return True


def _content(number: int) -> bytes:
    return b"%d" % number * 1000


def _arrow(io: FileIO) -> pyarrow.fs.S3FileSystem:
    """Another client of the same server."""
    return pyarrow.fs.S3FileSystem(
        endpoint_override=io.properties["s3.endpoint"],
        access_key=io.properties["s3.access-key-id"],
        secret_key=io.properties["s3.secret-access-key"],
        region=io.properties["s3.region"],
    )


def _key(location: str) -> str:
    return location.removeprefix("s3://")
