"""DuckDB's reader in a process of its own: it may take its process down."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

_PACKAGES = ("duckdb", "duckdb_extension_avro", "duckdb_extension_iceberg")


class DuckDBReader:
    """Reads tables through the extension `iceberg`, as its packages bring it."""

    def __init__(self) -> None:
        missing = [name for name in _PACKAGES if find_spec(name) is None]
        if missing:
            packages = " ".join(name.replace("_", "-") for name in missing)
            pytest.skip(f"pip install {packages}, all of one version")
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, metadata_location: str) -> list[tuple[Any, ...]] | None:
        """The rows of a table, None where DuckDB fails to read it."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(metadata_location.encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            # After an error the database is of no use, and the process ends too.
            self._stop()
            return None
        rows: list[tuple[Any, ...]] = pickle.loads(bytes.fromhex(line.decode()))
        return rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def main() -> None:
    """Answers each metadata location on a line of its own with a table's rows."""
    import duckdb

    connection = duckdb.connect()
    for name in _PACKAGES[1:]:
        package = find_spec(name)
        assert package is not None
        assert package.origin is not None
        (extension,) = Path(package.origin).parent.rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    for line in sys.stdin:
        rows = connection.sql(f"SELECT * FROM iceberg_scan('{line.strip()}')").fetchall()
        print(pickle.dumps(rows).hex(), flush=True)


if __name__ == "__main__":
    main()
