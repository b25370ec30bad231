# SPDX-License-Identifier: GPL-2.0-only
"""Debian's Chromium without a screen, driven by chromedriver's HTTP interface (W3C WebDriver)."""

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

PACKAGES = "chromium chromium-driver"


def missing() -> str:
    """Why there is no browser here; empty where there is one."""
    there = all(shutil.which(name) for name in ("chromium", "chromedriver"))
    return "" if there else f"no Chromium: apt-get install {PACKAGES}"


# Of tests that cannot do without; `make test` installs it.
needed = pytest.mark.skipif(bool(missing()), reason=missing())


class Browser:
    """A window of this size in CSS pixels; below 600 of width it is a phone's."""

    def __init__(self, width: int, height: int) -> None:
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options: dict[str, Any] = {"args": [*arguments, f"--window-size={width},{height}"]}
        if width < 600:
            metrics = {"width": width, "height": height, "pixelRatio": 2, "touch": True}
            options["mobileEmulation"] = {"deviceMetrics": metrics}
        self._capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
        }

    def __enter__(self) -> "Browser":
        self._driver = subprocess.Popen(
            ["chromedriver", "--port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._driver.stdout
        for line in self._driver.stdout:
            if "started successfully on port" in line:
                self._root = f"http://127.0.0.1:{line.split()[-1].rstrip('.')}"
                break
        wanted = {"capabilities": {"alwaysMatch": self._capabilities}}
        self._session = f"/session/{self._ask('POST', '/session', wanted)['sessionId']}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._ask("DELETE", self._session)
        finally:
            self._driver.terminate()
            self._driver.wait()

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._root + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            return json.load(answer)["value"]

    def open(self, path: Path) -> None:
        self._ask("POST", f"{self._session}/url", {"url": path.absolute().as_uri()})

    def run(self, script: str) -> Any:
        """What a script in the page returns."""
        body = {"script": script, "args": []}
        return self._ask("POST", f"{self._session}/execute/sync", body)

    def wait(self, script: str) -> None:
        """Until a script in the page returns something that is true; half a minute at most."""
        end = time.monotonic() + 30
        while not self.run(script):
            assert time.monotonic() < end, script
            time.sleep(0.05)

    def prefer(self, scheme: str, media: str = "screen") -> None:
        """The user's scheme of colours, "light" or "dark", on a "screen" or in "print"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        params = {"media": media, "features": features}
        body = {"cmd": "Emulation.setEmulatedMedia", "params": params}
        self._ask("POST", f"{self._session}/goog/cdp/execute", body)

    def printed(self) -> bytes:
        """The page on paper, as PDF."""
        return base64.b64decode(self._ask("POST", f"{self._session}/print", {"background": False}))

    def complaints(self) -> list[str]:
        """What the console had to say since the last call."""
        entries = self._ask("POST", f"{self._session}/se/log", {"type": "browser"})
        return [f"{entry['level']}: {entry['message']}" for entry in entries]

    def picture(self, path: Path) -> None:
        """Write what the window shows, as PNG."""
        path.write_bytes(base64.b64decode(self._ask("GET", f"{self._session}/screenshot")))
