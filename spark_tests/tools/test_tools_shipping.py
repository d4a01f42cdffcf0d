"""The package is shipped to a cluster whose processes have not got it, by `spark-submit`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from doc_pages import ROOT

pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed")

_PROGRAM = Path(__file__).parent / "programs/shipped.py"
_CHANGED = [0, 2, 3, 4, 6, 7, 8, 9]
# What icebergds needs on executors; Spark brings PySpark along.
_NEEDED = ["pandas", "pyarrow", "fastavro", "mmh3", "fsspec", "numpy", "pyroaring", "sqlglot"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run([*command, "--directory", str(directory)], cwd=ROOT, check=True)
    return next(directory.glob("*.whl"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has what icebergds needs, but not icebergds."""
    directory = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    packages = next((directory / "lib").glob("python*/site-packages"))
    # Files of paths in that directory are not heeded, among them that of an editable install.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return directory / "bin/python"


def submit(
    python: Path, directory: Path, *arguments: str, found: bool = False, **environment: str
) -> Any:
    """What the program prints, on a cluster of two executors; or what Spark says, if it fails."""
    submits = Path(sysconfig.get_path("purelib"), "pyspark/bin/spark-submit")
    given = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # That of this run is the first on the path where the program is run.
    given |= {"PYSPARK_PYTHON": str(python), "SPARK_HOME": str(submits.parents[1]), **environment}
    master = ["--master", "local-cluster[2,1,1024]", "--conf", "spark.executor.memory=512m"]
    finished = subprocess.run(
        [str(submits), *master, *arguments, str(_PROGRAM), str(directory), *(["found"] * found)],
        cwd=directory,
        env=given,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if finished.returncode:
        return finished.stderr + finished.stdout
    return json.loads(finished.stdout.splitlines()[-1])


def test_a_wheel_that_is_named_zip_is_shipped(wheel: Path, bare: Path, tmp_path: Path) -> None:
    shutil.copy(wheel, tmp_path / "icebergds.zip")
    seen = submit(bare, tmp_path, "--py-files", "icebergds.zip")
    assert isinstance(seen, dict), seen
    assert "icebergds.zip" in seen["driver"]
    assert all("icebergds.zip" in place for place in seen["executors"])
    assert seen["changed"] == _CHANGED


def test_a_wheel_is_not_shipped_under_its_own_name(wheel: Path, bare: Path, tmp_path: Path) -> None:
    said = submit(bare, tmp_path, "--py-files", str(wheel))
    assert isinstance(said, str), said
    assert "No module named 'icebergds'" in said


def test_an_environment_is_shipped(wheel: Path, tmp_path: Path) -> None:
    venv_pack = pytest.importorskip("venv_pack", reason="venv-pack is not installed")
    environment = tmp_path / "packed"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin/python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *_NEEDED], check=True)
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    venv_pack.pack(prefix=str(environment), output=str(tmp_path / "environment.tar.gz"))
    shutil.rmtree(environment)
    # The driver's own processes begin where it does.
    (tmp_path / "environment").mkdir()
    archive = str(tmp_path / "environment.tar.gz")
    shutil.unpack_archive(archive, tmp_path / "environment")
    python = Path("environment/bin/python")
    shipped = f"{archive}#environment"
    seen = submit(python, tmp_path, "--archives", shipped, found=True)
    assert isinstance(seen, dict), seen
    assert all("environment/lib" in place for place in seen["executors"])
    assert (seen["found"], seen["changed"]) == (10, _CHANGED)
