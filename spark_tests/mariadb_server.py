"""A MariaDB server of the tests' own, in a directory that goes with it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pymysql
from server_process import free_ports, running


@dataclass(frozen=True)
class MariaDbServer:
    """A server on this machine, with one user, who has a password."""

    port: int

    def new_database(self) -> str:
        """The name of a new, empty database."""
        name = f"db_{uuid.uuid4().hex}"
        with closing(_connect(self.port)) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        return name

    def uri(self, database: str, port: int | None = None) -> str:
        """The database's URI; by way of another port where one is given."""
        return f"mysql+pymysql://tester:{_PASSWORD}@127.0.0.1:{port or self.port}/{database}"

    def jdbc_properties(self, database: str) -> dict[str, str]:
        """Properties of a catalog in the database, as Java's JDBC catalog has them."""
        # Otherwise Java takes the tables of another database for those of this one.
        only = "nullDatabaseMeansCurrent=true"
        uri = f"jdbc:mariadb://127.0.0.1:{self.port}/{database}?{only}"
        return {"uri": uri, "jdbc.user": "tester", "jdbc.password": _PASSWORD}

    def execute(self, statement: str) -> None:
        with closing(_connect(self.port)) as connection, connection.cursor() as cursor:
            cursor.execute(statement)


def what_is_missing() -> str | None:
    """What a server needs and is not there."""
    missing = [name for name in (_SERVER, _INSTALLER, _DEFAULTS) if _found(name) is None]
    return f"{' and '.join(missing)} not installed; run .ci/servers.sh" if missing else None


@contextmanager
def mariadb_server() -> Iterator[MariaDbServer]:
    """Starts a server, and stops it in the end."""
    # Not pytest's directory, which others must not enter: the server does not run as root.
    directory = Path(tempfile.mkdtemp(prefix="mariadb-"))
    user = _user()
    try:
        if user is not None:
            shutil.chown(directory, user)
        setup = directory / "setup.sql"
        setup.write_text(
            f"CREATE USER tester@'127.0.0.1' IDENTIFIED BY '{_PASSWORD}';\n"
            "GRANT ALL ON *.* TO tester@'127.0.0.1';\n"
        )
        options = ["--no-defaults", f"--datadir={directory / 'data'}"]
        if user is not None:
            options.append(f"--user={user}")
        _run(
            *(str(_found(_INSTALLER)), *options, "--skip-test-db"),
            "--auth-root-authentication-method=normal",
        )
        server = MariaDbServer(*free_ports(1))
        command = [
            *(_found(_SERVER), *options, "--bind-address=127.0.0.1"),
            *(f"--port={server.port}", f"--socket={directory / 'socket'}"),
            f"--init-file={setup}",
            *("--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve"),
        ]
        with running(command, directory, lambda: _ask(server.port)):
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)


_SERVER, _INSTALLER, _DEFAULTS = "mariadbd", "mariadb-install-db", "my_print_defaults"
_PASSWORD = "s3cret-word"


def _found(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def _connect(port: int) -> pymysql.Connection[pymysql.cursors.Cursor]:
    return pymysql.connect(
        host="127.0.0.1", port=port, user="tester", password=_PASSWORD, autocommit=True
    )


def _ask(port: int) -> None:
    try:
        _connect(port).close()
    except pymysql.OperationalError as error:
        raise ConnectionError(str(error)) from error


def _user() -> str | None:
    """Whom to run as; None for the one who runs the tests."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "mysql" if "mysql" in names else "nobody"


def _run(*command: str) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, cwd="/", check=False, timeout=120
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
