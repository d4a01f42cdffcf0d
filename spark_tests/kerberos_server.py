"""A Kerberos realm of the tests' own; `.ci/servers.sh` installs it for the nightly run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from server_process import free_ports, listens, running

PACKAGES = Path(__file__).resolve().parents[1] / ".cache/kerberos"
"""Where a client's Python packages are."""

_REALM = "ICEBERGDS.TEST"
_CLIENTS = """\
[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_canonicalize_hostname = false
rdns = false
# Only of TCP is it known that the port is free.
udp_preference_limit = 1
[realms]
{realm} = {{
    kdc = 127.0.0.1:{port}
}}
"""
_CENTER = """\
[realms]
{realm} = {{
    database_name = {directory}/database
    key_stash_file = {directory}/stash
    kdc_listen = ""
    kdc_tcp_listen = 127.0.0.1:{port}
}}
[logging]
kdc = STDERR
"""


@dataclass(frozen=True)
class KerberosServer:
    """A key distribution center (KDC) on this machine."""

    directory: Path

    @property
    def config(self) -> Path:
        """The settings of clients, for KRB5_CONFIG."""
        return self.directory / "krb5.conf"

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the realm's programs."""
        return {"KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": f"{self.directory}/kdc.conf"}

    def principal(self, name: str) -> str:
        return f"{name}@{_REALM}"

    def new_principal(self, name: str) -> Path:
        """Adds a principal, and returns the keytab with its key."""
        keytab = self.directory / f"{uuid.uuid4().hex}.keytab"
        self.run("kadmin.local", "addprinc", "-randkey", name)
        self.run("kadmin.local", "ktadd", "-k", str(keytab), name)
        return keytab

    def new_ticket(self, name: str, keytab: Path, lifetime: str = "1h") -> Path:
        """Has a principal log in, and returns its credential cache, for KRB5CCNAME."""
        cache = self.directory / f"{uuid.uuid4().hex}.cache"
        self.run("kinit", "-l", lifetime, "-c", str(cache), "-k", "-t", str(keytab), name)
        return cache

    def run(self, *command: str) -> None:
        """Runs a program of the realm."""
        done = subprocess.run(
            [_program(command[0]), *command[1:]],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"


def what_is_missing() -> str | None:
    """What a server and its clients need and is not there."""
    programs = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
    lacking = next((name for name in programs if shutil.which(name, path=_PATH) is None), None)
    if lacking is not None:
        return f"{lacking} is not installed; run ICEBERGDS_PROFILE=nightly .ci/servers.sh"
    if not PACKAGES.exists():
        return "the package kerberos is not there; run ICEBERGDS_PROFILE=nightly .ci/servers.sh"
    return None


@contextmanager
def kerberos_server() -> Iterator[KerberosServer]:
    """Starts a KDC with a realm of its own, and stops it in the end."""
    directory = Path(tempfile.mkdtemp(prefix="kerberos-"))
    server = KerberosServer(directory)
    port = free_ports(1)[0]
    given = {"realm": _REALM, "port": port, "directory": directory}
    server.config.write_text(_CLIENTS.format(**given))
    (directory / "kdc.conf").write_text(_CENTER.format(**given))
    try:
        server.run("kdb5_util", "create", "-s", "-P", "unused")
        command = [_program("krb5kdc"), "-n"]
        with running(command, directory, listens(port), environment=server.environment):
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)


# Users other than root do not have it in theirs.
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"


def _program(name: str) -> str:
    found = shutil.which(name, path=_PATH)
    assert found is not None, f"{name} is not installed"
    return found
