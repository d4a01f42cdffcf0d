"""Requests to a REST catalog are authenticated, and tokens are renewed."""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from rest_proxy import RestProxy, rest_proxy
from rest_server import RestServer
from rest_tables import TABLE, appending, create_table, open_rest_catalog
from token_server import CLIENT, SECRET, TokenServer, token_server

from icebergds.catalog.rest import http
from icebergds.catalog.rest.catalog import RestCatalog
from icebergds.errors import InvalidOptionError, StorageError


@dataclass(frozen=True)
class Guarded:
    """A catalog that demands a token."""

    proxy: RestProxy
    tokens: TokenServer
    uri: str

    def open(self, **properties: str) -> RestCatalog:
        given = {"oauth2-server-uri": self.tokens.uri, **properties}
        return open_rest_catalog(self.uri, **given)


@pytest.fixture
def guarded(rest: RestServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guarded]:
    monkeypatch.setattr(http, "_FIRST_WAIT_S", 0.01)
    with token_server() as tokens, rest_proxy(rest.port) as proxy:
        proxy.refuse = lambda seen: (
            None if tokens.accepts(seen.headers.get("Authorization", "")) else 401
        )
        yield Guarded(proxy, tokens, rest.uri(rest.new_catalog(), proxy.port))


def test_without_a_token_the_server_refuses(guarded: Guarded) -> None:
    with pytest.raises(StorageError, match=r"catalog lake: GET .*401.*; check .* token"):
        guarded.open()


def test_a_credential_gets_a_token(guarded: Guarded) -> None:
    catalog = guarded.open(credential=f"{CLIENT}:{SECRET}", audience="lake", resource="urn:lake")
    create_table(catalog)
    assert len(guarded.tokens.requests) == 1
    form = guarded.tokens.requests[0]
    assert form["grant_type"] == "client_credentials"
    assert (form["scope"], form["audience"], form["resource"]) == ("catalog", "lake", "urn:lake")


def test_pyicebergs_options_send_the_secret_in_a_header(guarded: Guarded) -> None:
    options = {
        "auth.type": "oauth2",
        # As the environment spells it.
        "auth.oauth2.client-id": CLIENT,
        "auth.oauth2.client_secret": SECRET,
        "auth.oauth2.token_url": guarded.tokens.uri,
        "auth.oauth2.scope": "all",
    }
    catalog = open_rest_catalog(guarded.uri, **options)
    assert catalog.list_namespaces() == []
    form = guarded.tokens.requests[0]
    assert form["scope"] == "all"
    assert "client_secret" not in form


def test_a_token_is_renewed_before_it_expires(guarded: Guarded) -> None:
    guarded.tokens.lifetime_s = 1
    catalog = guarded.open(credential=f"{CLIENT}:{SECRET}")
    time.sleep(0.95)
    catalog.list_namespaces()
    time.sleep(1.2)
    catalog.list_namespaces()
    assert len(guarded.tokens.requests) == 3
    assert {seen.status for seen in guarded.proxy.seen} == {200}


@pytest.mark.parametrize("status", [401, 419])
def test_a_refused_token_is_renewed_once(guarded: Guarded, status: int) -> None:
    guarded.tokens.lifetime_s = None
    catalog = guarded.open(credential=f"{CLIENT}:{SECRET}")
    state = create_table(catalog)
    guarded.proxy.refuse = lambda seen: (
        None if guarded.tokens.accepts(seen.headers["Authorization"]) else status
    )
    guarded.tokens.valid.clear()
    # A commit, too: what is refused has no effect.
    snapshot, updates = appending(state)
    catalog.operations(TABLE).commit(state, [], updates)
    assert snapshot.snapshot_id in catalog.load(TABLE).metadata.snapshots_by_id
    assert len(guarded.tokens.requests) == 2
    guarded.proxy.refuse = lambda seen: status
    with pytest.raises(StorageError, match=str(status)):
        catalog.list_namespaces()
    assert len(guarded.tokens.requests) == 3


def test_many_threads_renew_a_token_once(guarded: Guarded) -> None:
    guarded.tokens.lifetime_s = None
    catalog = guarded.open(credential=f"{CLIENT}:{SECRET}")
    guarded.tokens.valid.clear()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: catalog.list_namespaces(), range(16)))
    assert found == [[]] * 16
    assert len(guarded.tokens.requests) == 2


def test_a_failed_renewal_heals(guarded: Guarded, caplog: pytest.LogCaptureFixture) -> None:
    guarded.tokens.lifetime_s = 0.5
    catalog = guarded.open(credential=f"{CLIENT}:{SECRET}", **{"rest.client.max-retries": "0"})
    # The server takes it for longer than it says, for this machine may be busy.
    guarded.tokens.valid.update(dict.fromkeys(guarded.tokens.valid, time.time() + 3600))
    guarded.tokens.broken = 1
    time.sleep(0.5)
    catalog.list_namespaces()
    assert "not renewed" in caplog.text
    guarded.tokens.valid.clear()
    guarded.tokens.broken = 3
    with pytest.raises(StorageError):
        catalog.list_namespaces()
    guarded.tokens.broken = 0
    assert catalog.list_namespaces() == []


def test_a_busy_token_server_is_asked_again(guarded: Guarded) -> None:
    guarded.tokens.broken = 2
    guarded.open(credential=f"{CLIENT}:{SECRET}")
    assert len(guarded.tokens.requests) == 3


