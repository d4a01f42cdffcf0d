"""Key services: which one properties mean, what they are asked, and what they say if they fail."""

from __future__ import annotations

import base64
import json
import logging
import pickle
import traceback
from collections.abc import Mapping
from pathlib import Path

import pytest
from key_services import KEY_A, MemoryClient
from kms_servers import TOKEN, azure_server, gcp_server
from moto_server import REGION, MotoServer

from icebergds.catalog.address import TableAddress
from icebergds.catalog.loading import load_catalog
from icebergds.encryption.ciphers import seal
from icebergds.encryption.kms import KeyService, load_kms
from icebergds.encryption.pkcs12 import read_secret_keys
from icebergds.errors import InvalidOptionError, StorageError

_KEY = bytes(range(50, 66))


def _loaded(**properties: str) -> KeyService:
    """A service by properties, with `__` for a dot and `_` for a hyphen."""
    found = load_kms(_named(properties), "catalog lake")
    assert found is not None
    return found


def _named(properties: Mapping[str, str]) -> dict[str, str]:
    return {k.replace("__", ".").replace("_", "-"): v for k, v in properties.items()}


def _own(name: str, **properties: str) -> KeyService:
    return _loaded(encryption__kms_impl=f"key_services.{name}", **properties)


def _said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


# Which one.


def test_without_a_type_and_a_class_there_is_no_service() -> None:
    assert load_kms({"warehouse": "/w", "encryption.kms-type": ""}, "catalog lake") is None


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"encryption.kms-type": "aws", "encryption.kms-impl": "a.B"}, "both .* are set"),
        ({"encryption.kms-type": "gpc"}, "'gpc', expected one of aws, azure.*did you mean gcp"),
        ({"encryption.kms-impl": "nowhere.Client"}, "'nowhere.Client', which cannot be imported"),
        ({"encryption.kms-impl": "Client"}, "'Client', which is not a class"),
        ({"encryption.kms-impl": "key_services.Missing"}, "cannot be imported"),
        ({"encryption.kms-impl": "key_services.not_a_class"}, "which is not a class"),
        ({"encryption.kms-impl": "key_services.Lacking"}, "lacks unwrap_key, close"),
        ({"encryption.kms-impl": "com.example.MyKmsClient"}, "expected a Python class"),
    ],
)
def test_what_is_no_service_is_named(properties: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"catalog lake: .*{said}"):
        load_kms(properties, "catalog lake")


@pytest.mark.parametrize(
    ("java", "ours"),
    [
        ("org.apache.iceberg.aws.AwsKeyManagementClient", "aws"),
        ("org.apache.iceberg.azure.keymanagement.AzureKeyManagementClient", "azure"),
        ("org.apache.iceberg.gcp.GcpKeyManagementClient", "gcp"),
    ],
)
def test_classes_of_java_mean_the_same_here(java: str, ours: str) -> None:
    assert _loaded(encryption__kms_impl=java).kind == ours


def test_catalogs_and_locations_have_the_service_of_their_properties(tmp_path: Path) -> None:
    named = {"encryption.kms-impl": "key_services.MemoryClient", "kms.vault": "v"}
    catalog = load_catalog("lake", {"warehouse": str(tmp_path), **named})
    at_location = TableAddress(str(tmp_path / "t"), None, named, {}).io()
    for service in (catalog.io.key_service, at_location.key_service):
        assert service is not None
        MemoryClient.initialized.clear()
        assert service.unwrap_key(service.wrap_key(_KEY, "keyA"), "keyA") == _KEY
        assert [found["kms.vault"] for found in MemoryClient.initialized] in ([], ["v"])
    # Not those that executors get.
    assert "kms" not in repr(dict(catalog.io.properties))
    assert b"key_services" not in pickle.dumps(catalog.io)


def test_a_location_takes_no_other_properties_of_catalogs() -> None:
    with pytest.raises(InvalidOptionError, match="warehouse is a property of a catalog"):
        TableAddress("/t", None, {"encryption.kms-type": "aws", "warehouse": "/w"})


# What they say if they fail.


