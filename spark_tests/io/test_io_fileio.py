"""Where locations lead, and what FileIO does with them."""

from __future__ import annotations

import os
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from icebergds.errors import InvalidMetadataError, InvalidOptionError, MissingFileError
from icebergds.io.fileio import FileIO

ODD_NAMES = [
    "with space",
    "percent%20encoded",
    "question?mark",
    "hash#mark",
    "brackets[0]",
    "braces{a}",
    "ünïcode-日本",
    "plus+and&",
    "colon:12:30",
    "star*",
]


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("scheme", ["", "file:", "file://", "file://localhost", "FILE:"])
def test_local_locations_are_taken_literally(tmp_path: Path, name: str, scheme: str) -> None:
    (tmp_path / name).write_bytes(b"data")
    location = f"{scheme}{tmp_path}/{name}"
    io = FileIO()
    assert io.resolve(location) == f"{tmp_path}/{name}"
    assert io.read_bytes(location) == b"data"
    assert io.size(location) == 4
    assert io.exists(location)
    with io.open(location) as file:
        file.seek(1)
        assert file.read(2) == b"at"


def test_a_percent_sequence_does_not_find_the_decoded_name(tmp_path: Path) -> None:
    (tmp_path / "a b").write_bytes(b"")
    assert not FileIO().exists(f"file://{tmp_path}/a%20b")


def test_relative_locations_stay_where_they_were_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_bytes(b"1")
    monkeypatch.chdir(tmp_path)
    io = FileIO()
    assert io.resolve("x") == io.resolve("./x") == f"{tmp_path}/x"
    pickled = pickle.dumps(io)
    monkeypatch.chdir("/")
    assert pickle.loads(pickled).read_bytes("x") == b"1"


def test_the_longest_matching_prefix_wins() -> None:
    io = FileIO(location_map={"s3://b": "/one", "s3://b/t": "/two", "s3://b/t/u/": "/three/"})
    assert io.resolve("s3://b/x") == "/one/x"
    assert io.resolve("s3://b/t/x") == "/two/x"
    assert io.resolve("s3://b/t/u/x") == "/three/x"
    assert io.resolve("s3://b/t") == "/two"


def test_a_prefix_ends_at_a_path_segment() -> None:
    io = FileIO(location_map={"/warehouse/t": "/moved"})
    assert io.resolve("/warehouse/t2/x") == "/warehouse/t2/x"


@pytest.mark.parametrize(
    ("prefix", "target"), [("/a", "/b"), ("/a/", "/b/"), ("/a/", "/b"), ("/a", "/b/")]
)
def test_slashes_at_the_ends_of_prefix_and_target_do_not_matter(prefix: str, target: str) -> None:
    assert FileIO(location_map={prefix: target}).resolve("/a/x/y") == "/b/x/y"


@pytest.mark.parametrize(
    ("prefix", "target", "location", "expected"),
    [
        ("/a/b/", "/c/", "/a/b", "/c"),
        ("s3://b/t/", "/c", "s3://b/t", "/c"),
        ("s3://b/", "s3://c/", "s3://b", "s3://c"),
        ("/a/", "/", "/a", "/"),
        ("/a/b/", "/c/", "/a", "/a"),
        ("/a/b/", "/c/", "/a/bc", "/a/bc"),
    ],
)
def test_a_prefix_with_a_slash_stands_for_the_directory_itself_too(
    prefix: str, target: str, location: str, expected: str
) -> None:
    assert FileIO(location_map={prefix: target}).resolve(location) == expected


def test_the_empty_prefix_stands_for_relative_paths_only() -> None:
    io = FileIO(location_map={"": "/home/table", "data": "/elsewhere"})
    assert io.resolve("metadata/x") == "/home/table/metadata/x"
    assert io.resolve("data/x") == "/elsewhere/x"
    assert io.resolve("/data/x") == "/data/x"
    assert io.resolve("s3://b/x") == "s3://b/x"