def test_a_token_is_used_as_it_is(guarded: Guarded) -> None:
    guarded.tokens.lifetime_s = None
    token = guarded.tokens.new_token()
    guarded.open(token=token)
    assert guarded.proxy.seen[0].headers["Authorization"] == f"Bearer {token}"
    assert guarded.tokens.requests == []


def test_a_token_is_exchanged_before_it_expires(guarded: Guarded) -> None:
    guarded.tokens.lifetime_s = 1
    token = guarded.tokens.new_token()
    catalog = guarded.open(token=token)
    guarded.tokens.lifetime_s = 3600
    time.sleep(0.95)
    catalog.list_namespaces()
    (form,) = guarded.tokens.requests
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"
    assert form["subject_token"] == token
    assert form["authorization"] == f"Bearer {token}"


def test_a_token_that_may_not_be_exchanged_expires(guarded: Guarded) -> None:
    guarded.tokens.lifetime_s = 0.5
    token = guarded.tokens.new_token()
    catalog = guarded.open(token=token, **{"token-exchange-enabled": "false"})
    time.sleep(0.6)
    with pytest.raises(StorageError, match="401"):
        catalog.list_namespaces()
    assert guarded.tokens.requests == []


def test_an_identity_is_exchanged_for_a_token(guarded: Guarded) -> None:
    kind = "urn:ietf:params:oauth:token-type:id_token"
    guarded.open(credential=f"{CLIENT}:{SECRET}", **{kind: "identity"})
    first, second = guarded.tokens.requests
    assert first["grant_type"] == "client_credentials"
    assert (second["subject_token"], second["subject_token_type"]) == ("identity", kind)
    assert second["actor_token"] in guarded.tokens.valid


def test_a_wrong_secret_is_told_but_not_shown(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(StorageError, match="invalid_client") as raised:
        guarded.open(credential=f"{CLIENT}:wrong-secret")
    assert "wrong-secret" not in str(raised.value)
    assert "wrong-secret" not in caplog.text
    assert raised.value.__cause__ is None
    assert not raised.value.outcome_unknown


def test_basic_authentication_sends_user_and_password(guarded: Guarded) -> None:
    login = base64.b64encode(b"me:pass:word").decode()
    guarded.proxy.refuse = lambda seen: (
        None if seen.headers.get("Authorization") == f"Basic {login}" else 401
    )
    for prefix in ("rest.auth", "auth"):
        options = {
            f"{prefix}.type": "basic",
            f"{prefix}.basic.username": "me",
            f"{prefix}.basic.password": "pass:word",
        }
        assert guarded.open(**options).list_namespaces() == []


class Tokens:
    """Provides a header, as PyIceberg's `AuthManager` does."""

    def __init__(self, kind: str) -> None:
        self._kind, self._count = kind, 0

    def auth_header(self) -> str:
        self._count += 1
        return f"{self._kind} {self._count}"


def test_a_class_provides_the_header(guarded: Guarded) -> None:
    guarded.proxy.refuse = lambda seen: (
        None if seen.headers.get("Authorization", "").startswith("Special ") else 401
    )
    path = f"{__name__}.Tokens"
    for options in ({"auth.type": "custom", "auth.impl": path}, {"rest.auth.type": path}):
        catalog = guarded.open(**options, **{"auth.custom.kind": "Special"})
        assert catalog.list_namespaces() == []


@pytest.mark.parametrize("token", ["s3cr3t\nX-Other: 1", "s3cr3t-\u00fc-\u4e1c"])
def test_a_token_that_no_header_can_have_is_refused_and_not_shown(
    guarded: Guarded, token: str
) -> None:
    with pytest.raises(StorageError, match="a header is malformed") as raised:
        guarded.open(token=token)
    assert "s3cr3t" not in f"{raised.value} {raised.value.__cause__} {raised.value.__context__}"
    assert guarded.proxy.seen == []


class FailingTokens:
    """Provides one header, and then fails."""

    def __init__(self) -> None:
        self._headers = iter(["Special 1"])

    def auth_header(self) -> str:
        return next(self._headers)


def test_a_provider_that_fails_is_told(guarded: Guarded) -> None:
    guarded.proxy.refuse = lambda seen: None
    options = {"auth.type": "custom", "auth.impl": f"{__name__}.FailingTokens"}
    with pytest.raises(StorageError, match="FailingTokens, which authenticates requests, failed"):
        guarded.open(**options).list_namespaces()


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"rest.auth.type": "kerberos"}, "expected one of none, basic, oauth2"),
        ({"rest.auth.type": "basic"}, r"rest\.auth\.basic\.username"),
        ({"rest.auth.type": "oauth2"}, "needs a credential"),
        ({"auth.type": "custom"}, r"auth\.impl"),
        ({"auth.type": "custom", "auth.impl": "no_such.Class"}, "ModuleNotFoundError"),
        ({"auth.type": "custom", "auth.impl": "json.JSONDecoder"}, "auth_header"),
        ({"credential": "a:b", "token-exchange-enabled": "maybe"}, "token-exchange-enabled"),
        ({"credential": "a:b", "oauth2-server-uri": "http://u:p@h/t"}, "user or password"),
    ],
)
def test_malformed_authentication_is_refused(options: dict[str, str], hint: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"catalog lake: .*{hint}"):
        open_rest_catalog("http://127.0.0.1:1", **options)
