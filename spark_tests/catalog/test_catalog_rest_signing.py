"""Requests to S3 are signed by the catalog, for tables that have no keys."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest
from aws_iam_server import AwsServer
from rest_server import RestServer
from rest_signing import TABLE_TOKEN, Signing, signing_catalog
from rest_tables import TABLE, open_rest_catalog

import icebergds
from icebergds.catalog.rest.catalog import RestCatalog
from icebergds.errors import InvalidMetadataError, StorageError, UnsupportedFeatureError
from icebergds.io.fileio import FileIO
from icebergds.testing.catalog_steps import create_table

CATALOG_TOKEN = "token-of-the-catalog"


@pytest.fixture
def signing(
    rest: RestServer, aws_iam: AwsServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Signing]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with signing_catalog(rest, aws_iam) as made:
        yield made


@pytest.fixture
def guarded(signing: Signing) -> Signing:
    """A catalog that signs only for its own token and for that of a table, which it gives."""
    signing.tokens = (CATALOG_TOKEN, TABLE_TOKEN)
    signing.config["token"] = TABLE_TOKEN
    return signing


def _open(signing: Signing, **properties: str) -> RestCatalog:
    return open_rest_catalog(signing.uri, **properties)


def _created(signing: Signing, **properties: str) -> tuple[FileIO, str]:
    """The storage of a new table, and the location of a file that it may have."""
    state = create_table(_open(signing, **properties), TABLE)
    return state.io, f"{state.metadata.location}/data/1"


def _for_tasks(state_io: FileIO) -> list[FileIO]:
    """The storage as other processes get it: pickled, and as options."""
    return [pickle.loads(pickle.dumps(state_io)), FileIO(state_io.all_properties)]


def test_rows_are_written_read_and_deleted_without_keys(signing: Signing) -> None:
    catalog = icebergds.load_catalog("lake", uri=signing.uri)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint")
    table.append(pa.table({"id": [1, 2]}))
    table.append(pa.table({"id": [3]}))
    found = catalog.load_table("db.t").scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == [1, 2, 3]
    assert table.inspect.files().num_rows > 0
    catalog.purge_table("db.t")
    # Deletes of many objects are signed with what they delete.
    assert any("body" in each for each in signing.signed)
    assert {each["method"] for each in signing.signed} >= {"GET", "PUT", "POST"}


def test_large_files_are_written_in_parts(signing: Signing) -> None:
    io, location = _created(signing)
    data = bytes(range(256)) * 80_000
    with io.open_output(location) as output:
        output.write(data)
    assert io.read_bytes(location) == data
    assert any("partNumber" in each["uri"] for each in signing.signed)


def test_names_with_special_characters_are_signed_as_they_are_sent(signing: Signing) -> None:
    io, location = _created(signing)
    name = f"{location} ä+%20=?&#"
    io.write(name, b"rows")
    assert io.read_bytes(name) == b"rows"
    assert io.list(location.rpartition("/")[0])


def test_the_catalog_signs_for_who_has_its_token(guarded: Signing) -> None:
    io, location = _created(guarded, token=CATALOG_TOKEN)
    io.write(location, b"rows")
    assert {seen.headers["Authorization"] for seen in guarded.asked} == {f"Bearer {CATALOG_TOKEN}"}


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({}, "/v1/aws/s3/sign"),
        ({"s3.signer.endpoint": "v1/db/t/sign"}, "/v1/db/t/sign"),
        ({"signer.endpoint": "v1/db/t/sign?secret=a%2Fb"}, "/v1/db/t/sign?secret=a%2Fb"),
        ({"s3.signer.uri": "<uri>/of/others/"}, "/of/others/v1/aws/s3/sign"),
        ({"s3.signer.endpoint": "<uri>/whole/sign"}, "/whole/sign"),
    ],
)
def test_the_endpoint_is_the_servers(signing: Signing, config: dict[str, str], path: str) -> None:
    base = signing.uri
    signing.config = {name: value.replace("<uri>", base) for name, value in config.items()}
    io, location = _created(signing)
    for each in (io, *_for_tasks(io)):
        signing.asked.clear()
        each.write(location, b"rows")
        assert {seen.path.split("/", 2)[2] for seen in signing.asked} == {path[1:]}


def test_a_server_that_lists_the_endpoint_of_each_table_is_asked_there(signing: Signing) -> None:
    sign = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign"
    rewrite = signing.proxy.rewrite
    signing.proxy.rewrite = lambda seen, body: rewrite(
        seen, body | {"endpoints": [*body["endpoints"], sign]} if "endpoints" in body else body
    )
    io, location = _created(signing)
    io.write(location, b"rows")
    assert {seen.path for seen in signing.asked} == {
        f"/{signing.uri.rpartition('/')[2]}/v1/namespaces/db/tables/t/sign"
    }


def test_what_the_server_wants_with_each_request_is_sent(signing: Signing) -> None:
    sent = {"properties": {"warehouse": "w"}, "headers": {"X-Of-Server": ["a", "b"]}}
    signing.extra = {"remote-signing-config": sent}
    io, location = _created(signing)
    for each in (io, *_for_tasks(io)):
        signing.asked.clear()
        each.write(location, b"rows")
        assert {seen.headers["X-Of-Server"] for seen in signing.asked} == {"a, b"}
        assert signing.signed[-1]["properties"] == {"warehouse": "w"}
    signing.extra = {"remote-signing-config": {"headers": 1}}
    with pytest.raises(InvalidMetadataError, match=r"headers.*lake\.db\.t"):
        _open(signing, **{"header.X-Other": "1"}).load(TABLE)


def test_signatures_are_used_again_if_the_server_allows_it(signing: Signing) -> None:
    io, location = _created(signing)
    io.write(location, b"0123456789")

    def reads() -> int:
        signing.signed.clear()
        for start in (0, 3, 6):
            with io.open(location, size=10, first=(start, start + 2)) as file:
                file.seek(start)
                assert file.read(2) == b"0123456789"[start : start + 2]
        return len(signing.signed)

    assert reads() == 3
    signing.proxy.reply_headers = {"Cache-Control": "private"}
    assert reads() == 1
    assert reads() == 0


def test_own_keys_are_used_instead(signing: Signing) -> None:
    io, location = _created(signing, **signing.aws.properties)
    io.write(location, b"rows")
    assert signing.signed == []


def test_tasks_sign_with_the_token_of_the_table_alone(guarded: Signing) -> None:
    io, location = _created(guarded, token=CATALOG_TOKEN)
    io.write(location, b"rows")
    assert CATALOG_TOKEN.encode() not in pickle.dumps(io)
    assert CATALOG_TOKEN not in str(io.all_properties)
    for copy in _for_tasks(io):
        guarded.asked.clear()
        assert copy.read_bytes(location) == b"rows"
        assert {seen.headers["Authorization"] for seen in guarded.asked} == {
            f"Bearer {TABLE_TOKEN}"
        }
        # They can hand it on.
        again: FileIO = pickle.loads(pickle.dumps(copy))
        assert again.read_bytes(location) == b"rows"


def test_tasks_without_a_token_are_told_so_before_they_write(guarded: Signing) -> None:
    guarded.config = {}
    io, location = _created(guarded, token=CATALOG_TOKEN)
    for copy in _for_tasks(io):
        with pytest.raises(UnsupportedFeatureError, match="no token for the table"):
            copy.open_output(location)


def test_a_refused_signature_is_an_error_of_the_catalog(guarded: Signing) -> None:
    io, location = _created(guarded, token=CATALOG_TOKEN)
    copies = _for_tasks(io)
    guarded.tokens = ("another",)
    for each in (io, *copies):
        with pytest.raises(StorageError, match=r"/sign\b.*403") as raised:
            each.read_bytes(location)
        assert not raised.value.outcome_unknown
        assert TABLE_TOKEN not in str(raised.value)
        assert CATALOG_TOKEN not in str(raised.value)


def test_a_catalog_that_does_not_answer_leaves_no_doubt(signing: Signing) -> None:
    io, location = _created(signing, **{"rest.client.max-retries": "0"})
    signing.proxy.refuse = lambda seen: 503
    with pytest.raises(StorageError, match="503") as raised:
        io.write(location, b"rows")
    assert not raised.value.outcome_unknown


def test_a_failure_of_the_server_is_waited_out(signing: Signing) -> None:
    io, location = _created(signing)
    for each in (io, *_for_tasks(io)):
        answers = iter([503])
        signing.proxy.refuse = lambda seen, answers=answers: next(answers, None)  # type: ignore[misc]
        each.write(location, b"rows")
        assert next(answers, None) is None


def test_no_token_or_signature_is_logged_or_shown(
    guarded: Signing, caplog: pytest.LogCaptureFixture
) -> None:
    guarded.config["s3.signer.endpoint"] = "v1/sign?secret=of-the-endpoint"
    with caplog.at_level(logging.DEBUG, "icebergds"):
        io, location = _created(guarded, token=CATALOG_TOKEN)
        for each in (io, *_for_tasks(io)):
            each.write(location, b"rows")
            assert each.vended is not None
            shown = f"{each!r} {each.vended!r} {each.vended.signer!r} {vars(each.vended)!r}"
            assert not any(secret in shown for secret in (TABLE_TOKEN, "of-the-endpoint"))
    for secret in (CATALOG_TOKEN, TABLE_TOKEN, "Signature=", "of-the-endpoint"):
        assert secret not in caplog.text
