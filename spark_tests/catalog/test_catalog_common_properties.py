"""Properties that all types of catalogs have in common."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import icebergds
from icebergds.catalog.loading import has_warehouse_location, load_catalog
from icebergds.catalog.sql.catalog import SqlCatalog
from icebergds.errors import InvalidOptionError, UnsupportedFeatureError

ARN = "arn:aws:s3tables:eu-west-1:111122223333:bucket/lake"


@pytest.mark.parametrize("kind", [{}, {"type": "hadoop"}, {"type": "glue"}])
def test_a_table_bucket_is_no_directory(kind: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError, match="set type = s3tables"):
        load_catalog("lake", {"warehouse": ARN, **kind})


def test_a_warehouse_in_the_home_directory_is_given_as_a_whole() -> None:
    whole = str(Path("~/wh").expanduser())
    with pytest.raises(InvalidOptionError, match=f"write '{whole}'"):
        load_catalog("lake", {"warehouse": "~/wh"})


def test_a_word_is_a_directory_only_if_the_type_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidOptionError, match=r"write '\./wh'"):
        load_catalog("lake", {"warehouse": "wh"})
    for given in ({"warehouse": "./wh"}, {"warehouse": "wh", "type": "filesystem"}):
        located = load_catalog("lake", given).new_table_location(("db", "t"))
        assert Path(located).resolve() == tmp_path / "wh/db/t"


def test_url_is_not_uri(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=r"did you mean 'uri'\?"):
        load_catalog("lake", {"url": f"sqlite:///{tmp_path}/c.db", "warehouse": str(tmp_path)})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("io-impl", "org.apache.iceberg.aws.s3.S3FileIO"),
        ("py-io-impl", "pyiceberg.io.pyarrow.PyArrowFileIO"),
        ("cache-enabled", "false"),
        ("cache.expiration-interval-ms", "1000"),
        ("clients", "4"),
        ("default-namespace", "db"),
        ("unique-table-location", "false"),
        ("downcast-ns-timestamp-to-us-on-write", "true"),
    ],
)
def test_a_class_or_a_cache_of_java_is_left_out_with_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, value: str
) -> None:
    with caplog.at_level(logging.INFO, "icebergds"):
        load_catalog("lake", {"uri": f"sqlite:///{tmp_path}/c.db", name: value})
    assert f"catalog lake: property '{name}' has no effect" in caplog.text


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("io-impl", "com.example.MyFileIO", "storage-schemes"),
        ("unique-table-location", "true", "give tables a location"),
    ],
)
def test_one_that_would_have_an_effect_is_refused(
    tmp_path: Path, name: str, value: str, instead: str
) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"property '{name}'.*{instead}"):
        load_catalog("lake", {"warehouse": str(tmp_path), name: value})


def test_the_class_of_java_tells_the_type(tmp_path: Path) -> None:
    given = {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:sqlite:{tmp_path}/c.db",
    }
    assert isinstance(load_catalog("lake", given), SqlCatalog)
    with pytest.raises(InvalidOptionError, match="of type jdbc; leave one of them out"):
        load_catalog("lake", {**given, "type": "rest"})
    with pytest.raises(InvalidOptionError, match="set type instead"):
        load_catalog("lake", {**given, "catalog-impl": "com.example.MyCatalog"})


def test_a_catalog_prescribes_properties_of_new_tables_and_views(tmp_path: Path) -> None:
    catalog = icebergds.load_catalog(
        "lake",
        uri=f"sqlite:///{tmp_path}/c.db",
        warehouse=str(tmp_path),
        **{
            "table-default.write.format.default": "orc",
            "table-default.commit.retry.num-retries": "9",
            "table-default.format-version": "3",
            "table-override.gc.enabled": "false",
            "view-default.owner": "me",
            "view-override.comment": "all",
        },
    )
    catalog.create_namespace("db")
    given = {"commit.retry.num-retries": "7", "gc.enabled": "true"}
    table = catalog.create_table("db.t", "id bigint", properties=given)
    assert table.properties["write.format.default"] == "orc"
    assert table.properties["commit.retry.num-retries"] == "7"
    assert table.properties["gc.enabled"] == "false"
    assert "format-version" not in table.properties
    assert table.metadata.format_version == 3
    view = catalog.create_view("db.v", "id bigint", "SELECT 1", properties={"comment": "mine"})
    assert view.properties == {"owner": "me", "comment": "all"}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"uri": "https://host", "warehouse": "lake"}, False),
        ({"type": "s3tables", "warehouse": ARN}, False),
        ({"catalog-impl": "org.apache.iceberg.rest.RESTCatalog", "warehouse": "lake"}, False),
        ({"uri": "sqlite:///c.db", "warehouse": "lake"}, True),
    ],
)
def test_the_warehouse_of_a_server_is_no_location(
    properties: dict[str, str], expected: bool
) -> None:
    assert has_warehouse_location("lake", properties) is expected


def test_a_warehouse_may_be_given_as_a_path(tmp_path: Path) -> None:
    catalog = icebergds.load_catalog("lake", warehouse=tmp_path)
    assert catalog.create_table("db.t", "id bigint").location() == str(tmp_path / "db" / "t")


def test_a_property_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"such as spark\.icebergpy\.catalog\.lake\.uri"):
        load_catalog("lake", {"": "sqlite:////lake.db"})


def test_an_unknown_property_is_told_by_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=r"'warehose'; did you mean 'warehouse'\?"):
        load_catalog("lake", {"uri": f"sqlite:///{tmp_path}/c.db", "warehose": "/w"})
    with pytest.raises(InvalidOptionError, match="'zzz'; the nearest are ") as error:
        load_catalog("lake", {"type": "hive", "uri": "thrift://host", "zzz": "1"})
    assert len(str(error.value)) < 350
