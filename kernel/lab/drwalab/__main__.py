# SPDX-License-Identifier: GPL-2.0-only
from drwalab.cli import main

main()
