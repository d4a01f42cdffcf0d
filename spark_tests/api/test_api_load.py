"""Tables are loaded by the names that they tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from icebergds import load_catalog, load_table
from icebergds.errors import InvalidOptionError, NoSuchNamespaceError, NoSuchTableError


@pytest.fixture(autouse=True)
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The warehouse of the configured catalog `lake`, which has the table `db.events`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", str(tmp_path / "warehouse"))
    load_catalog("lake").create_table("db.events", "id bigint")
    return tmp_path / "warehouse"


def test_a_table_is_loaded_by_its_name() -> None:
    table = load_catalog("lake").load_table("db.events")
    assert table.name == "lake.db.events"
    assert load_table(table.name).metadata == table.metadata
    assert load_table("LAKE.db.events").metadata == table.metadata
    assert load_table("`lake`.db.`events`").metadata == table.metadata


def test_a_name_with_dots_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__OTHER__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__OTHER__WAREHOUSE", str(tmp_path / "other"))
    catalog = load_catalog("other")
    catalog.create_namespace("db")
    table = catalog.create_table(("db", "a.b"), "id bigint")
    assert load_table("other.db.`a.b`").metadata == table.metadata


def test_a_name_without_catalog_is_one_of_the_default_catalog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    message = (
        r"configured catalog \(there are: lake; .*spark\.icebergpy\.catalog\.<name>\.warehouse"
    )
    with pytest.raises(NoSuchTableError, match=message):
        load_table("db.events")
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "lake")
    assert load_table("db.events").name == "lake.db.events"


def test_the_first_part_of_a_name_is_a_catalog_rather_than_a_namespace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "lake")
    load_catalog("lake").create_table("lake.events", "name string")
    with pytest.raises(NoSuchTableError):
        load_table("lake.events")
    assert load_table("lake.lake.events").schema().fields[0].name == "name"


def test_directories_of_such_names_are_loaded(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("db.copy", "lake.db.events"):
        (warehouse / "db" / "events").rename(tmp_path / name)
        assert load_table(f"./{name}").name == f"./{name}"
        assert load_table(tmp_path / name).schema().fields[0].name == "id"
        (tmp_path / name).rename(warehouse / "db" / "events")
    (warehouse / "db" / "events").rename(tmp_path / "db.copy")
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "lake")
    assert load_table("db.copy").name == "db.copy"


def test_a_catalog_that_nothing_configures_is_refused() -> None:
    message = (
        r"catalog laek is not configured \(configured are lake\); did you mean lake\?; give its "
        r"properties, such as load_catalog\('laek', warehouse='<directory>'\)"
    )
    with pytest.raises(InvalidOptionError, match=message):
        load_catalog("laek")
    with pytest.raises(InvalidOptionError, match=message):
        load_table("db.events", catalog="laek")


def test_an_error_says_if_no_catalog_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE")
    with pytest.raises(InvalidOptionError, match=r"catalog lake is .* \(no catalog is\); give"):
        load_catalog("lake")


@pytest.mark.parametrize("kind", ["filesystem", "sql"])
def test_a_namespace_that_does_not_exist_is_named(tmp_path: Path, kind: str) -> None:
    uri = {} if kind == "filesystem" else {"uri": f"sqlite:///{tmp_path}/catalog.db"}
    catalog = load_catalog("mine", warehouse=str(tmp_path / "mine"), **uri)
    catalog.create_namespace("sales")
    with pytest.raises(NoSuchNamespaceError, match=r"namespace seles.*; did you mean sales\?"):
        catalog.list_tables("seles")
    with pytest.raises(NoSuchTableError, match=r"no namespace bd; there are sales$"):
        catalog.load_table("bd.orders")
    message = r"there is no namespace seles; did you mean sales\?"
    with pytest.raises(NoSuchTableError, match=message):
        catalog.load_table("seles.orders")
