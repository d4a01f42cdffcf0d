"""Drives a headless Chromium over its DevTools protocol."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
_SECONDS = 60


class Browser:
    """A page of a browser, and what its console and its network told.

    Attributes:
        complaints: errors and warnings of the console, uncaught errors, and dialogs.
        requests: addresses that pages asked for.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self._connection, self._sent, self._session = connection, 0, ""
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, page: Path | str) -> None:
        """Opens a file or an address and waits until it is loaded."""
        address = page if isinstance(page, str) else page.as_uri()
        self._call("Page.navigate", url=address)
        here = f"location.href === new URL({json.dumps(address)}).href"
        self.wait(f"document.readyState === 'complete' && {here}")

    def run(self, script: str) -> Any:
        """What an expression of JavaScript is, with promises awaited."""
        done = self._call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, condition: str) -> None:
        """Waits until an expression is true."""
        found = f"new Promise(ok => {{ (function look() {{ ({condition}) ? ok(true) : "
        self.run(f"{found} setTimeout(look, 20) }})() }})")

    def looks(self, width: int, *, dark: bool = False, media: str = "") -> None:
        """Sets the width of the window in pixels, the colour scheme, and print or screen."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def screenshot(self, path: Path) -> bytes:
        """Writes a picture of the whole page."""
        taken = self._call("Page.captureScreenshot", captureBeyondViewport=True)
        picture = base64.b64decode(taken["data"])
        path.write_bytes(picture)
        return picture

    def _call(self, method: str, **parameters: Any) -> Any:
        self._sent += 1
        message: dict[str, Any] = {"id": self._sent, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._connection.send(json.dumps(message))
        while True:
            answer = json.loads(self._connection.recv(_SECONDS))
            if answer.get("id") == self._sent:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer.get("method"), answer.get("params", {}))

    def _note(self, event: str | None, told: dict[str, Any]) -> None:
        match event:
            case "Runtime.exceptionThrown" | "Page.javascriptDialogOpening":
                self.complaints.append(json.dumps(told))
            case "Runtime.consoleAPICalled" if told["type"] in ("error", "warning", "assert"):
                self.complaints.append(json.dumps(told["args"]))
            case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"):
                self.complaints.append(told["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser of its own, with a directory for its files."""
    assert CHROMIUM is not None
    process = subprocess.Popen(
        [
            CHROMIUM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-dev-shm-usage",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
            "about:blank",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        address = next(line for line in process.stderr if "DevTools listening on" in line)
        with connect(address.split()[-1], max_size=None, proxy=None) as connection:
            yield Browser(connection)
    finally:
        process.kill()
        process.communicate()