def test_a_service_is_initialized_once_with_all_properties() -> None:
    service = _own("MemoryClient", warehouse="/w", own__thing="1")
    copy: KeyService = pickle.loads(pickle.dumps(service))
    MemoryClient.initialized.clear()
    for each in (service, copy, service):
        each.wrap_key(_KEY, "keyA")
    assert [(given["warehouse"], given["own.thing"]) for given in MemoryClient.initialized] == [
        ("/w", "1")
    ]


@pytest.mark.parametrize(
    "kind",
    [
        {"encryption.kms-type": "aws"},
        {"encryption.kms-type": "keystore"},
        {"encryption.kms-impl": "key_services.MemoryClient"},
    ],
)
def test_secrets_of_the_catalog_are_none_of_a_service(kind: dict[str, str]) -> None:
    secret = "hunter2"
    catalog = ("uri", "token", "credential", "jdbc.password", "header.Authorization", "ugi")
    further = ("rest.secret-access-key", "ssl.client.key", "s3.secret-access-key", "auth.a.b")
    given = {**dict.fromkeys((*catalog, *further), secret), **kind, "kms.region": "a-region"}
    service = load_kms(given, "catalog lake")
    assert secret.encode() not in pickle.dumps(service)
    assert b"a-region" in pickle.dumps(service)


def test_no_error_shows_a_key() -> None:
    with pytest.raises(StorageError, match=r"master key 'keyA'.*failed to wrap.*refused") as raised:
        _own("Telling").wrap_key(_KEY, "keyA")
    said = _said(raised.value)
    for secret in (_KEY.hex(), base64.b64encode(_KEY).decode(), repr(_KEY)[2:-1]):
        assert secret not in said


def test_no_error_shows_a_secret_of_the_configuration() -> None:
    secret = "-".join(("s3cr3t", "of", "mine"))
    service = _own("NotStarting", vault__secret=secret)
    with pytest.raises(InvalidOptionError, match=r"catalog lake.*cannot be used.*\*\*\*") as raised:
        service.wrap_key(_KEY, "keyA")
    assert secret not in _said(raised.value)
    assert secret not in repr(service)


def test_an_error_of_a_service_is_the_cause() -> None:
    with pytest.raises(StorageError) as raised:
        _own("MemoryClient").wrap_key(_KEY, "no such key")
    assert isinstance(raised.value.__cause__, KeyError)


def test_what_is_not_bytes_is_named() -> None:
    with pytest.raises(StorageError, match="returned str for a key; expected bytes"):
        _own("Answering").wrap_key(_KEY, "keyA")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Forgetful", "does not unwrap the key that it has wrapped"),
        ("Clear", "returned the key in clear"),
        ("Empty", "returned a key of 0 bytes"),
    ],
)
def test_a_key_that_is_lost_or_shown_is_an_error(name: str, said: str) -> None:
    with pytest.raises(StorageError, match=rf"catalog lake.*'keyA', {said}") as raised:
        _own(name).wrap_key(_KEY, "keyA")
    assert repr(_KEY)[2:-1] not in _said(raised.value)


def test_an_error_that_cannot_be_shown_is_named() -> None:
    try:
        _own("Unprintable").wrap_key(_KEY, "keyA")
    except StorageError as error:
        said = str(error)
    except Exception as error:
        # Compared outside of here: whoever shows a failure shows what it was raised in.
        said = type(error).__name__
    assert said.endswith("failed to wrap a key: _UnprintableError")


def test_a_wrapped_key_that_cannot_be_unwrapped_is_an_error() -> None:
    with pytest.raises(InvalidOptionError, match="'keyA', cannot unwrap the key"):
        _own("Truncating").wrap_key(_KEY, "keyA")


def test_a_class_that_cannot_be_made_is_named() -> None:
    with pytest.raises(InvalidOptionError, match=r"catalog lake.*cannot be used.*'address'"):
        _own("NotMade").wrap_key(_KEY, "keyA")


def test_an_unwrapped_key_has_the_length_of_one() -> None:
    with pytest.raises(StorageError, match="unwrapped a key of 3 bytes; expected 16, 24, 32"):
        _own("MemoryClient").unwrap_key(seal(KEY_A, b"abc"), "keyA")


