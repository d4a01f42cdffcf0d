"""Numbers, sizes, times and lists for people."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from icebergds.display import (
    counted,
    html_result,
    html_table,
    joined,
    printable,
    size_text,
    time_text,
)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 KB"),
        (999_949, "999.9 KB"),
        (999_950, "1.0 MB"),
        (22_100_000_000, "22.1 GB"),
        (10**22, "10,000.0 EB"),
    ],
)
def test_sizes(nbytes: int, text: str) -> None:
    assert size_text(nbytes) == text


def test_numbers_have_separators_and_nouns_their_plural() -> None:
    assert [counted(n, "file") for n in (0, 1, 1204)] == ["0 files", "1 file", "1,204 files"]
    assert [counted(2, noun) for noun in ("key", "property")] == ["2 keys", "2 properties"]


@pytest.mark.parametrize(
    ("timestamp_ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1788091201123, "2026-08-30T12:00:01.123Z"),
        (10**18, "1000000000000000000 ms since 1970"),
    ],
)
def test_times_are_in_utc(timestamp_ms: int, text: str) -> None:
    assert time_text(timestamp_ms) == text


def test_texts_that_do_not_fit_are_counted() -> None:
    names = [f"column{i}" for i in range(200)]
    text = joined(names, "column", 50)
    assert text == "column0, column1, column2, … 197 more columns"
    assert joined(names[:3], "column", 50) == "column0, column1, column2"
    assert joined([], "column", 50) == ""


def test_the_first_text_is_shown_however_long_it_is() -> None:
    assert joined(["x" * 99, "y"], "column", 20) == f"{'x' * 19}…, … 1 more column"


@pytest.mark.parametrize("text", ["\n", "\x1b[31m", "\u202e", "\ud800", "\x00"])
def test_control_characters_are_escaped(text: str) -> None:
    assert printable(text).isprintable()
    printable(text).encode()


def test_other_characters_are_kept() -> None:
    assert printable("größe 表 <b>") == "größe 表 <b>"


def cells(html: str) -> list[tuple[str, str]]:
    """The style and the content of each cell."""
    return re.findall(r'<t[hd] style="([^"]*)">(.*?)</t[hd]>', html)


def test_html_is_escaped() -> None:
    html = html_table("<b>", ("<i>", ""), [("<u>", "&")])
    assert [text for _, text in cells(html)] == ["&lt;i&gt;", "", "&lt;u&gt;", "&amp;"]
    assert "<p><b>&lt;b&gt;</b></p>" in html


def test_text_is_to_the_left_and_numbers_are_to_the_right() -> None:
    rows = [("a", "1,204", "1.2 MB", "1"), ("b", "", "7 bytes", "x")]
    html = html_table("t", ("text", "number", "size", "mixed"), rows)
    sides = [re.search(r"text-align: (\w+)", style)[1] for style, _ in cells(html)]  # type: ignore[index]
    assert sides == ["left", "right", "right", "left"] * 3


def test_lines_stay_lines_and_short_ones_do_not_wrap() -> None:
    html = html_table("t", (), [("sql", "SELECT *\n  FROM t\x1b"), ("path", "x" * 61)])
    assert [text for _, text in cells(html)][1] == "SELECT *<br>  FROM t\\x1b"
    wraps = [style.rsplit(": ", 1)[1] for style, _ in cells(html)]
    assert wraps == ["pre", "pre", "pre", "pre-wrap"]


def test_long_texts_are_cut_line_by_line() -> None:
    text = "\n".join(["x" * 600] * 60)
    lines = cells(html_table("t", (), [("text", text)]))[1][1].split("<br>")
    assert len(lines) == 51
    assert lines[0] == "x" * 499 + "…"
    assert lines[-1] == "… 10 more lines"


@dataclass(frozen=True)
class Result:
    moved_files_count: int = 1204
    moved_bytes_count: int = 1_200_000
    snapshot_id: int = 1234567
    failure: str | None = None
    names: tuple[str, ...] = ("a", "b")


def test_a_result_shows_a_row_for_each_field() -> None:
    assert [text for _, text in cells(html_result("Moved", Result()))] == [
        *("moved files", "1,204"),
        *("moved bytes", "1.2 MB"),
        *("snapshot id", "1234567"),
        *("failure", "none"),
        *("names", "a<br>b"),
    ]


def test_long_html_tables_are_cut() -> None:
    html = html_table("t", ("n",), [(str(i),) for i in range(250)], "file")
    assert html.count("<tr>") == 101
    assert "… 150 more files" in html
