"""Storage of Azure: accounts and their credentials, blocks, pages, names that are refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from azure_server import ACCOUNT, KEY, AzureServer

from icebergds.errors import InvalidOptionError, StorageError, UnsupportedFeatureError
from icebergds.io import multipart, recursive_listing
from icebergds.io.azure_options import azure_options
from icebergds.io.file_systems import use_file_system
from icebergds.io.fileio import FileIO
from icebergds.io.fsspec_options import lacks_credentials

if TYPE_CHECKING:
    from entra_server import EntraServer

_HOST = f"{ACCOUNT}.dfs.core.windows.net"
_SECRET = "hunter2"


@pytest.fixture
def root(azure: AzureServer) -> str:
    return azure.new_location()


def _container(root: str) -> str:
    return root.removeprefix("abfss://").partition("@")[0]


def _works(properties: dict[str, str], root: str) -> bool:
    io = FileIO(properties)
    io.write(f"{root}/f", b"x")
    return io.read_bytes(f"{root}/f") == b"x"


# Credentials.


@pytest.mark.parametrize(
    "names",
    [
        ("adls.account-name", "adls.account-key"),
        ("adls.auth.shared-key.account.name", "adls.auth.shared-key.account.key"),
    ],
)
def test_the_key_of_the_account_opens_it(
    azure: AzureServer, root: str, names: tuple[str, str]
) -> None:
    assert _works({**_address(azure), **dict(zip(names, (ACCOUNT, KEY), strict=True))}, root)


def test_a_client_is_not_that_of_a_connection_string_of_the_environment(
    entra: EntraServer, azure: AzureServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = f"BlobEndpoint={azure.endpoint};AccountName={ACCOUNT};AccountKey={KEY}"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", given)
    location = entra.azure.new_location()
    assert _works(entra.properties, location)
    with entra.azure.client() as client:
        blobs = client.get_container_client(_container(location)).list_blob_names()
        assert list(blobs) == ["lake/f"]


def test_a_connection_string_of_the_environment_opens_its_own_account(
    azure: AzureServer, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = f"BlobEndpoint={azure.endpoint};AccountName={ACCOUNT};AccountKey={KEY}"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", given)
    assert _works({}, root)
    with pytest.raises(InvalidOptionError, match=f"of the account {ACCOUNT}.*unset it"):
        _works({}, root.replace(f"@{ACCOUNT}.", "@another."))


def test_a_client_of_entra_has_no_key(entra: EntraServer) -> None:
    assert _works(entra.properties, entra.azure.new_location())
    assert entra.tokens.issued > 0


def test_a_client_that_entra_does_not_know_is_refused(entra: EntraServer) -> None:
    wrong = {**entra.properties, "adls.client-secret": _SECRET}
    refused = entra.tokens.refused
    with pytest.raises(StorageError, match=r"no token for the client client: .*unknown") as raised:
        _works(wrong, entra.azure.new_location())
    assert entra.tokens.refused == refused + 1
    assert _SECRET not in str(raised.value)


def test_a_wrong_key_is_refused_and_not_shown(azure: AzureServer, root: str) -> None:
    wrong = KEY[::-1].lstrip("=") + "=="
    with pytest.raises(StorageError, match=r"AuthorizationFailure|AuthenticationFailed") as raised:
        _works({**azure.properties, "adls.account-key": wrong}, root)
    assert wrong not in str(raised.value)


@pytest.mark.parametrize("name", ["adls.connection-string", f"adls.connection-string.{_HOST}"])
def test_a_connection_string_opens_the_account(azure: AzureServer, root: str, name: str) -> None:
    given = f"BlobEndpoint={azure.endpoint};AccountName={ACCOUNT};AccountKey={KEY}"
    assert _works({name: given}, root)


def test_the_connection_string_of_java_is_an_address(azure: AzureServer, root: str) -> None:
    signature = azure.signature(_container(root), permission="rwdlc")
    name = f"adls.connection-string.{_HOST}"
    assert _works({name: azure.endpoint, f"adls.sas-token.{_HOST}": signature}, root)
    assert _works({name: f"{azure.endpoint}?{signature}"}, root)


@pytest.mark.parametrize(
    "name", ["adls.sas-token", f"adls.sas-token.{ACCOUNT}", f"adls.sas-token.{_HOST}"]
)
@pytest.mark.parametrize("mark", ["", "?"])
def test_a_signature_opens_what_it_permits(
    azure: AzureServer, root: str, name: str, mark: str
) -> None:
    FileIO(azure.properties).write(f"{root}/f", b"x")
    reads = FileIO(
        {**_address(azure), name: mark + azure.signature(_container(root), permission="r")}
    )
    assert reads.read_bytes(f"{root}/f") == b"x"
    with pytest.raises(StorageError, match="AuthorizationPermissionMismatch"):
        reads.write(f"{root}/f", b"y")


def test_a_signature_of_a_container_is_enough_for_a_table(azure: AzureServer, root: str) -> None:
    signature = azure.signature(_container(root), permission="rwdlc")
    io = FileIO({**_address(azure), f"adls.sas-token.{_HOST}": signature})
    io.create(f"{root}/a", b"1")
    io.write(f"{root}/b", b"2")
    assert sorted(io.list(root)) == ["a", "b"]
    assert io.is_directory(root)
    io.delete_all([f"{root}/a", f"{root}/b"])
    assert not io.exists(root)


def test_a_signature_goes_before_the_key(azure: AzureServer, root: str) -> None:
    signature = azure.signature(_container(root), permission="r")
    with pytest.raises(StorageError, match="AuthorizationPermissionMismatch"):
        _works({**azure.properties, f"adls.sas-token.{_HOST}": signature}, root)


def test_the_account_of_a_location_is_the_one_of_the_properties(
    azure: AzureServer, root: str
) -> None:
    assert _works(azure.properties, f"abfs://{_container(root)}/lake")


@pytest.mark.parametrize("scheme", ["abfs", "wasb", "wasbs", "az", "ABFSS"])
def test_all_schemes_of_azure_lead_to_the_same_file(
    azure: AzureServer, root: str, scheme: str
) -> None:
    io = FileIO(azure.properties)
    io.write(f"{root}/f", b"x")
    assert io.read_bytes(scheme + root.removeprefix("abfss") + "/f") == b"x"


def test_the_environment_does_not_override_properties(
    azure: AzureServer, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = f"BlobEndpoint=http://127.0.0.1:1/other;AccountName=other;AccountKey={KEY}"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", elsewhere)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "b3RoZXI=")
    assert _works(azure.properties, root)


def test_missing_credentials_are_told_from_refused_ones() -> None:
    from azure.core.exceptions import ClientAuthenticationError

    assert lacks_credentials(ClientAuthenticationError("no credential found any"))
    refused = ClientAuthenticationError("the key is wrong")
    refused.response = object()
    assert not lacks_credentials(refused)


# Options of the client.


def test_keys_of_another_account_are_left_alone() -> None:
    properties = {
        "adls.account-name": "mine",
        "adls.account-key": _SECRET,
        "adls.sas-token": _SECRET,
        "adls.connection-string": f"AccountName=mine;AccountKey={_SECRET}",
    }
    assert azure_options("c@other.dfs.core.windows.net", properties) == {
        "account_name": "other",
        "account_host": "other.blob.core.windows.net",
    }


def test_without_credentials_azure_chooses_the_identity() -> None:
    assert azure_options("c@acc.dfs.core.windows.net", {}) == {
        "account_name": "acc",
        "account_host": "acc.blob.core.windows.net",
    }


def test_a_client_has_a_secret() -> None:
    client = {"adls.tenant-id": "t", "adls.client-id": "i", "adls.client-secret": _SECRET}
    place = "c@acc.dfs.core.windows.net"
    first, same, other = (
        repr(azure_options(place, {**client, **more}))
        for more in ({}, {}, {"adls.client-secret": "another"})
    )
    assert first == same != other
    assert _SECRET not in first
    for name in client:
        rest = {other: value for other, value in client.items() if other != name}
        with pytest.raises(InvalidOptionError, match=f"{name} is missing"):
            azure_options("c@acc.dfs.core.windows.net", rest)


def test_a_token_is_not_shown_and_makes_another_client() -> None:
    def options(token: str) -> Any:
        return azure_options("c@acc.dfs.core.windows.net", {"adls.token": token})["credential"]

    assert _SECRET not in repr(options(_SECRET))
    assert repr(options(_SECRET)) == repr(options(_SECRET))
    assert repr(options(_SECRET)) != repr(options("other"))


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("c@acc.dfs.core.windows.net", "acc.blob.core.windows.net"),
        ("c@acc.blob.core.windows.net", "acc.blob.core.windows.net"),
        ("c@acc.dfs.core.usgovcloudapi.net", "acc.blob.core.usgovcloudapi.net"),
        ("w@onelake.dfs.fabric.microsoft.com", "onelake.blob.fabric.microsoft.com"),
    ],
)
def test_blobs_are_at_the_host_of_blobs(authority: str, host: str) -> None:
    assert azure_options(authority, {})["account_host"] == host


def test_a_host_may_be_given() -> None:
    given = {"adls.account-host": "acc.privatelink.example.org"}
    options = azure_options("c@acc.dfs.core.windows.net", given)
    assert options["account_host"] == "acc.privatelink.example.org"


def test_a_location_without_an_account_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_CONNECTION_STRING"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidOptionError, match=r"names no storage account.*adls\.account-name"):
        FileIO().read_bytes("abfs://container/f")
    with pytest.raises(InvalidOptionError, match="names no container"):
        FileIO().read_bytes("abfss://acc.dfs.core.windows.net/f")


@pytest.mark.parametrize("name", ["adls.sas-token", "adls.account-key"])
def test_a_malformed_secret_is_refused_and_not_shown(name: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"'{name}' is malformed") as raised:
        azure_options("c@acc.dfs.core.windows.net", {name: f"{_SECRET};AccountName=other"})
    assert _SECRET not in str(raised.value)


def test_a_malformed_connection_string_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidOptionError, match=r"'adls\.connection-string' is mal") as raised:
        azure_options("c@acc.dfs.core.windows.net", {"adls.connection-string": _SECRET})
    assert _SECRET not in str(raised.value)


# Files.


@pytest.fixture
def io(azure: AzureServer) -> FileIO:
    return FileIO(azure.properties)


@pytest.mark.parametrize("name", ["a?b#c", "tail#", "tail?", "a?versionid=1", "a\nb"])
def test_a_name_that_the_client_would_change_is_refused(io: FileIO, root: str, name: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="take it for another name"):
        io.write(f"{root}/{name}", b"x")


def test_large_files_are_sent_in_blocks(
    io: FileIO, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multipart, "_PART", 2**20)
    numbers = pa.table({"id": pa.array(range(500_000), pa.int64())})
    with io.open_output(f"{root}/f") as stream:
        pq.write_table(numbers, stream, compression="none", use_dictionary=False)
    with io.open(f"{root}/f") as file:
        assert pq.read_table(file).equals(numbers)


@pytest.mark.parametrize("size", [1, 3 * 2**20])
def test_a_stream_that_is_discarded_never_appears(
    io: FileIO, root: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multipart, "_PART", 2**20)
    stream = io.open_output(f"{root}/f")
    stream.write(bytes(size))
    stream.discard()
    stream.close()
    assert not io.exists(f"{root}/f")


def test_blobs_are_listed_page_by_page(
    io: FileIO, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recursive_listing, "_AZURE_PAGE", 3)
    for number in range(7):
        io.write(f"{root}/{number}", b"x")
    pages = list(io.list_recursively(root))
    assert [page.files.num_rows for page in pages] == [3, 3, 1]
    assert all(page.storage_time_ms is not None for page in pages)


def test_directories_of_a_hierarchical_account_are_not_files(
    azure: AzureServer, io: FileIO, root: str
) -> None:
    """Such an account lists them as blobs with this mark."""
    io.write(f"{root}/d/f", b"x")
    with azure.client() as client:
        blob = client.get_blob_client(_container(root), "lake/d")
        blob.upload_blob(b"", metadata={"hdi_isfolder": "true"})
    (page,) = io.list_recursively(root)
    assert page.files["location"].to_pylist() == [f"{root}/d/f"]
    assert io.list(root) == ["d"]
    assert io.is_directory(f"{root}/d")


@pytest.mark.parametrize("name", ["plain", "with space", "p%20q#1"])
def test_empty_directories_are_made_and_removed(io: FileIO, root: str, name: str) -> None:
    for _ in range(2):
        io.make_directory(f"{root}/{name}")
    assert io.is_directory(f"{root}/{name}")
    assert io.list(root) == [name]
    assert io.list(f"{root}/{name}") == []
    assert list(io.list_recursively(root)) == []
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
    io.delete(f"{root}/a/f")
    assert io.is_directory(f"{root}/a")


def test_a_directory_does_not_replace_a_file(io: FileIO, root: str) -> None:
    io.write(f"{root}/f", b"x")
    with pytest.raises(OSError, match="exists"):
        io.make_directory(f"{root}/f")
    assert io.read_bytes(f"{root}/f") == b"x"


def _address(azure: AzureServer) -> dict[str, str]:
    return {name: value for name, value in azure.properties.items() if "blob-storage" in name}


def test_a_server_that_cannot_be_reached_is_soon_given_up() -> None:
    properties = {"adls.account-name": ACCOUNT, "adls.account-key": KEY}
    path = f"abfss://c@{ACCOUNT}.dfs.core.windows.net/f"
    client = use_file_system(path, properties, lambda fs, _: fs.service_client)
    # Each attempt waits for a quarter of a minute.
    assert client._config.retry_policy.connect_retries == 1
    assert client._config.retry_policy.total_retries == 3


def test_without_credentials_there_is_one_attempt(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    # Of the places that Azure's own tools look at, only the environment: not this machine's.
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    with pytest.raises(InvalidOptionError, match=r"no credentials for .*: set adls\.account-key"):
        FileIO({}).read_bytes("abfss://c@nobody.dfs.core.windows.net/f")
    told = [record for record in caplog.records if "failed to retrieve a token" in record.message]
    assert len(told) == 1