def test_a_wrong_master_key_is_named() -> None:
    wrapped = _own("MemoryClient").wrap_key(_KEY, "keyA")
    with pytest.raises(InvalidOptionError, match=r"'keyB'.*this master key has not wrapped it"):
        _own("MemoryClient").unwrap_key(wrapped, "keyB")


# Key stores.


def _key_store(path: Path, content: object, mode: int = 0o600) -> str:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(mode)
    return str(path)


def _in_json(key: bytes) -> str:
    return base64.b64encode(key).decode()


def test_a_json_key_store_wraps(tmp_path: Path) -> None:
    keys = {"keyA": _in_json(KEY_A), "KeyB": _in_json(bytes(32))}
    path = _key_store(tmp_path / "keys.json", keys)
    service = _loaded(encryption__kms_type="keystore", kms__client__keystore__path=path)
    for key_id in keys:
        assert service.unwrap_key(service.wrap_key(_KEY, key_id), key_id) == _KEY
    # As Java's clients do it.
    assert service.unwrap_key(MemoryClient().wrap_key(_KEY, "keyA"), "keyA") == _KEY
    with pytest.raises(InvalidOptionError, match=r"has no key 'keyC'; did you mean 'KeyB'"):
        service.wrap_key(_KEY, "keyC")
    with pytest.raises(InvalidOptionError, match="has not wrapped it"):
        service.unwrap_key(service.wrap_key(_KEY, "keyA"), "KeyB")


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        ('{"keyA": "MDEy', 0o600, "neither a PKCS12 file nor a JSON object of keys"),
        ("", 0o600, "neither a PKCS12 file nor a JSON object of keys"),
        (["keyA", "MDEy"], 0o600, "neither a PKCS12 file nor a JSON object of keys"),
        ({"keyA": "MDEyM#"}, 0o600, "key 'keyA' is not base64"),
        ({"keyA": 7}, 0o600, "key 'keyA' is not base64"),
        ({"keyA": "MDEy"}, 0o600, "key 'keyA' has 3 bytes, expected 16, 24, 32"),
        ({"keyA": _in_json(KEY_A)}, 0o640, r"others than its owner.*mode 640.*chmod 600"),
        ({}, 0o600, "it has none"),
    ],
)
def test_a_wrong_key_store_is_named(tmp_path: Path, content: object, mode: int, said: str) -> None:
    path = _key_store(tmp_path / "keys.json", content, mode)
    service = _loaded(encryption__kms_type="keystore", kms__client__keystore__path=path)
    with pytest.raises(InvalidOptionError, match=said) as raised:
        service.wrap_key(_KEY, "keyA")
    assert "MDEy" not in _said(raised.value)


def test_a_json_key_store_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = _key_store(tmp_path / "keys.json", "\ufeff" + json.dumps({"keyA": _in_json(KEY_A)}))
    service = _loaded(encryption__kms_type="keystore", kms__client__keystore__path=path)
    assert service.unwrap_key(MemoryClient().wrap_key(_KEY, "keyA"), "keyA") == _KEY


def test_a_missing_key_store_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=r"needs kms.client.keystore.path"):
        _loaded(encryption__kms_type="keystore").wrap_key(_KEY, "keyA")
    path = str(tmp_path / "missing")
    with pytest.raises(InvalidOptionError, match=r"cannot be read: .*No such file"):
        _loaded(encryption__kms_type="keystore", kms__client__keystore__path=path).wrap_key(
            _KEY, "keyA"
        )


