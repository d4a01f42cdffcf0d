"""A server of S3, STS and IAM of the tests' own, which checks signatures and permissions: moto."""

from __future__ import annotations

import json
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from moto_server import has_moto, moto_server


@dataclass(frozen=True)
class AwsServer:
    """A server on this machine, with a user who may do anything to S3, and one who may not.

    Attributes:
        keys: key and secret of the user who may use S3.
        weak_keys: those of a user who may only assume the role.
        role: the ARN of a role that may use S3.
    """

    port: int
    keys: tuple[str, str]
    weak_keys: tuple[str, str]
    role: str

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> dict[str, str]:
        """Iceberg's storage properties that lead to the server, without credentials."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": "us-east-1",
            "s3.path-style-access": "true",
        }

    @property
    def properties(self) -> dict[str, str]:
        return {**self.address, **with_keys(self.keys)}

    def client(self, service: str = "s3", keys: tuple[str, str] | None = None) -> Any:
        """botocore's client, by default of the user who may use S3."""
        return _client(self.endpoint, service, keys or self.keys)

    def new_location(self) -> str:
        """A location in a bucket of its own."""
        bucket = uuid.uuid4().hex
        self.client().create_bucket(Bucket=bucket)
        return f"s3://{bucket}/lake"


def with_keys(keys: tuple[str, str]) -> dict[str, str]:
    return {"s3.access-key-id": keys[0], "s3.secret-access-key": keys[1]}


def what_is_missing() -> str | None:
    """What a server needs and is not there."""
    return None if has_moto() else "moto[server] is not installed"


@contextmanager
def aws_server() -> Iterator[AwsServer]:
    """Starts a server, and stops it in the end."""
    # Enough to make the users; then all are checked.
    with moto_server(INITIAL_NO_AUTH_ACTION_COUNT="1000") as server:
        yield _with_users(server.port)


_ALLOW_S3 = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
_ALLOW_ROLE = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}


def _with_users(port: int) -> AwsServer:
    endpoint = f"http://127.0.0.1:{port}"
    iam = _client(endpoint, "iam", ("none", "none"))
    keys = _user(iam, "strong", _ALLOW_S3), _user(iam, "weak", _ALLOW_ROLE)
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    role = iam.create_role(RoleName="lake", AssumeRolePolicyDocument=_policy(trust))
    iam.put_role_policy(RoleName="lake", PolicyName="p", PolicyDocument=_policy(_ALLOW_S3))
    # From here on, every request is checked.
    begin = urllib.request.Request(
        f"{endpoint}/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"}
    )
    urllib.request.urlopen(begin, timeout=30).close()
    return AwsServer(port, *keys, role["Role"]["Arn"])


def _user(iam: Any, name: str, statement: dict[str, str]) -> tuple[str, str]:
    iam.create_user(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=_policy(statement))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]


def _policy(statement: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _client(endpoint: str, service: str, keys: tuple[str, str]) -> Any:
    from botocore.session import Session

    return Session().create_client(
        service,
        region_name="us-east-1",
        endpoint_url=endpoint,
        aws_access_key_id=keys[0],
        aws_secret_access_key=keys[1],
    )
