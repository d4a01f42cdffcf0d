"""Where Java Iceberg runs: an interpreter with PySpark 4.1, and the runtime jar.

`.ci/java_oracle.sh` makes both. Environment variables name them where they are elsewhere:
ICEBERGDS_JAVA_PYTHON the interpreter, ICEBERGDS_ICEBERG_JAR the jar, ICEBERGDS_JDBC_DRIVERS the
folder of the drivers that Java's JDBC catalog needs, ICEBERGDS_AWS_JAR, ICEBERGDS_GCP_JAR and
ICEBERGDS_AZURE_JAR the bundles of these clouds, ICEBERGDS_S3TABLES_JARS the folder of the catalog
of S3 Tables.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ICEBERG_VERSION = "1.12.0"
_S3_TABLES_VERSION = "0.1.8"
# Of each cloud, the version of Java's bundle and what has `.ci/java_oracle.sh` fetch it.
_BUNDLES = {
    "aws": (ICEBERG_VERSION, "ICEBERGDS_WITH_AWS=1"),
    "gcp": ("1.11.0", "ICEBERGDS_PROFILE=nightly"),
    "azure": ("1.10.0", "ICEBERGDS_PROFILE=nightly"),
}
_ROOT = Path(__file__).resolve().parents[2]
_JAR = f"iceberg-spark-runtime-4.1_2.13-{ICEBERG_VERSION}.jar"
_DRIVERS = {"sqlite": "sqlite-jdbc", "postgresql": "postgresql", "mariadb": "mariadb-java-client"}
_MISSING = "run `. .ci/java_oracle.sh` from the repository's root, or set {variable}"


@dataclass(frozen=True, slots=True)
class JavaEnvironment:
    """An interpreter that has PySpark 4.1, and Java Iceberg's runtime jar for it."""

    python: Path
    jar: Path

    def run(self, *command: str, timeout_seconds: float | None = None) -> str:
        """Runs the interpreter with the arguments `command`; returns what it prints.

        Modules of `spark_tests` can be imported. Raises RuntimeError with the end of the error
        output if the command fails.
        """
        done = subprocess.run(
            [str(self.python), *command],
            env=self._variables(),
            cwd=_ROOT,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            check=False,
        )
        if done.returncode:
            what = " ".join(command)
            raise RuntimeError(f"{what} failed:\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}")
        return done.stdout

    def start(self, *command: str, stderr: IO[str]) -> subprocess.Popen[str]:
        """Starts the interpreter as `run` does, with pipes to its input and from its output."""
        return subprocess.Popen(
            [str(self.python), *command],
            env=self._variables(),
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def _variables(self) -> dict[str, str]:
        environment = {
            **os.environ,
            "PYTHONPATH": str(_ROOT / "spark_tests"),
            "PYSPARK_PYTHON": str(self.python),
            "ICEBERGDS_ICEBERG_JAR": str(self.jar),
        }
        # A Spark of the calling environment must not be taken for this one.
        for variable in ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "PYSPARK_DRIVER_PYTHON"):
            environment.pop(variable, None)
        return environment


def java_environment() -> JavaEnvironment | str:
    """The environment, or a sentence that says what is missing and how to get it."""
    default_python = _ROOT / ".venv-java" / "bin" / "python"
    python = Path(os.environ.get("ICEBERGDS_JAVA_PYTHON", default_python))
    if not python.exists():
        where = _MISSING.format(variable="ICEBERGDS_JAVA_PYTHON")
        return f"no interpreter with PySpark 4.1 at {python}: {where}"
    jar = Path(os.environ.get("ICEBERGDS_ICEBERG_JAR", _ROOT / ".cache" / "java" / _JAR))
    if not jar.exists():
        where = _MISSING.format(variable="ICEBERGDS_ICEBERG_JAR")
        return f"no Java Iceberg runtime at {jar}: {where}"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "no Java: install a JDK of version 17 or later"
    return JavaEnvironment(python, jar)


def jdbc_driver(database: str) -> Path | str:
    """The newest driver for a database of `_DRIVERS`, or a sentence that says how to get one."""
    folder = Path(os.environ.get("ICEBERGDS_JDBC_DRIVERS", _ROOT / ".cache" / "java"))
    found = sorted(folder.glob(f"{_DRIVERS[database]}-*.jar"))
    if not found:
        where = _MISSING.format(variable="ICEBERGDS_JDBC_DRIVERS")
        return f"no JDBC driver for {database} in {folder}: {where}"
    return found[-1]


def bundle(cloud: str) -> Path | str:
    """What Java needs in a cloud of `_BUNDLES`, or a sentence that says how to get it."""
    version, setting = _BUNDLES[cloud]
    default = _ROOT / ".cache" / "java" / f"iceberg-{cloud}-bundle-{version}.jar"
    variable = f"ICEBERGDS_{cloud.upper()}_JAR"
    jar = Path(os.environ.get(variable, default))
    if not jar.exists():
        where = _MISSING.format(variable=variable)
        return f"no bundle of {cloud} at {jar}: {where}, with {setting}"
    return jar


def s3_tables_jars() -> list[Path] | str:
    """What Java's catalog of S3 Tables needs besides, or a sentence that says how to get it."""
    default = _ROOT / ".cache" / "java" / f"s3tables-catalog-{_S3_TABLES_VERSION}"
    folder = Path(os.environ.get("ICEBERGDS_S3TABLES_JARS", default))
    if not folder.is_dir():
        where = _MISSING.format(variable="ICEBERGDS_S3TABLES_JARS")
        return f"no catalog of S3 Tables in {folder}: {where}, with ICEBERGDS_WITH_AWS=1"
    return sorted(folder.glob("*.jar"))


def class_path() -> str:
    """The runtime jar of the environment, and what is there of drivers and bundles."""
    further = [*map(jdbc_driver, _DRIVERS), *map(bundle, _BUNDLES)]
    paths = [os.environ["ICEBERGDS_ICEBERG_JAR"], *(f for f in further if isinstance(f, Path))]
    if not isinstance(jars := s3_tables_jars(), str):
        paths.extend(jars)
    return os.pathsep.join(str(path) for path in paths)