# Made by keytool of Java 17: keyA and keyB, of 128 bits, with the password "password".
_PKCS12 = base64.b64decode(
    "MIICkgIBAzCCAjwGCSqGSIb3DQEHAaCCAi0EggIpMIICJTCCAiEGCSqGSIb3DQEHAaCCAhIEggIOMIICCjCCAQEG"
    "CyqGSIb3DQEMCgEFoIGzMIGwBgsqhkiG9w0BDAoBAqCBoASBnTCBmjBmBgkqhkiG9w0BBQ0wWTA4BgkqhkiG9w0B"
    "BQwwKwQUd7EiOEPE2Ws1mjnk+BI+h6X+XywCAicQAgEgMAwGCCqGSIb3DQIJBQAwHQYJYIZIAWUDBAEqBBD1Re3h"
    "sibNjJrvj/FEBA9PBDCMGhTGE/ngQvZsN2NoRwcCfJxmCz7He+D5ayUG7bt6tsFk5iGAUapc4avyehxvG2sxPDAX"
    "BgkqhkiG9w0BCRQxCh4IAGsAZQB5AGEwIQYJKoZIhvcNAQkVMRQEElRpbWUgMTc5NjAxMDczMTM5ODCCAQEGCyqG"
    "SIb3DQEMCgEFoIGzMIGwBgsqhkiG9w0BDAoBAqCBoASBnTCBmjBmBgkqhkiG9w0BBQ0wWTA4BgkqhkiG9w0BBQww"
    "KwQUf7Z67LpPkG6F5S+8Kkmo6K9M43kCAicQAgEgMAwGCCqGSIb3DQIJBQAwHQYJYIZIAWUDBAEqBBBV0/I+awU6"
    "CtewqTi+45LDBDCSOorTxZ39iXu7VsdYxCTk9KHx4IM9NicBq325v/9Q+QTaceZVeyxDU9bwyt4hwmExPDAXBgkq"
    "hkiG9w0BCRQxCh4IAGsAZQB5AGIwIQYJKoZIhvcNAQkVMRQEElRpbWUgMTc5NjAxMDczMzg4MDBNMDEwDQYJYIZI"
    "AWUDBAIBBQAEIPIQQa2Kqzjwc+H5mP0Wn0Y2NM1+MgPFvpEbVlPxLvvfBBT3uO4vuSG4Q2fLCIEwluq1giHJEgIC"
    "JxA="
)
_WRAPPED = base64.b64decode("OPjrYf0DI5wPAmQdfsYSpSZ718k1bd0Y7RT+OV9pp/vita+mutDcP0UdWxE=")


def _pkcs12(directory: Path, content: bytes = _PKCS12) -> KeyService:
    path = directory / "keys.p12"
    path.write_bytes(content)
    return _loaded(encryption__kms_type="keystore", kms__client__keystore__path=str(path))


def test_a_key_store_of_java_wraps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYSTORE_PASSWORD", "password")
    service = _pkcs12(tmp_path)
    assert service.unwrap_key(_WRAPPED, "keyA") == _KEY
    for key_id in ("keyA", "keyB"):
        assert service.unwrap_key(service.wrap_key(_KEY, key_id), key_id) == _KEY
    with pytest.raises(InvalidOptionError, match="has not wrapped it"):
        service.unwrap_key(_WRAPPED, "keyB")


def test_a_key_store_without_its_password_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KEYSTORE_PASSWORD", raising=False)
    with pytest.raises(InvalidOptionError, match="set the environment variable KEYSTORE_PASSWORD"):
        _pkcs12(tmp_path).wrap_key(_KEY, "keyA")
    monkeypatch.setenv("KEYSTORE_PASSWORD", "wrong-password")
    with pytest.raises(InvalidOptionError, match="cannot be opened: Invalid password") as raised:
        _pkcs12(tmp_path).wrap_key(_KEY, "keyA")
    assert "wrong-password" not in _said(raised.value)


def test_a_damaged_key_store_of_java_is_an_error_of_ours() -> None:
    for at in range(0, len(_PKCS12), 7):
        damaged = _PKCS12[:at] + bytes([_PKCS12[at] ^ 0xFF]) + _PKCS12[at + 1 :]
        try:
            found = read_secret_keys(damaged, "password", "the key store")
        except InvalidOptionError:
            continue
        # What is not needed may be damaged, such as when a key was made.
        assert found.keys() == {"keya", "keyb"}


# Services of clouds.


