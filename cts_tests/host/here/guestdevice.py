#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A guest of the lab as the device of host-side tests, with a shell as adb has one.

Reads requests from its standard input and answers each with a line, all of them JSON:

{"host": "A" or "B"}             {}   a new device, whose policy has that host
{"shell": COMMAND, "uid": UID}   {"exit": CODE, "stdout": TEXT, "stderr": TEXT}
{"reboot": true}                 {}

It ends with its input, or after an answer {"error": TEXT}. The device has rmnet0, of a SIM whose
carrier wants DRWA, and wlan0, with the system of cts_tests/e2e. Networks come back when the system
server does.
"""

import json
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CTS_TESTS = HERE.parents[1]
sys.path += [str(CTS_TESTS.parent / "kernel" / "lab"), str(CTS_TESTS / "e2e")]

import drwasystem  # noqa: E402
from drwalab import guest, kernels  # noqa: E402

KERNEL_LINE = "6.12"
POLL_S = 0.005
# User builds have no "cmd drwa".
PROPERTIES = "ro.debuggable=1\n"
GUEST_FILES = ("shell.py", "networks.sh", "setprop.sh", "vendor.xml")

BEFORE_START = """\
for interface in rmnet0 wlan0; do
	ip link add $interface type dummy
	ip link set $interface up
done
"""
AFTER_START = """\
mkdir /run/phone
ln -s "$PWD/networks.sh" /run/phone/networks
ln -s "$PWD/setprop.sh" /run/phone/setprop
export PATH="/run/phone:$PATH"
networks
python3 shell.py
"""


class DeviceError(Exception):
    """The guest ended, or does not answer."""


class Device:
    """A guest that runs until it is closed, with what it keeps over a reboot."""

    def __init__(self, host: str) -> None:
        self._kernel = kernels.find(KERNEL_LINE, "drwa")
        self._files = [
            *drwasystem.files(drwasystem.Phone(host)),
            *(HERE / "guest" / name for name in GUEST_FILES),
        ]
        self._data = Path(tempfile.mkdtemp()) / "data"
        self._data.mkdir()
        (self._data / "properties").write_text(PROPERTIES)
        self._boot()

    def _boot(self) -> None:
        self._requests = 0
        self._folder: Path | None = None
        self._error: Exception | None = None
        self._guest = threading.Thread(target=self._run, daemon=True)
        self._guest.start()
        self._await("booted")

    def _run(self) -> None:
        try:
            folder = guest.run_inputs(
                "device",
                self._write,
                self._kernel,
                kernels.agent(),
                threading.Event(),
                lambda _: None,
                stall_s=guest.SCRIPT_STALL_S,
                memory=drwasystem.MEMORY,
            )
        except guest.GuestError as e:
            self._error = e
        else:
            shutil.copytree(folder / "data", self._data, dirs_exist_ok=True)
            shutil.rmtree(folder)

    def _write(self, folder: Path) -> None:
        for path in self._files:
            shutil.copy(path, folder)
        (folder / "script.sh").write_text(BEFORE_START + drwasystem.START + AFTER_START)
        shutil.copytree(self._data, folder / "data")
        self._folder = folder

    def _await(self, name: str) -> Path:
        """The file of the guest's folder, once it is there.

        Before that, the guest may wait for a CPU. One that is stuck is ended by the lab.
        """
        while self._guest.is_alive():
            if self._folder and (path := self._folder / name).exists():
                return path
            time.sleep(POLL_S)
        raise DeviceError(f"the guest ended: {self._error}")

    def _request(self, request: dict[str, Any]) -> None:
        assert self._folder
        new = self._folder / "new-request"
        new.write_text(json.dumps(request))
        new.rename(self._folder / f"request-{self._requests}")

    def shell(self, command: str, uid: int) -> dict[str, Any]:
        """Runs a command of sh; raises DeviceError when the guest does not answer."""
        self._request({"shell": command, "uid": uid})
        answer: dict[str, Any] = json.loads(self._await(f"answer-{self._requests}").read_text())
        self._requests += 1
        return answer

    def reboot(self) -> None:
        """Ends the guest and boots another one, which finds /data as it was left."""
        self._end()
        if self._error:
            raise DeviceError(str(self._error))
        self._boot()

    def _end(self) -> None:
        if self._guest.is_alive() and self._folder:
            self._request({})
        self._guest.join()

    def close(self) -> None:
        self._end()
        shutil.rmtree(self._data.parent)


def main() -> int:
    device: Device | None = None
    try:
        for line in sys.stdin:
            request = json.loads(line)
            answer = {}
            if "host" in request:
                if device:
                    device.close()
                device = Device(request["host"])
            elif device and "shell" in request:
                answer = device.shell(request["shell"], request["uid"])
            elif device:
                device.reboot()
            print(json.dumps(answer), flush=True)
    except (kernels.KernelMissing, drwasystem.BuildError, DeviceError) as e:
        print(json.dumps({"error": str(e)}), flush=True)
        return 1
    if device:
        device.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
