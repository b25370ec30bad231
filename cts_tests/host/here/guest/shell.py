# SPDX-License-Identifier: Apache-2.0
"""The shell in the guest: answers the commands that guestdevice.py puts into the shared folder."""

import json
import subprocess
import time
from itertools import count
from pathlib import Path

OUT = Path(__file__).resolve().parent
# Of virtual time, of which a waiting guest has plenty
POLL_S = 0.05


def serve() -> None:
    """Until a request has no command, with which the guest ends."""
    (OUT / "booted").touch()
    for number in count():
        path = OUT / f"request-{number}"
        while not path.exists():
            time.sleep(POLL_S)
        request = json.loads(path.read_text())
        if "shell" not in request:
            return
        # The lab takes a guest that is silent for stuck.
        print("shell", number, flush=True)
        done = subprocess.run(
            ["/bin/sh", "-c", request["shell"]],
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            user=request["uid"],
            group=request["uid"],
            extra_groups=[],
            check=False,
        )
        answer = {
            "exit": done.returncode,
            "stdout": done.stdout.decode(errors="replace"),
            "stderr": done.stderr.decode(errors="replace"),
        }
        new = OUT / "new"
        new.write_text(json.dumps(answer))
        new.rename(OUT / f"answer-{number}")


if __name__ == "__main__":
    serve()
