"""The types of the public API are there for users' programs, under mypy's strictest settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from effort import IS_NIGHTLY

import icebergds

_PROGRAM = Path(__file__).parents[1] / "spark/programs/typed_program.py"


@pytest.mark.skipif(not IS_NIGHTLY, reason="`make check` checks the same program")
def test_a_program_passes_strict_type_checks(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    program = Path(shutil.copy(_PROGRAM, tmp_path))
    # As an installed package is found: mypy uses its types only if it has the file `py.typed`.
    environment = {**os.environ, "PYTHONPATH": str(Path(icebergds.__file__).parents[1])}
    environment.pop("MYPYPATH", None)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", program.name],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
