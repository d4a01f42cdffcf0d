"""Properties of S3 for Hadoop's client S3A."""

from __future__ import annotations

import json

import pytest

from icebergds.io.fileio import FileIO
from icebergds.io.hadoop_s3a import s3a_address, s3a_obstacle, s3a_options

KEYS = {"s3.access-key-id": "key", "s3.secret-access-key": "a secret"}
PATH = "s3://lake/db/file.parquet"


def test_properties_become_settings_of_all_and_of_the_bucket() -> None:
    given = {**KEYS, "s3.endpoint": "http://127.0.0.1:9000", "s3.path-style-access": "true"}
    options = s3a_options(FileIO(given), [PATH])
    for prefix in ("fs.s3a", "fs.s3a.bucket.lake"):
        assert options[f"{prefix}.endpoint"] == "http://127.0.0.1:9000"
        assert options[f"{prefix}.path.style.access"] == "true"
        assert options[f"{prefix}.access.key"] == "key"
        assert options[f"{prefix}.secret.key"] == "a secret"
        assert options[f"{prefix}.aws.credentials.provider"].endswith(
            "SimpleAWSCredentialsProvider"
        )


def test_settings_of_spark_do_not_apply_where_properties_are_silent() -> None:
    options = s3a_options(FileIO(KEYS), [PATH])
    assert options["fs.s3a.bucket.lake.endpoint"] == ""
    assert options["fs.s3a.bucket.lake.endpoint.region"] == "us-east-1"
    assert options["fs.s3a.bucket.lake.session.token"] == ""


def test_anonymous_reads_have_no_keys() -> None:
    options = s3a_options(FileIO({"s3.anonymous": "true", "client.region": "eu-west-1"}), [PATH])
    assert options["fs.s3a.aws.credentials.provider"].endswith("AnonymousAWSCredentialsProvider")
    assert options["fs.s3a.endpoint.region"] == "eu-west-1"
    assert "fs.s3a.access.key" not in options


def test_files_of_other_properties_have_another_scheme() -> None:
    first, same, other = (
        s3a_address(FileIO({**KEYS, **more}), PATH)
        for more in ({}, {"s3.acl": "private"}, {"s3.region": "eu-west-1"})
    )
    assert first == same != other
    assert first.endswith("://lake/db/file.parquet")
    scheme = first.partition(":")[0]
    assert s3a_options(FileIO(KEYS), [PATH])[f"fs.{scheme}.impl"].endswith("S3AFileSystem")


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({**KEYS, "s3.session-token": "t"}, "expire"),
        ({"s3.region": "eu-west-1"}, "no keys"),
        ({"s3.access-key-id": "key"}, "no keys"),
        ({"gcs.oauth2.token": "t"}, "no keys"),
        ({**KEYS, "s3.role-arn": "arn"}, "s3.role-arn"),
        ({**KEYS, "client.refresh-credentials-endpoint": "/c"}, "client.refresh-credentials"),
        ({**KEYS, "s3.proxy-uri": "http://proxy"}, "s3.proxy-uri"),
        ({**KEYS, "s3.endpoint-mode": "IPv6"}, "s3.endpoint-mode"),
    ],
)
def test_what_cannot_be_passed_on_is_named(properties: dict[str, str], why: str) -> None:
    assert why in str(s3a_obstacle(FileIO(properties)))


def test_vended_credentials_are_not_passed_on() -> None:
    vended = json.dumps([{"prefix": "s3://lake", "config": KEYS}])
    assert "expire" in str(s3a_obstacle(FileIO({**KEYS, "storage-credentials": vended})))


def test_settings_of_writes_do_not_matter() -> None:
    writes = {"s3.sse.type": "s3", "s3.write.tags.team": "a", "s3.delete-enabled": "true"}
    assert s3a_obstacle(FileIO({**KEYS, **writes, "max-metadata-bytes": "1000"})) is None
