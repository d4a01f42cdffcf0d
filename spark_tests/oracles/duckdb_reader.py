"""DuckDB's reader in a process of its own: it may take its process down."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pytest

_PACKAGES = ("duckdb", "duckdb_extension_avro", "duckdb_extension_iceberg")


class DuckDBError(Exception):
    """DuckDB failed to read a table."""


class DuckDBReader:
    """Reads tables through the extension `iceberg`, as its packages bring it.

    Attributes:
        failed, succeeded: how many tables it could not read, and could.
    """

    def __init__(self) -> None:
        missing = [name for name in _PACKAGES if find_spec(name) is None]
        # An extension loads in the DuckDB that it was built for alone.
        if missing or len({version(name) for name in _PACKAGES}) > 1:
            packages = " ".join(name.replace("_", "-") for name in missing or _PACKAGES)
            pytest.skip(f"pip install {packages}, all of one version")
        self._process: subprocess.Popen[bytes] | None = None
        self.failed = self.succeeded = 0

    def read(self, metadata_location: str) -> list[tuple[Any, ...]]:
        """The rows of a table.

        Raises:
            DuckDBError: DuckDB fails to read it, or its process ended; with what the process said.
        """
        rows: list[tuple[Any, ...]] = self._ask("rows", metadata_location)
        return rows

    def read_arrow(self, metadata_location: str) -> pa.Table:
        """The same as an Arrow table; variants at the top level are texts of JSON."""
        return self._ask("arrow", metadata_location)

    def _ask(self, form: str, metadata_location: str) -> Any:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        line = _answer(self._process, f"{form} {metadata_location}")
        if not line:
            # After an error the database is of no use, and the process ends too.
            self.failed += 1
            raise DuckDBError(f"{metadata_location}: {self._last_words(self._process)}")
        self.succeeded += 1
        return pickle.loads(bytes.fromhex(line.decode()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def _last_words(self, process: subprocess.Popen[bytes]) -> str:
        """What an ending process said; the next read starts another one."""
        self._process = None
        said = process.communicate()[1].decode(errors="replace").strip()
        return f"DuckDB's process ended with exit code {process.returncode}: {said or 'no message'}"


def _answer(process: subprocess.Popen[bytes], question: str) -> bytes:
    """The line with which a process answers a line; empty if it has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(question.encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        return b""
    return process.stdout.readline()


def connect() -> Any:
    """A connection that has the extensions, as their packages bring them."""
    import duckdb

    connection = duckdb.connect()
    for name in _PACKAGES[1:]:
        package = find_spec(name)
        assert package is not None
        assert package.origin is not None
        (extension,) = Path(package.origin).parent.rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    return connection


def main() -> None:
    """Answers each line, a form and a metadata location, with a table's rows in this form."""
    connection = connect()
    for line in sys.stdin:
        form, location = line.strip().split(" ", 1)
        scan = connection.sql(f"SELECT * FROM iceberg_scan('{location}')")
        read = scan.fetchall() if form == "rows" else _as_arrow(scan)
        print(pickle.dumps(read).hex(), flush=True)


def _as_arrow(scan: Any) -> pa.Table:
    # DuckDB does not export variants, and makes a text of a null one.
    columns = [
        f'CASE WHEN "{name}" IS NOT NULL THEN "{name}"::JSON::VARCHAR END AS "{name}"'
        if str(kind) == "VARIANT"
        else f'"{name}"'
        for name, kind in zip(scan.columns, scan.types, strict=True)
    ]
    return scan.project(", ".join(columns)).to_arrow_table()


if __name__ == "__main__":
    main()