@pytest.mark.parametrize(
    ("root", "location"),
    [
        ("/w/t", "/w/t/../u/x"),
        ("/w/t", "/w/t/.."),
        ("/w/t", "file:///w/t/data/../../../etc/passwd"),
        ("/w/t", "../../etc/passwd"),
        ("/w/../v/t", "/v/t/../../etc/passwd"),
        ("s3://b/t", "s3://b/t/../u/x"),
        ("s3://b/t", "s3://b/../c/t/x"),
        ("s3://b/t", "/w/../etc/passwd"),
    ],
)
def test_a_location_does_not_leave_the_table_by_two_dots(root: str, location: str) -> None:
    io = FileIO(working_directory="/w/t").of_table(root)
    for use in (io.resolve, io.read_bytes, io.open, io.size, io.exists, io.delete):
        with pytest.raises(InvalidMetadataError, match=r"table at .* leaves") as caught:
            use(location)
        assert repr(location) in str(caught.value)
    with pytest.raises(InvalidMetadataError):
        io.write(location, b"")


@pytest.mark.parametrize(
    ("root", "location"),
    [
        ("/w/t", "/elsewhere/x"),
        ("/w/t", "/w/t/data/../data/x"),
        ("/w/t", "/w/u/../t/x"),
        ("/w/u/../t", "/w/u/../t/x"),
        ("/w/t", "/elsewhere/..x/a..b/x.."),
        ("/", "/data/../data/x"),
        ("s3://b/t", "s3://b/t/a/../x"),
        ("", "/w/../x"),
    ],
)
def test_two_dots_may_lead_back_into_the_table(root: str, location: str) -> None:
    assert FileIO().of_table(root).resolve(location) == location


def test_the_map_of_locations_allows_two_dots_but_not_behind_its_prefixes() -> None:
    io = FileIO(location_map={"s3://b/t/../u": "/w/../u", "s3://b": "/w"}).of_table("/w/t")
    assert io.resolve("s3://b/t/../u/x") == "/w/../u/x"
    with pytest.raises(InvalidMetadataError, match="leaves"):
        io.resolve("s3://b/../etc/passwd")


def test_locations_may_be_mapped_to_relative_and_file_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    io = FileIO(location_map={"s3a://b": "here", "hdfs://nn:8020": f"file://{tmp_path}"})
    assert io.resolve("s3a://b/x") == f"{tmp_path}/here/x"
    assert io.resolve("hdfs://nn:8020/x") == f"{tmp_path}/x"


def test_a_missing_file_is_named_as_in_the_metadata_and_where_it_was_looked_for(
    tmp_path: Path,
) -> None:
    io = FileIO(location_map={"s3://b": str(tmp_path)})
    for use in (io.read_bytes, io.open, io.size, io.list):
        with pytest.raises(MissingFileError) as caught:
            use("s3://b/gone")
        assert "'s3://b/gone'" in str(caught.value)
        assert f"'{tmp_path}/gone'" in str(caught.value)


def test_a_name_that_no_file_can_have_is_that_of_a_missing_file(tmp_path: Path) -> None:
    io = FileIO()
    for name in ("x" * 300, "d/" * 3000, "a\0b", "\ud800"):
        location = f"{tmp_path}/{name}"
        assert not io.exists(location)
        for use in (io.read_bytes, io.open, io.size, io.list):
            with pytest.raises(MissingFileError, match="no such file"):
                use(location)


def test_a_file_location_with_a_host_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="location_map"):
        FileIO().resolve("file://warehouse/t/x")


def test_list_gives_the_names_inside(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_bytes(b"")
    assert sorted(FileIO().list(f"file:{tmp_path}")) == ["d", "f"]


def test_credentials_are_neither_shown_nor_lost_in_pickling() -> None:
    io = FileIO({"s3.secret-access-key": "hush"})
    assert "hush" not in repr(io)
    assert pickle.loads(pickle.dumps(io)).properties == {"s3.secret-access-key": "hush"}


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(protocol: str) -> type:
        raise ImportError(protocol)

    monkeypatch.setattr(fsspec, "get_filesystem_class", refuse)
    for location, extra in [
        ("s3a://b/x", "s3"),
        ("gs://b/x", "gcs"),
        ("abfss://c@a.dfs.core.windows.net/x", "azure"),
    ]:
        with pytest.raises(InvalidOptionError, match=rf"icebergds\[{extra}\]"):
            FileIO().read_bytes(location)


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data",
        "HTTPS://example.org/x",
        "ftp://example.org/x",
        "github://org:repo@main/x",
        "zip://x::s3://b/archive.zip",
        "reference://x",
        "data://x",
        "nosuch:/x",
    ],
)
def test_other_schemes_are_refused_before_they_are_opened(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fsspec, "get_filesystem_class", pytest.fail)
    scheme = location.partition(":")[0].lower()
    io = FileIO()
    for use in (io.resolve, io.read_bytes, io.open, io.size, io.exists, io.list, io.delete):
        with pytest.raises(InvalidOptionError, match=f"'storage-schemes', '{scheme}'") as caught:
            use(location)
        # What is before an @ may be a password.
        assert repr(location.replace("org:repo@", "***@")) in str(caught.value)
        assert "abfs, abfss" in str(caught.value)


