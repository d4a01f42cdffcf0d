"""What an installation needs: the wheel alone, with one extra, and without a package of an extra.

The wheel that `ICEBERGDS_WHEEL` names is installed in environments of its own (`make test-wheel`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

_ROOT = Path(__file__).parents[1]
_EXTRAS: dict[str, list[str]] = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
_OF_THE_PROJECT = {"test", "bench", "lint", "docs", "wheel"}

_CATALOG = "from icebergds import load_catalog; load_catalog('lake', {})"
_TABLE = "from icebergds import load_table; load_table('{}')"
_AZURE = (
    "from icebergds import load_table; load_table('abfss://files@account.dfs.core.windows.net/table'"
    ", properties={'adls.account-key': 'a2V5', 'adls.blob-storage-authority': '127.0.0.1:9'})"
)
_REST = "uri='http://127.0.0.1:9', **{{'rest.auth.type': '{}', 'rest.signing-region': 'x'}}"
_SEAL = "from icebergds.encryption.ciphers import seal; seal(bytes(16), b'')"
_KMS = (
    "from icebergds.encryption.kms import load_kms; "
    "load_kms({{'encryption.kms-type': '{}'}}, 'a catalog').wrap_key(bytes(16), 'a-key')"
)
# The extra, the package of it that is missing, and what then says so.
_USES = [
    ("s3", "s3fs", _TABLE.format("s3://bucket/table")),
    ("s3", "botocore", _TABLE.format("s3a://bucket/table")),
    ("s3", "botocore", _CATALOG.format(_REST.format("sigv4"))),
    ("gcs", "gcsfs", _TABLE.format("gs://bucket/table")),
    ("gcs", "google-auth", _CATALOG.format(_REST.format("google"))),
    ("azure", "adlfs", _AZURE),
    ("hdfs", "requests", _TABLE.format("webhdfs://127.0.0.1:9/table")),
    ("hdfs", "urllib3", _TABLE.format("swebhdfs://127.0.0.1:9/table")),
    ("sql", "sqlalchemy", _CATALOG.format("uri='sqlite:///catalog.db'")),
    ("sql-mysql", "pymysql", _CATALOG.format("uri='mysql://127.0.0.1:9/db'")),
    ("sql-postgres", "psycopg", _CATALOG.format("uri='postgresql://127.0.0.1:9/db'")),
    ("rest", "requests", _CATALOG.format("uri='http://127.0.0.1:9'")),
    ("hive", "thrift", _CATALOG.format("uri='thrift://127.0.0.1:9'")),
    (
        "hive-kerberos",
        "pure-sasl",
        _CATALOG.format("uri='thrift://127.0.0.1:9', **{'hive.kerberos-authentication': 'true'}"),
    ),
    ("glue", "botocore", _CATALOG.format("type='glue'")),
    ("dynamodb", "botocore", _CATALOG.format("type='dynamodb'")),
    ("s3tables", "botocore", _CATALOG.format("type='s3tables', warehouse='arn:aws:s3tables:x'")),
    ("encryption", "cryptography", _SEAL),
    ("encryption-aws", "botocore", _KMS.format("aws")),
    ("encryption-azure", "azure-keyvault-keys", _KMS.format("azure")),
    ("encryption-azure", "azure-identity", _KMS.format("azure")),
    ("encryption-gcp", "google-cloud-kms", _KMS.format("gcp")),
    ("yaml", "pyyaml", _CATALOG.format("")),
    ("cli", "typer", "from icebergds.cli.main import main; main()"),
    ("cli", "rich", "from icebergds.cli.main import main; main()"),
    ("otel", "opentelemetry-api", "import icebergds.otel"),
    ("report", "jinja2", "REPORT"),
    ("report", "matplotlib", "REPORT"),
]
_REPORT = """
import icebergds
catalog = icebergds.load_catalog("files", warehouse="./warehouse")
catalog.create_namespace("db")
catalog.create_table("db.events", "id bigint").report("report.html")
"""
# Credentials are not asked for from a cloud that the machine may be in.
_NO_CLOUD = {"AWS_EC2_METADATA_DISABLED": "true", "NO_GCE_CHECK": "true"}
_WITHOUT = """
import sys

