"""Signatures of a catalog that are kept, and what leads tasks to it."""

from __future__ import annotations

import pytest

from icebergds.errors import StorageError, UnsupportedFeatureError
from icebergds.io.request_signing import KeptSignatures, Signature, UnsignedRequest
from icebergds.io.s3_options import s3_options
from icebergds.io.table_access import signature_in, task_signer

_URL = "http://store/bucket/file"
_SIGNED = "AWS4-HMAC-SHA256 Credential=k/d, SignedHeaders=host;x-amz-meta, Signature=s"


def _request(method: str = "GET", url: str = _URL, **headers: str) -> UnsignedRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return UnsignedRequest(method, url, "us-east-1", named)


def _signature(authorization: str = _SIGNED, *, reusable: bool = True) -> Signature:
    return Signature(_URL, {"authorization": authorization}, reusable)


def test_a_signature_holds_for_requests_whose_signed_parts_are_equal() -> None:
    kept = KeptSignatures()
    kept.keep(_request(x_amz_meta="a", range="bytes=0-1"), _signature())
    assert kept.find(_request(x_amz_meta="a", range="bytes=2-3")) == _signature()
    for other in (
        _request(x_amz_meta="b"),
        _request(),
        _request("HEAD", x_amz_meta="a"),
        _request(url=f"{_URL}2", x_amz_meta="a"),
    ):
        assert kept.find(other) is None


@pytest.mark.parametrize(
    ("request_", "signature"),
    [
        (_request("PUT"), _signature()),
        (_request(), _signature(reusable=False)),
        (_request(), _signature("of parts that are not told")),
    ],
    ids=["write", "not allowed", "unknown parts"],
)
def test_other_signatures_are_used_once(request_: UnsignedRequest, signature: Signature) -> None:
    kept = KeptSignatures()
    kept.keep(request_, signature)
    assert kept.find(request_) is None


@pytest.mark.parametrize("body", [{}, {"uri": _URL}, {"uri": _URL, "headers": []}, {"uri": 1}])
def test_an_answer_without_a_signature_is_an_error(body: dict[str, object]) -> None:
    with pytest.raises(StorageError, match="expected uri and headers"):
        signature_in({}, body)


def test_nothing_signs_where_no_catalog_can_be_asked() -> None:
    asked = {"s3.remote-signing-enabled": "true"}
    assert task_signer({**asked, "s3.signer.endpoint": "http://catalog/sign"}) is not None
    assert task_signer({"s3.signer.endpoint": "http://catalog/sign"}) is None
    for endpoint in ({}, {"s3.signer.endpoint": "v1/aws/s3/sign"}):
        with pytest.raises(UnsupportedFeatureError, match=r"s3\.remote-signing-enabled"):
            s3_options({**asked, **endpoint})