def test_aws_wraps_by_key_id_arn_and_alias(
    moto: MotoServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = [moto.client("kms").create_key()["KeyMetadata"] for _ in range(2)]
    moto.client("kms").create_alias(AliasName="alias/lake", TargetKeyId=made[0]["KeyId"])
    service = _loaded(
        encryption__kms_type="aws",
        kms__endpoint=moto.endpoint,
        kms__region=REGION,
        kms__access_key_id="tester",
        kms__secret_access_key="super-secret",
    )
    for key_id in (made[0]["KeyId"], made[0]["Arn"], "alias/lake"):
        wrapped = service.wrap_key(_KEY, key_id)
        assert _KEY not in wrapped
        assert service.unwrap_key(wrapped, key_id) == _KEY
    assert "botocore" in {record.name.partition(".")[0] for record in caplog.records}
    assert base64.b64encode(_KEY).decode() not in caplog.text
    with pytest.raises(StorageError, match=r"master key 'alias/none'.*failed to wrap.*NotFound"):
        service.wrap_key(_KEY, "alias/none")
    with pytest.raises(InvalidOptionError, match="this master key has not wrapped it"):
        service.unwrap_key(wrapped[:-1] + bytes([wrapped[-1] ^ 1]), "alias/lake")
    assert "super-secret" not in repr(service)


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"kms__endpoint": "somewhere"}, "kms.endpoint is not the address of a server"),
        ({"kms__access_key_id": "a"}, "kms.secret-access-key is missing"),
        ({"kms__profile_name": "no-such-profile"}, "no-such-profile"),
    ],
)
def test_aws_names_what_is_wrong(properties: dict[str, str], said: str) -> None:
    service = _loaded(encryption__kms_type="aws", client__region=REGION, **properties)
    with pytest.raises((InvalidOptionError, StorageError), match=rf"catalog lake: .*{said}"):
        service.wrap_key(_KEY, "alias/lake")


def test_google_wraps() -> None:
    pytest.importorskip("google.cloud.kms_v1")
    name = "projects/p/locations/l/keyRings/r/cryptoKeys/table"
    with gcp_server() as server:
        service = _loaded(
            encryption__kms_type="gcp",
            kms__endpoint=f"http://127.0.0.1:{server.port}",
            gcs__oauth2__token=TOKEN,
        )
        wrapped = service.wrap_key(_KEY, name)
        assert service.unwrap_key(wrapped, name) == _KEY
        # `wrap_key` unwraps what it returns.
        assert server.asked == [f"/v1/{name}:{verb}" for verb in ("encrypt", *["decrypt"] * 2)]
        with pytest.raises(StorageError, match=r"failed to wrap.*404"):
            service.wrap_key(_KEY, name.replace("table", "none"))
        with pytest.raises(InvalidOptionError, match="this master key has not wrapped it"):
            service.unwrap_key(wrapped[:-1] + bytes([wrapped[-1] ^ 1]), name)
        assert TOKEN not in repr(service)


def test_azure_wraps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("azure.keyvault.keys")
    with azure_server(tmp_path) as (server, trusted):
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", trusted)
        service = _loaded(
            encryption__kms_type="azure",
            azure__keyvault__url=f"https://127.0.0.1:{server.port}",
            adls__token=TOKEN,
        )
        wrapped = service.wrap_key(_KEY, "table")
        assert service.unwrap_key(wrapped, "table") == _KEY
        with pytest.raises(InvalidOptionError, match="this master key has not wrapped it"):
            service.unwrap_key(wrapped[:-1] + bytes([wrapped[-1] ^ 1]), "table")
        with pytest.raises(StorageError, match=r"failed to wrap.*KeyNotFound"):
            service.wrap_key(_KEY, "none")
        # The key gets a newer version, which others then wrap by.
        server.versions.append("v2")
        with pytest.raises(InvalidOptionError, match="this master key has not wrapped it"):
            service.unwrap_key(wrapped, "table")
        assert service.unwrap_key(wrapped, "table/v1") == _KEY
        assert TOKEN not in repr(service)


def test_azure_names_what_is_wrong() -> None:
    pytest.importorskip("azure.keyvault.keys")
    with pytest.raises(InvalidOptionError, match=r"needs azure.keyvault.url, such as https://"):
        _loaded(encryption__kms_type="azure").wrap_key(_KEY, "table")
    with pytest.raises(InvalidOptionError, match=r"'RSA', expected one of .*RSA-OAEP-256"):
        _loaded(
            encryption__kms_type="azure",
            azure__keyvault__url="https://v.vault.azure.net",
            azure__keyvault__key_wrap_algorithm="RSA",
        ).wrap_key(_KEY, "table")
