"""Settings of S3: credentials, roles, encryption, and what is stored with an object."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from aws_iam_server import AwsServer, with_keys

from icebergds.errors import AlreadyExistsError, InvalidOptionError, StorageError
from icebergds.io.fileio import FileIO
from icebergds.io.fsspec_options import fsspec_options
from icebergds.io.s3_options import s3_options


@pytest.fixture
def root(aws_iam: AwsServer) -> str:
    return aws_iam.new_location()


@pytest.fixture(autouse=True)
def _no_credentials_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, aws_iam: AwsServer
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", aws_iam.endpoint)


def _works(properties: dict[str, str], root: str) -> bool:
    io = FileIO(properties)
    io.write(f"{root}/f", b"x")
    return io.read_bytes(f"{root}/f") == b"x" and io.list(root) == ["f"]


# Credentials.


@pytest.mark.parametrize("prefix", ["s3", "client"])
def test_keys_sign_requests(aws_iam: AwsServer, root: str, prefix: str) -> None:
    keys = {name.replace("s3", prefix): key for name, key in with_keys(aws_iam.keys).items()}
    assert _works({**aws_iam.address, **keys}, root)


def test_a_wrong_secret_is_refused_and_not_shown(aws_iam: AwsServer, root: str) -> None:
    wrong = with_keys((aws_iam.keys[0], "hunter2"))
    with pytest.raises(StorageError, match=r"SignatureDoesNotMatch|signature") as raised:
        _works({**aws_iam.address, **wrong}, root)
    assert "hunter2" not in str(raised.value)


def test_a_session_has_a_token(aws_iam: AwsServer, root: str) -> None:
    session = aws_iam.client("sts", aws_iam.weak_keys).assume_role(
        RoleArn=aws_iam.role, RoleSessionName="session"
    )["Credentials"]
    keys = with_keys((session["AccessKeyId"], session["SecretAccessKey"]))
    assert _works({**aws_iam.address, **keys, "s3.session-token": session["SessionToken"]}, root)


@pytest.mark.parametrize("name", ["s3.profile-name", "client.profile-name"])
def test_a_profile_has_keys(aws_iam: AwsServer, root: str, tmp_path: Path, name: str) -> None:
    key, secret = aws_iam.keys
    (tmp_path / "credentials").write_text(
        f"[lake]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n"
    )
    assert _works({**aws_iam.address, name: "lake"}, root)


def test_without_credentials_it_is_said_what_to_set(aws_iam: AwsServer, root: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"set s3\.access-key-id"):
        _works(aws_iam.address, root)


def test_anonymous_requests_are_not_signed(aws_iam: AwsServer, root: str) -> None:
    with pytest.raises(StorageError):
        FileIO({**aws_iam.address, "s3.anonymous": "true"}).write(f"{root}/f", b"x")
    assert fsspec_options("s3", "b", {"s3.anonymous": "true"})["anon"] is True


# Roles.


@pytest.mark.parametrize(
    "names",
    [
        {"client.assume-role.arn": "", "client.assume-role.region": "us-east-1"},
        {"client.assume-role.arn": "", "client.assume-role.external-id": "external"},
        {"client.assume-role.arn": "", "client.assume-role.tags.team": "lake"},
        {"s3.role-arn": "", "s3.role-session-name": "session"},
        {"client.role-arn": "", "client.role-session-name": "session"},
    ],
)
def test_a_role_is_assumed(aws_iam: AwsServer, root: str, names: dict[str, str]) -> None:
    weak = {**aws_iam.address, **with_keys(aws_iam.weak_keys)}
    with pytest.raises(StorageError, match=r"Access ?Denied|Forbidden|not authorized"):
        _works(weak, root)
    role = {name: value or aws_iam.role for name, value in names.items()}
    assert _works({**weak, **role}, root)


def test_a_role_is_assumed_by_the_credentials_of_the_environment(
    aws_iam: AwsServer, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", aws_iam.weak_keys[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", aws_iam.weak_keys[1])
    role = {"s3.role-arn": aws_iam.role, "s3.role-session-name": "of-the-environment"}
    assert _works({**aws_iam.address, **role}, root)


def test_a_role_needs_credentials_that_assume_it(aws_iam: AwsServer, root: str) -> None:
    role = {"s3.role-arn": aws_iam.role, "s3.role-session-name": "of-nobody"}
    with pytest.raises(InvalidOptionError, match=r"set s3\.access-key-id"):
        _works({**aws_iam.address, **role}, root)


def test_a_role_is_assumed_once_in_a_process(aws_iam: AwsServer) -> None:
    def options(name: str) -> dict[str, Any]:
        return s3_options({"s3.role-arn": aws_iam.role, "s3.role-session-name": name})

    assert options("one") == options("one")
    assert options("one")["session"] is not options("two")["session"]


def test_storage_of_a_role_goes_to_other_processes(aws_iam: AwsServer, root: str) -> None:
    weak = {**aws_iam.address, **with_keys(aws_iam.weak_keys), "s3.role-arn": aws_iam.role}
    io: FileIO = pickle.loads(pickle.dumps(FileIO(weak)))
    io.write(f"{root}/f", b"x")
    assert io.read_bytes(f"{root}/f") == b"x"
    assert aws_iam.weak_keys[1] not in repr(io)


# What is stored with an object.


@pytest.mark.parametrize("name", ["s3.sse.key", "s3.sse-kms-key-id"])
def test_objects_are_encrypted_by_a_key(aws_iam: AwsServer, root: str, name: str) -> None:
    key = "arn:aws:kms:us-east-1:123456789012:key/lake"
    io = FileIO({**aws_iam.properties, "s3.sse.type": "kms", name: key})
    for location, head in _heads(aws_iam, io, root).items():
        assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", key), location


@pytest.mark.parametrize(
    ("name", "value", "algorithm"),
    [
        ("s3.sse.type", "s3", "AES256"),
        ("s3.sse.type", "dsse-kms", "aws:kms:dsse"),
        ("s3.server-side-encryption", "AES256", "AES256"),
    ],
)
def test_objects_are_encrypted(
    aws_iam: AwsServer, root: str, name: str, value: str, algorithm: str
) -> None:
    for head in _heads(aws_iam, FileIO({**aws_iam.properties, name: value}), root).values():
        assert head["ServerSideEncryption"] == algorithm


def test_objects_have_a_storage_class_and_tags(aws_iam: AwsServer, root: str) -> None:
    given = {"s3.write.storage-class": "STANDARD_IA", "s3.write.tags.team": "a + b"}
    heads = _heads(aws_iam, FileIO({**aws_iam.properties, **given}), root)
    assert {head["StorageClass"] for head in heads.values()} == {"STANDARD_IA"}
    bucket = root.removeprefix("s3://").partition("/")[0]
    tags = aws_iam.client().get_object_tagging(Bucket=bucket, Key="lake/write")["TagSet"]
    assert tags == [{"Key": "team", "Value": "a + b"}]


def test_the_requester_pays(aws_iam: AwsServer, root: str) -> None:
    assert fsspec_options("s3", "b", {"s3.requester-pays": "true"})["requester_pays"] is True
    assert _works({**aws_iam.properties, "s3.requester-pays": "true"}, root)


def test_a_file_is_created_once(aws_iam: AwsServer, root: str) -> None:
    io = FileIO(aws_iam.properties)
    io.create(f"{root}/f", b"first")
    with pytest.raises(AlreadyExistsError):
        io.create(f"{root}/f", b"second")
    assert io.read_bytes(f"{root}/f") == b"first"


@pytest.mark.parametrize("scheme", ["s3a", "s3n", "oss"])
def test_other_schemes_lead_to_the_endpoint(aws_iam: AwsServer, root: str, scheme: str) -> None:
    io = FileIO(aws_iam.properties)
    io.write(f"{root}/f", b"x")
    assert io.read_bytes(f"{scheme}{root.removeprefix('s3')}/f") == b"x"


# Options of the client.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("s3.sse.type", "custom"),
        ("s3.delete-enabled", "false"),
        ("s3.delete.tags.k", "v"),
        ("s3.access-points.bucket", "arn"),
    ],
)
def test_what_is_not_supported_is_named(name: str, value: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"'{name}'.* not supported"):
        s3_options({name: value})


@pytest.mark.parametrize(
    ("name", "style"),
    [("s3.path-style-access", "path"), ("s3.force-virtual-addressing", "virtual")],
)
def test_buckets_are_in_the_path_or_in_the_host(name: str, style: str) -> None:
    assert s3_options({name: "true"})["config_kwargs"]["s3"] == {"addressing_style": style}


def _heads(aws_iam: AwsServer, io: FileIO, root: str) -> dict[str, dict[str, Any]]:
    """What the store knows of files that were written, created, and streamed."""
    io.write(f"{root}/write", b"x")
    io.create(f"{root}/create", b"x")
    with io.open_output(f"{root}/stream") as stream:
        stream.write(bytes(17 * 2**20))
    bucket, _, path = root.removeprefix("s3://").partition("/")
    client = aws_iam.client()
    return {
        name: client.head_object(Bucket=bucket, Key=f"{path}/{name}")
        for name in ("write", "create", "stream")
    }
