"""Keys of tables: known answers of Java and Rust, rotation, damage, calls of the key service."""

from __future__ import annotations

import pickle
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built.metadata import new_table
from corpus import corpus_dir
from key_services import MemoryClient

from icebergds.commit.operations import TableState
from icebergds.encryption.key_metadata import KeyMetadata, new_key_metadata
from icebergds.encryption.kms import KeyService, load_kms
from icebergds.encryption.table_keys import TableKeys
from icebergds.errors import InvalidMetadataError, InvalidOptionError, StorageError
from icebergds.io.fileio import FileIO
from icebergds.spec.encryption import EncryptedKey
from icebergds.spec.json.metadata import parse_metadata
from icebergds.spec.metadata import TableMetadata

_DAY_MS = 24 * 60 * 60 * 1000
# Written by Java Iceberg 1.12.
_JAVA_KEK = EncryptedKey(
    "lg/wPhkHrUTeoMQXvUplFg==",
    b64decode("z2uF7R6kIG7j/XXYhYhCeknceEF8Jd29WsxoEbbIAQj6LQs/a06XucZm9nc="),
    "keyA",
    {"KEY_TIMESTAMP": "1795891132292"},
)
_JAVA_LIST_KEY = EncryptedKey(
    "K4g9x++JOI0Q+tdI0sYRfA==",
    b64decode(
        "4SxcbgeZExKlgRxhR9NXbWE+z8V2UbtsZdErctp58fKhvazmQWjSpxHlEXCR0zdRY3N+DYmsh9uwfrWahC+8I8yqJw=="
    ),
    _JAVA_KEK.key_id,
)


@pytest.fixture
def service() -> KeyService:
    """A key service whose calls are counted from here on."""
    for calls in (MemoryClient.wrapped, MemoryClient.unwrapped, MemoryClient.initialized):
        calls.clear()
    # Of its own name, so that nothing it has unwrapped is remembered from another test.
    return _service(f"catalog {len(_MADE)}")


_MADE: list[str] = []


def _service(where: str) -> KeyService:
    _MADE.append(where)
    found = load_kms({"encryption.kms-impl": "key_services.MemoryClient"}, where)
    assert found is not None
    return found


def _encrypted(*keys: EncryptedKey, **properties: str) -> TableMetadata:
    metadata = new_table(3, properties={"encryption.key-id": "keyA", **properties})
    return replace(metadata, encryption_keys=keys)


def _with_list(
    keys: TableKeys, metadata: TableMetadata, now_ms: int
) -> tuple[TableMetadata, KeyMetadata]:
    key = new_key_metadata(keys.data_key_length).of_length(1000)
    added = keys.new_list_keys(metadata, key, now_ms)
    return replace(metadata, encryption_keys=(*metadata.encryption_keys, *added)), key


def test_a_list_key_of_java_is_decrypted(service: KeyService) -> None:
    key = TableKeys(service, "keyA").list_key(
        _encrypted(_JAVA_KEK, _JAVA_LIST_KEY), _JAVA_LIST_KEY.key_id
    )
    assert key.serialized().hex() == (
        "01207eff94cbf9a023e90c5f2b2f8c5253940220eaf5029c7d1f04d10b3758926ca7010a028601"
    )
    assert key.file_length == 67


def test_a_list_key_of_rust_is_decrypted(service: KeyService) -> None:
    path = corpus_dir() / "iceberg-rust/crates/iceberg/testdata/table_metadata"
    file = path / "TableMetadataV3ValidEncryption.json"
    metadata = parse_metadata(file.read_bytes(), str(file))
    key_id = metadata.snapshots[0].key_id
    assert key_id is not None
    key = TableKeys(service, "master-1").list_key(metadata, key_id)
    assert key.encryption_key.hex() == "5bb3b37709a50a8ea8b7165034f77a77"
    assert key.aad_prefix == bytes.fromhex("f726dcbf98e79dcedf353a0904104294")
    assert key.file_length is None