class Without:
    def __init__(self, finders):
        self.finders = finders

    def find_spec(self, name, *more):
        if name.partition(".")[0] not in {missing!r}:
            found = (finder.find_spec(name, *more) for finder in self.finders)
            return next(filter(None, found), None)

sys.meta_path[:] = [Without(sys.meta_path[:])]
"""


@pytest.mark.parametrize(("extra", "package", "use"), _USES)
def test_a_missing_package_is_told_with_its_extra(
    extra: str, package: str, use: str, tmp_path: Path
) -> None:
    names = packages_distributions().items()
    missing = {module for module, owners in names if package in map(str.lower, owners)}
    program = _WITHOUT.format(missing=missing) + use.replace("REPORT", _REPORT)
    last = _run(sys.executable, program, tmp_path).stderr.strip().splitlines()[-1]
    assert f"pip install 'icebergds[{extra}]'" in last


def test_every_package_of_an_extra_is_missed_by_a_test() -> None:
    # Without those of `speed`, all works as well, but slower.
    named = {
        (extra, requirement.name)
        for extra, packages in _EXTRAS.items()
        for requirement in map(Requirement, packages)
        if extra not in _OF_THE_PROJECT | {"speed"} and requirement.name != "icebergds"
    }
    assert named - {(extra, package) for extra, package, _ in _USES} == set()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it requires."""
    wheel = os.environ.get("ICEBERGDS_WHEEL")
    if wheel is None:
        pytest.skip("ICEBERGDS_WHEEL names no wheel: make test-wheel")
    return _environment(tmp_path_factory.mktemp("alone"), wheel)


def test_the_wheel_alone_runs_the_demo(alone: Path, tmp_path: Path) -> None:
    # Away from the checkout, whose package would be found first.
    shutil.copytree(_ROOT / "examples", tmp_path / "examples")
    program = "import runpy; runpy.run_path('examples/demo.py', run_name='__main__')"
    done = _run(alone / "bin" / "python", program, tmp_path)
    assert done.returncode == 0, done.stderr
    # Of both tables that it ends with.
    assert done.stdout.count("Rows in its first snapshot") == 2


@pytest.mark.parametrize("extra", sorted(_EXTRAS.keys() - _OF_THE_PROJECT))
def test_an_extra_is_enough_by_itself(extra: str, alone: Path, tmp_path: Path) -> None:
    with_it = _environment(tmp_path, f"{os.environ['ICEBERGDS_WHEEL']}[{extra}]", above=alone)
    for use in (use for of, _, use in _USES if of == extra):
        done = _run(with_it / "bin" / "python", use.replace("REPORT", _REPORT), tmp_path)
        assert f"icebergds[{extra}]" not in done.stderr.strip().rpartition("\n")[2]
        assert "ModuleNotFoundError" not in done.stderr


def _environment(directory: Path, requirement: str, *, above: Path | None = None) -> Path:
    """An environment of its own, which also has the packages of another one."""
    place = directory / "environment"
    pip = ["--without-pip"] if above is not None else []
    subprocess.run([sys.executable, "-m", "venv", *pip, place], check=True)
    if above is not None:
        Path(_packages(place), "above.pth").write_text(f"{_packages(above)}\n")
    python = place / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", requirement], check=True)
    return place


def _packages(environment: Path) -> str:
    return sysconfig.get_path("purelib", "venv", {"base": str(environment)})


def _run(python: Path | str, program: str, directory: Path) -> subprocess.CompletedProcess[str]:
    (directory / ".pyiceberg.yaml").write_text("catalog: {lake: {uri: 'sqlite:///catalog.db'}}")
    # An environment of its own has its own package and Python, also in Spark's workers.
    hidden = ("PYICEBERG", "PYSPARK", *(["PYTHON"] if python != sys.executable else []))
    variables = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    return subprocess.run(
        [str(python), "-c", program],
        cwd=directory,
        env={**variables, **_NO_CLOUD, "PYICEBERG_HOME": str(directory)},
        capture_output=True,
        text=True,
    )
