# SPDX-License-Identifier: GPL-2.0-only
from drwalab.cli import app

app(prog_name="lab")