@pytest.mark.parametrize("length", [16, 24, 32])
def test_new_list_keys_are_read_back(service: KeyService, length: int) -> None:
    keys = TableKeys(service, "keyA", length)
    metadata, key = _with_list(keys, _encrypted(), 1_000)
    encrypting, listed = metadata.encryption_keys
    assert encrypting.encrypted_by_id == "keyA"
    assert encrypting.properties == {"KEY_TIMESTAMP": "1000"}
    assert (listed.encrypted_by_id, dict(listed.properties)) == (encrypting.key_id, {})
    assert len(b64decode(listed.key_id)) == 16
    # A nonce and a tag around the key.
    assert len(encrypting.encrypted_key_metadata) == length + 28
    assert keys.list_key(metadata, listed.key_id) == key
    # By another process, which has nothing in memory.
    other = TableKeys(_service("elsewhere"), "keyA")
    assert other.list_key(metadata, listed.key_id) == key


def test_a_key_encryption_key_serves_two_years(service: KeyService) -> None:
    keys = TableKeys(service, "keyA")
    metadata = _encrypted()
    counts, by = [], []
    for day in (0, 30, 729, 730, 800):
        metadata, _ = _with_list(keys, metadata, 1_000 + day * _DAY_MS)
        counts.append(len(metadata.encryption_keys))
        by.append(metadata.encryption_keys[-1].encrypted_by_id)
    assert counts == [2, 3, 4, 6, 7]
    assert by[0] == by[1] == by[2] != by[3] == by[4]
    # The keys of old snapshots are still there.
    for each in metadata.encryption_keys:
        if each.encrypted_by_id != "keyA":
            keys.list_key(metadata, each.key_id)


def test_a_key_by_another_master_key_encrypts_no_new_lists(service: KeyService) -> None:
    metadata, _ = _with_list(TableKeys(service, "keyB"), _encrypted(), 1_000)
    added = TableKeys(service, "keyA").new_list_keys(metadata, new_key_metadata(16), 2_000)
    assert [key.encrypted_by_id for key in added] == ["keyA", added[0].key_id]


def test_the_service_is_asked_once_for_each_key(service: KeyService) -> None:
    keys = TableKeys(service, "keyA")
    metadata = _encrypted()
    for now_ms in range(1_000, 1_005):
        metadata, _ = _with_list(keys, metadata, now_ms)
    listed = [key.key_id for key in metadata.encryption_keys[1:]]
    for key_id in listed:
        keys.list_key(metadata, key_id)
    # What this process has made is unwrapped once, to see that it can be.
    assert (MemoryClient.wrapped, MemoryClient.unwrapped) == (["keyA"], ["keyA"])
    MemoryClient.unwrapped.clear()
    later = TableKeys(_service("as if in another process"), "keyA")
    for key_id in listed:
        later.list_key(metadata, key_id)
        replace(later).list_key(metadata, key_id)
    assert MemoryClient.unwrapped == ["keyA"]


def test_a_wrong_master_key_is_named(service: KeyService) -> None:
    changed = replace(_JAVA_KEK, encrypted_by_id="keyB")
    metadata = _encrypted(changed, _JAVA_LIST_KEY)
    with pytest.raises(InvalidOptionError, match=r"table lake\.t.*'keyB'.*has not wrapped"):
        TableKeys(service, "keyA", name="lake.t").list_key(metadata, _JAVA_LIST_KEY.key_id)


def test_an_unknown_master_key_is_named(service: KeyService) -> None:
    with pytest.raises(StorageError, match=r"table lake\.t.*'keyC'.*failed to wrap"):
        TableKeys(service, "keyC", name="lake.t").new_list_keys(
            _encrypted(), new_key_metadata(16), 1
        )


