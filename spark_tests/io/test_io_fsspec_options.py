"""Properties of the storage that are malformed."""

from __future__ import annotations

import traceback

import pytest

from icebergds.errors import InvalidOptionError
from icebergds.io.fileio import FileIO
from icebergds.io.fsspec_options import fsspec_options


@pytest.mark.parametrize(
    "endpoint",
    ["AKIAHUNTER2", "minio:9000", "http://me:hunter2@minio:9000", "http://minio?k=hunter2"],
)
def test_an_endpoint_is_the_address_of_a_server(endpoint: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"'s3\.endpoint' is not the address") as raised:
        fsspec_options("s3", "bucket", {"s3.endpoint": endpoint})
    assert endpoint not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    "endpoint", ["http://minio:9000", "https://s3.example.org", "HTTPS://[::1]:9000/store/"]
)
def test_addresses_of_servers_are_passed_on(endpoint: str) -> None:
    assert fsspec_options("s3", "b", {"s3.endpoint": endpoint})["endpoint_url"] == endpoint


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("s3://b/x", "s3.connect-timeout"),
        ("s3://b/x", "s3.request-timeout"),
        ("hdfs://host/x", "hdfs.port"),
    ],
)
def test_a_number_that_is_none_is_not_a_missing_file(location: str, name: str) -> None:
    protocol = location.partition(":")[0]
    with pytest.raises(InvalidOptionError, match=f"'{name}' = 'soon': expected a number"):
        fsspec_options(protocol, "host", {name: "soon"})
    if protocol == "s3":
        pytest.importorskip("s3fs")
        with pytest.raises(InvalidOptionError, match=f"'{name}' = 'soon': expected a number"):
            FileIO({name: "soon"}).read_bytes(location)
