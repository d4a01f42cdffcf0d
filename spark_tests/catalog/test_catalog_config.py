"""Catalogs' properties from the environment and from configuration files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from pyiceberg.utils.config import Config

from icebergds.catalog.config import (
    SessionCatalogs,
    catalog_properties,
    default_catalog_name,
)
from icebergds.catalog.loading import load_catalog
from icebergds.errors import InvalidOptionError

_FILE = """
catalog:
  Lake:
    type: sql
    URI: sqlite:////lake.db
    s3.path-style-access: true
    number: 010
  other:
    uri: http://localhost
default-catalog: lake
"""


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Three empty directories that are looked in, and no variables."""
    for variable in os.environ:
        if variable.upper().startswith("PYICEBERG_"):
            monkeypatch.delenv(variable)
    places = {name: tmp_path / name for name in ("set", "home", "work")}
    for place in places.values():
        place.mkdir()
    monkeypatch.setenv("PYICEBERG_HOME", str(places["set"]))
    monkeypatch.setenv("HOME", str(places["home"]))
    monkeypatch.chdir(places["work"])
    return places


def _write(place: Path, text: str = _FILE) -> None:
    (place / ".pyiceberg.yaml").write_text(text, encoding="utf-8")


def _as_pyiceberg(name: str) -> dict[str, object]:
    return dict(Config().get_catalog_config(name) or {})


# Configuration files.


def test_given_properties_need_no_configuration() -> None:
    assert catalog_properties("lake", {"warehouse": "/w"}) == {"warehouse": "/w"}


def test_a_file_has_properties_of_catalogs(places: dict[str, Path]) -> None:
    _write(places["home"])
    expected = {
        "type": "sql",
        "uri": "sqlite:////lake.db",
        "s3.path-style-access": "true",
        "number": "010",
    }
    assert catalog_properties("lake", {}) == expected == _as_pyiceberg("lake")
    assert catalog_properties("LAKE", {}) == expected
    assert catalog_properties("missing", {}) == {} == _as_pyiceberg("missing")


@pytest.mark.parametrize(
    ("there", "found"),
    [
        (("set", "home", "work"), "set"),
        (("home", "work"), "home"),
        (("work",), "work"),
    ],
)
def test_the_first_file_counts(places: dict[str, Path], there: tuple[str, ...], found: str) -> None:
    for place in there:
        _write(places[place], f"catalog:\n  lake:\n    uri: {place}\n")
    assert catalog_properties("lake", {}) == {"uri": found} == _as_pyiceberg("lake")


def test_an_empty_file_does_not_count(places: dict[str, Path]) -> None:
    _write(places["set"], "# nothing yet\n")
    _write(places["home"])
    assert catalog_properties("other", {}) == {"uri": "http://localhost"}


def test_pyicebergs_mappings_of_authentication_are_read(places: dict[str, Path]) -> None:
    auth = "auth:\n      type: oauth2\n      oauth2:\n        client_id: me\n        scopes: [a, b]"
    ssl = "ssl:\n      cabundle: ca.pem\n      client:\n        cert: c.pem"
    _write(places["home"], f"catalog:\n  lake:\n    {auth}\n    {ssl}\n")
    assert catalog_properties("lake", {}) == {
        "auth.type": "oauth2",
        "auth.oauth2.client_id": "me",
        "auth.oauth2.scopes": "a,b",
        "ssl.cabundle": "ca.pem",
        "ssl.client.cert": "c.pem",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("catalog: lake", "catalog is a string, expected"),
        ("- catalog", "the file is"),
        ("catalog:\n  lake: sqlite", "catalog.lake is a string"),
        (
            "catalog:\n  lake:\n    s3:\n      endpoint: x",
            "catalog.lake.s3 is a mapping.* with dots",
        ),
        ("catalog:\n  lake:\n    uri: [a]", "catalog.lake.uri is"),
        ("catalog: {", "cannot be read, line 1, column 11: it is not valid YAML"),
        (f"catalog: {'[' * 3000}{']' * 3000}", "nested too deeply"),
        (f"catalog: {{lake: {{auth: {'{a: ' * 3000}1{'}' * 3000}}}}}", "nested too deeply"),
    ],
)
def test_a_malformed_file_is_named(places: dict[str, Path], text: str, message: str) -> None:
    _write(places["home"], text)
    file = places["home"] / ".pyiceberg.yaml"
    with pytest.raises(InvalidOptionError, match=f"{file} .*{message}"):
        catalog_properties("lake", {})


