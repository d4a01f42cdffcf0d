"""Properties of Azure for Hadoop's client ABFS."""

from __future__ import annotations

import json

import pytest

from icebergds.io.fileio import FileIO
from icebergds.io.hadoop_abfs import abfs_address, abfs_obstacle, abfs_options

KEY = {"adls.account-name": "acc", "adls.account-key": "a2V5"}
CLIENT = {
    "adls.account-name": "acc",
    "adls.tenant-id": "t",
    "adls.client-id": "me",
    "adls.client-secret": "a2V5",
}
HOST = "acc.dfs.core.windows.net"
PATH = f"abfss://lake@{HOST}/db/file.parquet"
EMULATOR = {
    "adls.blob-storage-scheme": "http",
    "adls.blob-storage-authority": "127.0.0.1:10000",
}


def test_a_key_becomes_a_setting_of_all_accounts_and_of_this_one() -> None:
    options = abfs_options(FileIO(KEY), [PATH])
    for of in ("", f".{HOST}"):
        assert options[f"fs.azure.account.key{of}"] == "a2V5"
        assert options[f"fs.azure.account.auth.type{of}"] == "SharedKey"
        assert options[f"fs.azure.abfs.endpoint{of}"] == ""
        assert options[f"fs.azure.always.use.https{of}"] == "true"
    assert not [name for name in options if "service.type" in name]


def test_a_signature_becomes_a_setting_of_the_container_too() -> None:
    options = abfs_options(FileIO({"adls.sas-token.acc": "?sv=1&sig=x", **KEY}), [PATH])
    for of in ("", f".{HOST}", f".lake.{HOST}"):
        assert options[f"fs.azure.sas.fixed.token{of}"] == "sv=1&sig=x"
    assert options[f"fs.azure.account.auth.type.{HOST}"] == "SAS"
    assert "a2V5" not in options.values()


@pytest.mark.parametrize(
    ("authority", "address"),
    [
        ("", "https://login.microsoftonline.com"),
        ("login.chinacloudapi.cn", "https://login.chinacloudapi.cn"),
        ("https://login.microsoftonline.us/", "https://login.microsoftonline.us"),
    ],
)
def test_a_client_gets_tokens_where_azure_s_own_tools_get_them(
    monkeypatch: pytest.MonkeyPatch, authority: str, address: str
) -> None:
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", authority)
    options = abfs_options(FileIO(CLIENT), [PATH])
    for of in ("", f".{HOST}"):
        assert options[f"fs.azure.account.auth.type{of}"] == "OAuth"
        assert options[f"fs.azure.account.oauth2.client.id{of}"] == "me"
        assert options[f"fs.azure.account.oauth2.client.secret{of}"] == "a2V5"
        found = options[f"fs.azure.account.oauth2.client.endpoint{of}"]
        assert found == f"{address}/t/oauth2/v2.0/token"


def test_a_key_comes_before_a_client() -> None:
    options = abfs_options(FileIO({**CLIENT, **KEY}), [PATH])
    assert options["fs.azure.account.auth.type"] == "SharedKey"
    assert not [name for name in options if "oauth" in name]


@pytest.mark.parametrize(
    ("connection", "secret", "server"),
    [
        ("AccountName=acc;AccountKey=a2V5;EndpointSuffix=core.windows.net", "account.key", ""),
        ("BlobEndpoint=https://acc.blob.core.windows.net/;SharedAccessSignature=a2V5", "sas", ""),
        ("BlobEndpoint=https://acc.blob.core.windows.net/?a2V5", "sas", ""),
        (
            "DefaultEndpointsProtocol=http;AccountName=acc;AccountKey=a2V5;"
            "BlobEndpoint=http://127.0.0.1:10000/acc",
            "account.key",
            "127.0.0.1:10000",
        ),
    ],
)
@pytest.mark.parametrize("path", [PATH, "abfs://lake@acc.blob.core.windows.net/db/file.parquet"])
def test_a_connection_string_says_all(path: str, connection: str, secret: str, server: str) -> None:
    io = FileIO({"adls.connection-string": connection})
    assert abfs_obstacle(io, path) is None
    options = abfs_options(io, [path])
    secrets = [name for name, value in options.items() if value == "a2V5"]
    assert secrets
    assert all(secret in name for name in secrets)
    assert options[f"fs.azure.abfs.endpoint.{HOST}"] == server


def test_another_server_has_accounts_in_its_paths() -> None:
    options = abfs_options(FileIO({**KEY, **EMULATOR}), [PATH])
    assert options["fs.azure.abfs.endpoint"] == "127.0.0.1:10000"
    assert options["fs.azure.always.use.https"] == "false"
    assert options["fs.azure.fns.account.service.type"] == "BLOB"


@pytest.mark.parametrize(
    ("path", "more", "host"),
    [
        (PATH, {}, HOST),
        ("wasbs://lake@acc.blob.core.windows.net/db/file.parquet", {}, HOST),
        ("abfs://lake/db/file.parquet", {}, HOST),
        (PATH, EMULATOR, HOST),
        (
            "abfss://lake@acc.dfs.core.chinacloudapi.cn/db/file.parquet",
            {},
            "acc.dfs.core.chinacloudapi.cn",
        ),
        (
            "abfs://lake/db/file.parquet",
            {"adls.blob-storage-authority": ".blob.core.chinacloudapi.cn"},
            "acc.dfs.core.chinacloudapi.cn",
        ),
    ],
)
def test_addresses_name_the_account_s_host_of_this_client(
    path: str, more: dict[str, str], host: str
) -> None:
    io = FileIO({**KEY, **more})
    assert abfs_obstacle(io, path) is None
    scheme, _, rest = abfs_address(io, path).partition("://")
    assert rest == f"lake@{host}/db/file.parquet"
    assert abfs_options(io, [path])[f"fs.{scheme}.impl"].endswith("AzureBlobFileSystem")


def test_files_of_other_properties_have_another_scheme() -> None:
    first, same, other = (
        abfs_address(FileIO({**KEY, **more}), PATH)
        for more in ({}, {"max-metadata-bytes": "1000"}, {"adls.sas-token": "sig=x"})
    )
    assert first == same != other


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"adls.account-name": "acc"}, "no key, signature or client of Azure"),
        ({**KEY, "adls.account-name": "other"}, "no key, signature or client of Azure"),
        ({**KEY, "adls.token": "t"}, "adls.token"),
        ({"adls.tenant-id": "t", **KEY}, "adls.client-id is missing"),
        ({"adls.anon": "true"}, "adls.anon"),
        ({"adls.connection-string": "AccountName=acc"}, "no key, signature or client"),
        ({**CLIENT, "adls.connection-string": "AccountName=acc"}, "no key, signature or client"),
        ({**CLIENT, "adls.token": "t"}, "adls.token"),
        ({**KEY, "adls.account-host": "acc.example.org"}, "address https://acc.example.org"),
        ({**KEY, "adls.blob-storage-scheme": "http"}, "address http://acc.blob"),
        ({"adls.sas-token": "a;b"}, "malformed"),
    ],
)
def test_what_cannot_be_passed_on_is_named(properties: dict[str, str], why: str) -> None:
    assert why in str(abfs_obstacle(FileIO(properties), PATH))


def test_vended_credentials_are_not_passed_on() -> None:
    vended = json.dumps([{"prefix": "abfss://lake", "config": {"adls.sas-token": "sig=x"}}])
    obstacle = abfs_obstacle(FileIO({**KEY, "storage-credentials": vended}), PATH)
    assert "expire" in str(obstacle)