@pytest.mark.parametrize(
    "scheme",
    [
        *("s3", "s3a", "s3n", "S3", "oss", "gs", "gcs"),
        *("abfs", "abfss", "wasb", "wasbs", "az", "adl"),
        *("hdfs", "viewfs", "memory"),
    ],
)
def test_storage_for_tables_is_opened_without_being_allowed(scheme: str) -> None:
    assert FileIO().resolve(f"{scheme}://b/x") == f"{scheme}://b/x"


def test_the_user_may_allow_further_schemes() -> None:
    io = FileIO({"storage-schemes": "SFTP, cos"})
    assert io.resolve("sftp://b/x") == "sftp://b/x"
    assert io.resolve("cos://b/x") == "cos://b/x"
    with pytest.raises(InvalidOptionError, match="'obs'"):
        io.resolve("obs://b/x")


@pytest.mark.parametrize("schemes", ["oss://", "*", "oss,,cos", "a b"])
def test_what_is_no_scheme_cannot_be_allowed(schemes: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"'storage-schemes' = .* joined by commas"):
        FileIO({"storage-schemes": schemes})


def test_a_location_that_is_mapped_has_the_scheme_that_it_is_mapped_to() -> None:
    assert FileIO(location_map={"oss://b": "s3://c"}).resolve("oss://b/x") == "s3://c/x"
    with pytest.raises(InvalidOptionError, match="'ftp'"):
        FileIO(location_map={"s3://c": "ftp://b"}).resolve("s3://c/x")


@pytest.mark.parametrize("location", ["zip::s3://b/x", "simplecache::http://h/x"])
def test_chains_of_file_systems_are_refused(location: str) -> None:
    with pytest.raises(InvalidOptionError, match="chains"):
        FileIO().read_bytes(location)


def test_names_with_colons_are_no_chains() -> None:
    assert FileIO(working_directory="/w").resolve("a::b/c") == "/w/a::b/c"
    assert FileIO().resolve("/w/a::b://c") == "/w/a::b://c"


def test_an_allowed_scheme_that_fsspec_lacks_is_named() -> None:
    with pytest.raises(InvalidOptionError, match="no protocol for the scheme 'nosuch'"):
        FileIO({"storage-schemes": "nosuch"}).read_bytes("nosuch://b/x")


class _Recorder(MemoryFileSystem):
    """Keeps what it was made with and which keys it was asked for."""

    cachable = False
    made_with: dict[str, Any] = {}  # noqa: RUF012
    calls: list[str] = []  # noqa: RUF012
    store: dict[str, bytes] = {}  # noqa: RUF012

    def __init__(self, **options: Any) -> None:
        type(self).made_with = options
        super().__init__()

    def cat_file(self, path: str, **_: Any) -> bytes:
        self.calls.append(path)
        if path not in self.store:
            raise FileNotFoundError(path)
        return self.store[path]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> type[_Recorder]:
    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda protocol: _Recorder)
    _Recorder.calls.clear()
    _Recorder.store.clear()
    return _Recorder


def test_s3_properties_become_s3fs_options(recorder: type[_Recorder]) -> None:
    recorder.store["bucket/a b?c#d%20[1]"] = b"x"
    io = FileIO(
        {
            "s3.endpoint": "http://localhost:9000",
            "s3.access-key-id": "id",
            "s3.secret-access-key": "key",
            "s3.session-token": "session",
            "s3.region": "eu-west-1",
            "s3.path-style-access": "true",
        }
    )
    assert io.read_bytes("s3n://bucket/a b?c#d%20[1]") == b"x"
    assert recorder.calls == ["bucket/a b?c#d%20[1]"]
    assert recorder.made_with == {
        "endpoint_url": "http://localhost:9000",
        "key": "id",
        "secret": "key",
        "token": "session",
        "client_kwargs": {"region_name": "eu-west-1"},
        "config_kwargs": {
            "max_pool_connections": 32,
            "retries": {"mode": "standard", "total_max_attempts": 6},
            "s3": {"addressing_style": "path"},
        },
        "use_listings_cache": False,
    }


