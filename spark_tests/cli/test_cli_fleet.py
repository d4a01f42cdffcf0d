"""What `fleet scan` says of all tables of a catalog, and how its report looks in a browser."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from browser import CHROMIUM, Browser, browser
from command_line import Command

from icebergds import Catalog

_PICTURES = Path(__file__).parents[2] / ".cache" / "report"
_MARKUP = "db.<img src=x onerror=alert(1)>"


@pytest.fixture
def fleet(lake: Catalog) -> Catalog:
    """Besides a healthy table, one of many small files, and one whose name is markup.

    The latter has branches of such names, and holds files that no current snapshot has.
    """
    small = lake.create_table("db.inner.small", "id bigint")
    for id in range(8):
        small.append(pa.table({"id": [id]}))
    odd = lake.create_table(_MARKUP, "id bigint, kind string", partition_spec="kind")
    rows = pa.table({"id": range(300), "kind": ["<b>", "$x$", "&amp;"] * 100})
    for _ in range(2):
        odd.append(rows)
    odd.rewrite_data_files(options={"rewrite-all": "true"})
    odd.manage_snapshots().create_branch("<script>alert(2)</script>").create_tag(
        "$\\frac$"
    ).commit()
    return lake


def test_tables_are_ordered_by_what_they_cost(fleet: Catalog, icebergds: Command) -> None:
    found = icebergds("fleet", "scan", "lake", "--json")
    assert found.status == 1
    tables = found.json["tables"]
    names = [each["table"] for each in tables]
    assert names == ["lake.db.inner.small", f"lake.{_MARKUP}", "lake.db.events"]
    small, odd, events = tables
    assert small["cost"]["read_files"] == 7
    assert small["commands"] == ["icebergds compact --apply lake.db.inner.small"]
    # What the rewrite removed is held by the two snapshots before.
    table = fleet.load_table(_MARKUP)
    files = table.inspect.files(table.snapshots()[1].snapshot_id)
    before = sum(files["file_size_in_bytes"].to_pylist())
    assert odd["cost"]["held_bytes"] == odd["cost"]["weight"] == before
    assert events["cost"]["weight"] == 0
    shown = icebergds("fleet", "scan").out.splitlines()
    assert [line.split("  ")[0].strip() for line in shown[1:4]] == names
    assert shown[-1] == "3 tables, 1 with something to do"


def test_a_failing_table_is_told_and_passed_over(
    fleet: Catalog, icebergds: Command, tmp_path: Path
) -> None:
    broken = fleet.create_table("db.broken", "id int")
    Path(broken.metadata_location).write_text("{")
    out = tmp_path / "report.html"
    found = icebergds("fleet", "scan", "db", "--out", out, "--jobs", 3, "--json")
    assert found.status == 2
    assert len(found.json["tables"]) == 3
    assert [each["table"] for each in found.json["failed"]] == ["lake.db.broken"]
    assert found.json["report"] == str(out)
    assert "lake.db.broken" in out.read_text()


def test_prices_make_money_of_it(fleet: Catalog, icebergds: Command, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("storage_per_gb_month = 1e9\nrequests_per_1000 = 2000\ncurrency = 'EUR'")
    tables = icebergds("fleet", "scan", "--prices", prices, "--json").json["tables"]
    by_name = {each["table"]: each["cost"] for each in tables}
    assert by_name["lake.db.inner.small"]["money"] == {
        "storage": 0.0,
        "reads": pytest.approx(7 * 2 * 30),
        "currency": "EUR",
    }
    odd = by_name[f"lake.{_MARKUP}"]
    assert odd["money"]["storage"] == pytest.approx(odd["held_bytes"])
    # The dearest is the first now.
    assert tables[0]["table"] == f"lake.{_MARKUP}"
    assert "420.00 EUR" in icebergds("fleet", "scan", "--prices", prices).out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "storage_per_gb = 1",
            "unknown key 'storage_per_gb'; did you mean 'storage_per_gb_month'?",
        ),
        ("read_per_gb = -1", "read_per_gb = -1: expected a number from 0 on"),
        ("read_per_gb = true", "read_per_gb = True: expected a number from 0 on"),
        ("read_per_gb = nan", "read_per_gb = nan: expected a number from 0 on"),
        ("currency = 1", "currency = 1: expected text"),
        ("read_per_gb =", "is not TOML"),
        (None, "cannot be read"),
    ],
)
def test_a_wrong_price_file_is_refused(
    lake: Catalog, icebergds: Command, tmp_path: Path, text: str | None, told: str
) -> None:
    prices = tmp_path / "prices.toml"
    if text is not None:
        prices.write_text(text)
    refused = icebergds("fleet", "scan", "--prices", prices)
    assert refused.status == 2
    assert told in refused.err


def test_orphans_are_found_if_asked_for(fleet: Catalog, icebergds: Command) -> None:
    assert icebergds("fleet", "scan", "--json").json["tables"][0]["cost"]["orphan_bytes"] is None
    left = Path(fleet.load_table("db.events").location()) / "data" / "left.parquet"
    left.write_bytes(b"x" * 1234)
    os.utime(left, (0, 0))
    fleet.load_table("db.inner.small").set_properties({"gc.enabled": "false"})
    tables = icebergds("fleet", "scan", "--orphans", "--json").json["tables"]
    by_name = {each["table"]: each for each in tables}
    assert by_name["lake.db.events"]["cost"]["orphan_bytes"] == 1234
    assert left.exists()
    # That they cannot be searched for keeps no table out of the report.
    assert by_name["lake.db.inner.small"]["cost"]["orphan_bytes"] is None
    assert "gc.enabled" in by_name["lake.db.inner.small"]["orphan_error"]


def test_a_file_that_cannot_be_written_is_refused_at_once(
    lake: Catalog, icebergds: Command, tmp_path: Path
) -> None:
    for out in (tmp_path / "missing" / "report.html", tmp_path):
        refused = icebergds("fleet", "scan", "--out", out)
        assert refused.status == 2
        assert "expected a file in a directory that exists" in refused.err


def test_a_report_asks_for_nothing_and_escapes_names(
    fleet: Catalog, icebergds: Command, tmp_path: Path
) -> None:
    out = tmp_path / "report.html"
    assert icebergds("fleet", "scan", "--out", out).status == 1
    page = out.read_text()
    assert re.findall(r"""(?:src|href)=["'](?!\#|data:)[^"']*|url\((?!\#)[^)]*""", page) == []
    assert "<img" not in page
    assert page.count("<script>") == 1
    assert page.count("<svg") > 10
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    # Of no tables, charts are drawn; their figures are told.
    assert icebergds("fleet", "scan", "--out", out, "--charts", 0).status == 1
    assert "<svg" not in out.read_text()
    assert "Size of a file" in out.read_text()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium")
    with browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


def _names(page: Browser) -> list[str]:
    """The tables that are shown, from top to bottom."""
    found: list[str] = page.run(
        "[...document.querySelectorAll('#tables tbody tr')].filter(row => !row.hidden)"
        ".map(row => row.cells[0].innerText)"
    )
    return found


def _visible(page: Browser, selector: str) -> int:
    script = f"[...document.querySelectorAll({json.dumps(selector)})].filter(e => e.offsetParent)"
    count: int = page.run(f"{script}.length")
    return count


def test_the_report_in_a_browser(
    fleet: Catalog, icebergds: Command, tmp_path: Path, chromium: Browser
) -> None:
    out = tmp_path / "report.html"
    icebergds("fleet", "scan", "--out", out)
    _PICTURES.mkdir(parents=True, exist_ok=True)
    by_cost = ["lake.db.inner.small", f"lake.{_MARKUP}", "lake.db.events"]
    pictures = set()
    for width in (1280, 390):
        for dark in (False, True):
            name = f"{width}-{'dark' if dark else 'light'}.png"
            chromium.looks(width, dark=dark)
            chromium.open(out)
            assert _names(chromium) == by_cost
            pictures.add(chromium.screenshot(_PICTURES / f"tables-{name}"))
            chromium.run("document.querySelectorAll('#tables a')[1].click()")
            chromium.wait("document.querySelector('.page.shown')")
            pictures.add(chromium.screenshot(_PICTURES / f"table-{name}"))
            # Nothing is wider than the window.
            assert chromium.run("document.documentElement.scrollWidth") <= width
    assert len(pictures) == 8

    # One table, with its charts and no other.
    assert _visible(chromium, ".page") == 1
    assert chromium.run("document.querySelector('.page.shown h2').innerText") == by_cost[1]
    assert _visible(chromium, "#tables") == 0
    assert chromium.run("document.querySelectorAll('.page.shown svg').length") >= 6
    assert "<script>alert(2)" in chromium.run("document.querySelector('.page.shown').textContent")

    chromium.looks(1280)
    chromium.run("location.hash = '#all'")
    chromium.wait("!document.querySelector('.page.shown')")
    # The name sorts upwards first, and then downwards.
    chromium.run("document.querySelector('#tables th button').click()")
    by_name = [by_cost[1], by_cost[2], by_cost[0]]
    assert _names(chromium) == by_name
    chromium.run("document.querySelector('#tables th button').click()")
    assert _names(chromium) == by_name[::-1]
    chromium.run("document.querySelectorAll('#tables th.n button')[0].click()")
    assert _names(chromium) == by_cost

    for text, left in (("events", by_cost[2:]), ("REWRITE small", by_cost[:1]), ("", by_cost)):
        chromium.run(f"filter.value = {json.dumps(text)}; filter.dispatchEvent(new Event('input'))")
        assert _names(chromium) == left
    chromium.run("sick.click()")
    assert _names(chromium) == by_cost[:1]

    assert chromium.complaints == []
    assert {request.partition("#")[0] for request in chromium.requests} <= {out.as_uri(), "data:,"}


def test_the_report_without_javascript_and_in_print(
    fleet: Catalog, icebergds: Command, tmp_path: Path, chromium: Browser
) -> None:
    out = tmp_path / "report.html"
    icebergds("fleet", "scan", "--out", out)
    static = tmp_path / "static.html"
    # What a browser shows that runs no script.
    static.write_text(re.sub("(?s)<script>.*</script>", "", out.read_text()))
    chromium.looks(1280, media="print")
    chromium.open(static)
    assert _visible(chromium, ".page") == 3
    assert _visible(chromium, "#tables") == 1
    assert _visible(chromium, "#filter") == 0
    chromium.screenshot(_PICTURES / "print.png")
    assert chromium.complaints == []


def test_a_browser_notices_markup_that_is_not_escaped(tmp_path: Path, chromium: Browser) -> None:
    page = tmp_path / "wrong.html"
    page.write_text("<img src=x onerror='console.error(1)'><script>throw Error('x')</script>")
    chromium.open(page)
    chromium.wait("true")
    found, chromium.complaints = chromium.complaints, []
    chromium.requests.clear()
    assert len(found) >= 2
