"""Types of catalogs that other packages add."""

from __future__ import annotations

from pathlib import Path

import pytest

import icebergds
from icebergds.catalog.filesystem.catalog import FileSystemCatalog
from icebergds.catalog.loading import load_catalog
from icebergds.errors import InvalidOptionError

_MODULE = """
from icebergds.catalog.filesystem.catalog import file_system_catalog

def catalog(name, properties, io):
    return file_system_catalog(name, {"warehouse": properties["home"]}, io)

nothing = None
"""


def install(site: Path, package: str, entry_point: str, module: str = _MODULE) -> None:
    """Lays a package as an installer does, with an entry point."""
    site.joinpath(f"{package}.py").write_text(module)
    info = site / f"{package}-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    info.joinpath("entry_points.txt").write_text(f"[icebergds.catalogs]\n{entry_point}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "site"
    directory.mkdir()
    monkeypatch.syspath_prepend(str(directory))
    return directory


def test_a_catalog_of_another_package_is_used_by_its_type(site: Path, tmp_path: Path) -> None:
    install(site, "lake_house_a", "housed = lake_house_a:catalog")
    catalog = icebergds.load_catalog("lake", type="housed", home=str(tmp_path / "home"))
    catalog.create_table("db.t", "id bigint")
    assert (tmp_path / "home" / "db" / "t" / "metadata").is_dir()
    assert isinstance(catalog._catalog, FileSystemCatalog)


def test_types_of_other_packages_are_offered(site: Path) -> None:
    install(site, "lake_house_c", "housed = lake_house_c:catalog")
    with pytest.raises(InvalidOptionError, match=r"'house', .*housed.*did you mean housed\?"):
        load_catalog("lake", {"type": "house"})


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("lake_house_d:missing", "lake_house_d:missing of lake_house_d, which cannot be imported"),
        ("not_there:catalog", "No module named 'not_there'"),
        ("lake_house_d:nothing", "is not a function that makes a catalog"),
    ],
)
def test_a_package_without_a_catalog_is_named(site: Path, target: str, message: str) -> None:
    install(site, "lake_house_d", f"housed = {target}")
    with pytest.raises(InvalidOptionError, match=rf"catalog lake: .*{message}"):
        load_catalog("lake", {"type": "housed"})


def test_a_type_of_two_packages_is_refused(site: Path) -> None:
    install(site, "lake_house_e", "housed = lake_house_e:catalog")
    install(site, "lake_house_f", "housed = lake_house_f:catalog")
    with pytest.raises(InvalidOptionError, match="uninstall all of these packages but one"):
        load_catalog("lake", {"type": "housed"})


def test_a_package_cannot_replace_a_type_of_ours(site: Path, tmp_path: Path) -> None:
    install(site, "lake_house_g", "filesystem = lake_house_g:nothing")
    catalog = load_catalog("lake", {"type": "filesystem", "warehouse": str(tmp_path)})
    assert isinstance(catalog, FileSystemCatalog)