def test_a_missing_remote_file_is_our_error(recorder: type[_Recorder]) -> None:
    with pytest.raises(MissingFileError, match="s3://b/x"):
        FileIO().read_bytes("s3://b/x")


def test_azure_locations_give_container_path_and_account(recorder: type[_Recorder]) -> None:
    recorder.store["container/dir/x"] = b"x"
    io = FileIO({"adls.sas-token.acc.dfs.core.windows.net": "sig"})
    assert io.read_bytes("abfss://container@acc.dfs.core.windows.net/dir/x") == b"x"
    assert recorder.made_with["connection_string"] == (
        "BlobEndpoint=https://acc.blob.core.windows.net;SharedAccessSignature=sig"
    )


def test_gcs_properties_become_gcsfs_options(recorder: type[_Recorder]) -> None:
    recorder.store["b/x"] = b"x"
    FileIO({"gcs.project-id": "p", "gcs.no-auth": "true"}).read_bytes("gs://b/x")
    assert recorder.made_with == {"project": "p", "token": "anon", "use_listings_cache": False}


@pytest.mark.parametrize(
    ("location", "host", "port"),
    [
        ("hdfs://nn:8020/a?b", "nn", 8020),
        ("hdfs://service/a?b", "service", 0),
        ("hdfs:///a?b", "default", 0),
        ("hdfs:/a?b", "default", 0),
    ],
)
def test_hdfs_locations_give_host_and_port(
    recorder: type[_Recorder], location: str, host: str, port: int
) -> None:
    recorder.store["/a?b"] = b"x"
    FileIO().read_bytes(location)
    assert (recorder.made_with["host"], recorder.made_with["port"]) == (host, port)


def test_other_protocols_of_fsspec_are_read() -> None:
    fs = fsspec.filesystem("memory")
    fs.pipe("/icebergds-test/dir/f", b"hello")
    io = FileIO()
    location = "memory://icebergds-test/dir"
    try:
        assert io.read_bytes(f"{location}/f") == b"hello"
        assert io.size(f"{location}/f") == 5
        assert io.exists(f"{location}/f")
        assert not io.exists(f"{location}/g")
        assert io.list(location) == ["f"]
        with io.open(f"{location}/f") as file:
            file.seek(2)
            assert file.read() == b"llo"
        with pytest.raises(MissingFileError):
            io.open(f"{location}/g")
    finally:
        fs.rm("/icebergds-test", recursive=True)


def test_one_instance_serves_many_threads(tmp_path: Path) -> None:
    for i in range(50):
        (tmp_path / str(i)).write_bytes(os.urandom(1000 + i))
    io = FileIO()
    with ThreadPoolExecutor(8) as pool:
        sizes = list(pool.map(lambda i: len(io.read_bytes(f"{tmp_path}/{i}")), range(50)))
    assert sizes == [1000 + i for i in range(50)]


def test_a_request_without_credentials_says_which_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("s3fs")
    for variable in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    # No other test has a client with this option.
    io = FileIO({"s3.endpoint": "http://127.0.0.1:9"})
    message = r"no credentials for 's3://bucket/db/t/v1.json': set s3\.access-key-id and "
    with pytest.raises(InvalidOptionError, match=message) as raised:
        io.read_bytes("s3://bucket/db/t/v1.json")
    assert raised.value.__suppress_context__


def test_a_listing_in_memory_beside_deletes_of_another_thread() -> None:
    fs = fsspec.filesystem("memory")
    io = FileIO()
    location = "memory://icebergds-busy"
    kept = {f"kept{number}" for number in range(1000)}
    for name in kept:
        io.write(f"{location}/{name}", b"")
    is_over = threading.Event()

    def write_and_delete() -> None:
        while not is_over.is_set():
            files = [f"{location}/{number}" for number in range(20)]
            for file in files:
                io.write(file, b"")
            for file in files:
                io.delete(file)

    worker = threading.Thread(target=write_and_delete)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    worker.start()
    try:
        for _ in range(20):
            assert kept <= set(io.list(location))
    finally:
        is_over.set()
        worker.join()
        sys.setswitchinterval(interval)
        fs.rm("/icebergds-busy", recursive=True)
