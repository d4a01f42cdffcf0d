"""Table properties: their values, which are known by name, and their page in the docs."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

from icebergds.errors import InvalidOptionError
from icebergds.formats.avro.container_writer import CODECS
from icebergds.formats.data_file.write_properties import AVRO_CODECS, ORC_CODECS, PARQUET_CODECS
from icebergds.spec import table_properties
from icebergds.spec.table_properties import (
    AVRO_COMPRESSION,
    BOOLEAN,
    INTEGER,
    MANIFEST_COMPRESSION,
    NUMBER,
    ORC_COMPRESSION,
    PARQUET_COMPRESSION,
    PROPERTIES,
    Property,
    at_least,
    is_known,
    nearest_known,
)

_DOCS = Path(__file__).parents[2] / "docs" / "properties.md"
_INTEGER = Property("a", INTEGER, 3)
_NUMBER = Property("a", NUMBER, 0.5)
_SECTIONS = {
    "write.format.default": "Files",
    "write.data.path": "Places",
    "write.distribution-mode": "How rows are written and changed",
    "format-version": "Commits and metadata",
    "read.split.target-size": "Reads",
}
"""The headings of the page, by the first property below each."""


def test_what_is_not_set_has_its_default() -> None:
    assert _INTEGER.of({}) == 3
    assert _NUMBER.of({}) == 0.5
    assert Property("a", BOOLEAN, True).of({}) is True


def test_values_are_parsed() -> None:
    assert _INTEGER.of({"a": " 12 "}) == 12
    assert _INTEGER.of({"a": "-1"}) == -1
    assert _NUMBER.of({"a": "1e-2"}) == 0.01
    assert Property("a", BOOLEAN, False).of({"a": "TRUE"}) is True
    assert Property("a", BOOLEAN, True).of({"a": "false"}) is False


@pytest.mark.parametrize("text", ["", "x", "1.5", "1_000", "1e3", "٣"])
def test_what_is_no_integer_is_named(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"property a is {text!r}, expected an integer"):
        _INTEGER.of({"a": text})


def test_values_below_the_least_are_named() -> None:
    natural = Property("a", at_least(0), 3)
    assert natural.of({"a": "0"}) == 0
    with pytest.raises(InvalidOptionError, match="'-1', expected an integer of at least 0"):
        natural.of({"a": "-1"})


@pytest.mark.parametrize("text", ["", "nan", "inf", "1,5", "1e999"])
def test_what_is_no_finite_number_is_named(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="expected a number"):
        _NUMBER.of({"a": text})


@pytest.mark.parametrize("text", ["", "yes", "1"])
def test_what_is_neither_true_nor_false_is_named(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="expected true or false"):
        Property("a", BOOLEAN, True).of({"a": text})


def test_numbers_that_new_tables_may_not_have_are_used_where_they_are() -> None:
    size = table_properties.TARGET_FILE_SIZE_BYTES
    assert size.of({size.name: "0"}) == 0
    with pytest.raises(InvalidOptionError, match="'0', expected an integer of at least 1"):
        size.check({size.name: "0"})


def test_codecs_are_those_of_the_libraries() -> None:
    codecs = {
        PARQUET_COMPRESSION: PARQUET_CODECS,
        ORC_COMPRESSION: ORC_CODECS,
        AVRO_COMPRESSION: AVRO_CODECS,
        MANIFEST_COMPRESSION: CODECS,
    }
    for described, names in codecs.items():
        assert described.kind.words == tuple(names)


def test_names_are_known_of_delete_files_and_of_columns_too() -> None:
    assert is_known("write.delete.parquet.page-size-bytes")
    assert is_known("write.delete.parquet.bloom-filter-ndv.column.a.b")
    assert is_known("write.metadata.metrics.column.a")
    assert not is_known("write.delete.target-size")
    assert nearest_known("write.parquet.bloom-filter-max-byte") != ""
    assert "write.merge.mode" in nearest_known("write.merge.mod")


def _texts() -> dict[str, str]:
    """The text below each property in the module, by the name of the property."""
    parsed = ast.parse(Path(table_properties.__file__).read_text()).body
    found = {}
    for assigned, text in pairwise(parsed):
        match assigned, text:
            case (
                ast.Assign(targets=[ast.Name(constant)]),
                ast.Expr(ast.Constant(str(sentence))),
            ):
                value = getattr(table_properties, constant)
                for one in value.values() if isinstance(value, dict) else [value]:
                    if isinstance(one, Property):
                        found[one.name] = " ".join(sentence.split()).removesuffix(".")
    return found


def _row(described: Property[object, object], text: str) -> str:
    name = described.name + ("<column>" if described.name.endswith(".") else "")
    default = described.default
    shown = "" if default is None else str(default).lower()
    words = ", ".join(f"`{word}`" for word in described.kind.words)
    cells = (f"`{name}`", words or described.kind.expected, shown, text)
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def _page() -> str:
    """The page with the tables that the properties give."""
    texts, page, rows = _texts(), _DOCS.read_text(), dict.fromkeys(_SECTIONS.values(), "")
    section = ""
    for described in PROPERTIES:
        section = _SECTIONS.get(described.name, section)
        rows[section] += _row(described, texts[described.name]) + "\n"
    for heading, listed in rows.items():
        table = f"| property | values | default | |\n|---|---|---|---|\n{listed}"
        page = re.sub(
            rf"(?<=\n## {heading}\n\n)(\|.*\n)*", table.replace("\\", r"\\"), page, count=1
        )
    return page


def test_the_docs_are_what_the_properties_say() -> None:
    """Run this module as a script to write the page."""
    assert _DOCS.read_text() == _page()


if __name__ == "__main__":
    _DOCS.write_text(_page())
