"""A disk that fills up while rows are written: a limit of the size of files stands for it."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from built.api_tables import ids_of, new_table, rows

_LIMIT = 400_000
_PROGRAM = """
import json, random, sys
import pyarrow as pa
from icebergds.api.table import load_table
from icebergds.errors import StorageError
from built.api_tables import DAYS
from built.rows import arrow_table

names = [random.Random(i).randbytes(500).hex() for i in range(2000)]
rows = arrow_table(DAYS, [(i, 0, name) for i, name in enumerate(names)])
try:
    load_table(sys.argv[1]).append(rows)
except StorageError as error:
    print(json.dumps([str(error), error.errno, error.location]))
"""


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_full_disk_is_told_and_leaves_the_table(tmp_path: Path, file_format: str) -> None:
    table = new_table(tmp_path, properties={"write.format.default": file_format})
    table.append(rows(1))
    before = sorted(Path(table.location()).rglob("*"))
    # In a process of its own: the limit holds for all files of the process.
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, table.location()],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (_LIMIT, _LIMIT)),
    )
    assert done.returncode == 0, done.stderr
    message, code, location = json.loads(done.stdout)
    assert message == (
        f"writing the data file {location} failed: [Errno {code}] File too large; the files of "
        f"this task were deleted; nothing was committed to table {table.location()}"
    )
    assert sorted(Path(table.location()).rglob("*")) == before
    assert ids_of(table.refresh()) == [1]