@pytest.mark.parametrize(
    "text",
    [
        "catalog: postgresql://me:hunter2@host/db",
        "catalog:\n  lake: postgresql://me:hunter2@host/db",
        "catalog:\n  lake:\n    s3:\n      secret-access-key: hunter2",
        "catalog:\n  lake:\n    uri: [hunter2]",
        "catalog:\n  lake:\n    password: *hunter2",
        "catalog:\n  lake:\n    password: {hunter2",
        "catalog:\n  lake:\n    password: a: hunter2",
        "catalog:\n  lake:\n    password: '@hunter2\n",
    ],
)
def test_errors_of_a_file_do_not_show_its_values(places: dict[str, Path], text: str) -> None:
    _write(places["home"], text)
    with pytest.raises(InvalidOptionError) as raised:
        catalog_properties("lake", {})
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_a_file_cannot_make_objects(places: dict[str, Path]) -> None:
    _write(places["home"], "catalog:\n  lake:\n    uri: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(InvalidOptionError):
        catalog_properties("lake", {})


@pytest.mark.parametrize(
    ("given", "has_file", "expected", "said"),
    [
        ({"uri": "x"}, False, "{'uri': 'x'}\n", ""),
        # What is given suffices; the file might have more.
        ({"uri": "x"}, True, "{'uri': 'x'}\n", "is not read: it needs PyYAML: pip install"),
        ({}, True, "", "InvalidOptionError: the configuration file "),
    ],
)
def test_a_file_needs_its_package_if_it_is_needed(
    places: dict[str, Path], given: dict[str, str], has_file: bool, expected: str, said: str
) -> None:
    if has_file:
        _write(places["work"])
    program = (
        "import sys; sys.modules['yaml'] = None\n"
        "from icebergds.catalog.config import catalog_properties\n"
        f"print(catalog_properties('lake', {given}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == expected
    assert said in done.stderr
    assert bool(said) == bool(done.stderr)


# Variables.


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("PYICEBERG_CATALOG__LAKE__URI", "uri"),
        ("pyiceberg_catalog__lake__uri", "uri"),
        ("PYICEBERG_CATALOG__LAKE__S3__ACCESS_KEY_ID", "s3.access-key-id"),
        ("PYICEBERG_CATALOG__LAKE__S3__A__B", "s3.a.b"),
        ("PYICEBERG_CATALOG__LAKE__INIT_CATALOG_TABLES", "init-catalog-tables"),
    ],
)
def test_variables_are_properties(monkeypatch: pytest.MonkeyPatch, variable: str, key: str) -> None:
    monkeypatch.setenv(variable, "Value_1")
    assert catalog_properties("lake", {}) == {key: "Value_1"} == _as_pyiceberg("lake")
    assert catalog_properties("other", {}) == {}


def test_underscores_of_names_are_dashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__MY_LAKE__URI", "x")
    assert catalog_properties("my-lake", {}) == {"uri": "x"} == _as_pyiceberg("my-lake")


@pytest.mark.parametrize("name", ["lake", "my-lake", "my_lake"])
def test_a_variable_that_an_error_advises_configures_the_catalog_that_it_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidOptionError) as error:
        load_catalog(name, {})
    found = re.search(r"variable (\w+)(?: \(for a catalog called (\S+),)?", str(error.value))
    assert found is not None
    monkeypatch.setenv(found[1], str(tmp_path))
    assert load_catalog(found[2] or name, {}).name == name.replace("_", "-")


def test_variables_of_other_things_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PYICEBERG_MAX_WORKERS", "PYICEBERG_CATALOG", "PYICEBERG_CATALOG__LAKE"):
        monkeypatch.setenv(variable, "x")
    assert catalog_properties("lake", {}) == {}


# Which wins.


def test_what_is_given_wins_over_variables_and_these_over_the_file(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(places["home"])
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__NUMBER", "2")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "sqlite:////variable.db")
    found = catalog_properties("lake", {"uri": "sqlite:////given.db", "type": ""})
    assert (found["uri"], found["number"], found["type"]) == ("sqlite:////given.db", "2", "sql")


def test_the_default_catalog_is_configured(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_catalog_name() == "default" == Config().get_default_catalog_name()
    _write(places["home"])
    assert default_catalog_name() == "lake" == Config().get_default_catalog_name()
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "mine")
    assert default_catalog_name() == "mine" == Config().get_default_catalog_name()


# Spark sessions.

_OURS, _THEIRS = {"warehouse": "/ours"}, {"warehouse": "/theirs", "uri": "sqlite://"}


def _sessions(active: str | None = None) -> SessionCatalogs:
    """Sessions `a` and `b`, each with a catalog of its own and one that both define differently."""
    by_session = {
        "a": {"lake": _OURS, "one": {"warehouse": "/1"}},
        "b": {"lake": _THEIRS, "two": {"warehouse": "/2"}},
    }
    return SessionCatalogs(by_session, lambda: active)


@pytest.mark.parametrize("active", ["a", "b", "of nobody", None])
def test_catalogs_of_every_session_are_known(active: str | None) -> None:
    sessions = _sessions(active)
    assert sessions.properties("one", {}) == {"warehouse": "/1"}
    assert sessions.properties("two", {}) == {"warehouse": "/2"}
    assert sessions.properties("three", {}) == {}


def test_of_different_definitions_the_active_sessions_counts() -> None:
    assert _sessions("a").properties("lake", {}) == _OURS
    assert _sessions("b").properties("lake", {"warehouse": "/mine"}) == _THEIRS


def test_a_catalog_that_was_loaded_stays_the_same_one() -> None:
    given = {**_OURS, "s3.region": "eu"}
    assert _sessions("b").properties("lake", given) == _OURS


@pytest.mark.parametrize("active", ["of nobody", None])
def test_different_definitions_of_sessions_that_are_not_active_are_refused(
    active: str | None,
) -> None:
    with pytest.raises(InvalidOptionError, match="catalog lake: 2 Spark sessions define it"):
        _sessions(active).properties("lake", {"warehouse": "/mine"})


def test_given_properties_that_leave_nothing_open_need_no_session() -> None:
    given = {"warehouse": "/mine", "uri": "postgresql://db"}
    assert _sessions().properties("lake", given) == {}


def test_catalogs_of_sessions_are_not_printed() -> None:
    assert "/theirs" not in repr(_sessions())


def test_sessions_may_define_a_catalog_alike() -> None:
    sessions = SessionCatalogs({"a": {"lake": _OURS}, "b": {"lake": dict(_OURS)}})
    assert sessions.properties("lake", {}) == _OURS