_CHANGED = bytes([_JAVA_LIST_KEY.encrypted_key_metadata[0] ^ 1])


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ((_JAVA_LIST_KEY,), "not among the table's encryption keys"),
        ((_JAVA_KEK,), "not among the table's encryption keys"),
        ((), "not among the table's encryption keys"),
        ((replace(_JAVA_KEK, properties={}), _JAVA_LIST_KEY), "no property KEY_TIMESTAMP"),
        (
            (replace(_JAVA_KEK, properties={"KEY_TIMESTAMP": "9" * 5_000}), _JAVA_LIST_KEY),
            "no property KEY_TIMESTAMP",
        ),
        (
            (replace(_JAVA_KEK, properties={"KEY_TIMESTAMP": "1795891132293"}), _JAVA_LIST_KEY),
            "cannot be decrypted",
        ),
        (
            (
                _JAVA_KEK,
                replace(
                    _JAVA_LIST_KEY,
                    encrypted_key_metadata=_CHANGED + _JAVA_LIST_KEY.encrypted_key_metadata[1:],
                ),
            ),
            "cannot be decrypted",
        ),
        ((_JAVA_KEK, replace(_JAVA_LIST_KEY, encrypted_key_metadata=b"12")), "cannot be decrypted"),
        ((_JAVA_KEK, replace(_JAVA_LIST_KEY, encrypted_by_id=None)), "has no 'encrypted-by-id'"),
        ((replace(_JAVA_KEK, encrypted_by_id=None), _JAVA_LIST_KEY), "has no 'encrypted-by-id'"),
    ],
)
def test_damaged_keys_are_named(
    service: KeyService, keys: tuple[EncryptedKey, ...], said: str
) -> None:
    with pytest.raises(InvalidMetadataError, match=rf"table lake\.t.*{said}"):
        TableKeys(service, "keyA", name="lake.t").list_key(_encrypted(*keys), _JAVA_LIST_KEY.key_id)


def test_keys_travel_to_other_processes_without_what_they_unwrapped(service: KeyService) -> None:
    keys = TableKeys(service, "keyA")
    metadata, key = _with_list(keys, _encrypted(), 1_000)
    pickled = pickle.dumps(keys)
    assert key.encryption_key not in pickled
    copy: TableKeys = pickle.loads(pickled)
    assert copy == keys
    assert copy.list_key(metadata, metadata.encryption_keys[1].key_id) == key


def _state(metadata: TableMetadata, **given: Any) -> TableState:
    return TableState("lake.t", "/w/t/metadata/v1.metadata.json", metadata, FileIO(**given))


def test_states_have_keys_if_the_table_is_encrypted_and_a_service_is_there(
    service: KeyService,
) -> None:
    assert _state(new_table(3), key_service=service).keys is None
    assert _state(_encrypted()).keys is None
    found = _state(_encrypted(**{"encryption.data-key-length": "32"}), key_service=service).keys
    assert found == TableKeys(service, "keyA", 32, "lake.t")
    # Keys of snapshots are left when the property is gone, which other catalogs allow.
    left = replace(new_table(3), encryption_keys=(_JAVA_KEK, _JAVA_LIST_KEY))
    keys = _state(left, key_service=service).keys
    assert keys is not None
    assert keys.list_key(left, _JAVA_LIST_KEY.key_id).file_length == 67


def test_states_keep_their_keys_in_other_processes_but_storage_loses_the_service(
    service: KeyService,
) -> None:
    state = _state(_encrypted(), key_service=service)
    copy: TableState = pickle.loads(pickle.dumps(state))
    assert (copy.keys, copy.io.key_service) == (state.keys, None)
    assert replace(copy, name="lake.u").keys == state.keys


def test_a_wrong_length_of_keys_is_named(service: KeyService) -> None:
    with pytest.raises(InvalidOptionError, match="data-key-length is '20', expected 16, 24 or 32"):
        _state(_encrypted(**{"encryption.data-key-length": "20"}), key_service=service)


def test_nothing_shows_keys(service: KeyService, tmp_path: Path) -> None:
    keys = TableKeys(service, "keyA", name="lake.t")
    metadata, key = _with_list(keys, _encrypted(), 1_000)
    state = _state(metadata, key_service=service)
    shown = " ".join(map(repr, (keys, service, state, state.io, metadata, key)))
    for secret in (key.encryption_key, key.aad_prefix or b"", MemoryClient.keys["keyA"]):
        assert repr(secret)[2:-1] not in shown
        assert secret.hex() not in shown
