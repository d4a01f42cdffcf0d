"""Numbers, sizes, times and lists for people."""

from __future__ import annotations

import pytest

from icebergds.display import counted, html_table, joined, printable, size_text, time_text


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


def test_html_is_escaped() -> None:
    html = html_table("<b>", ("<i>",), [("<u>", "&")])
    assert "<th>&lt;i&gt;</th>" in html
    assert "<td>&lt;u&gt;</td><td>&amp;</td>" in html
    assert "<p><b>&lt;b&gt;</b></p>" in html


def test_long_html_tables_are_cut() -> None:
    html = html_table("t", ("n",), [(str(i),) for i in range(250)], "file")
    assert html.count("<tr>") == 101
    assert "… 150 more files" in html
