# SPDX-License-Identifier: GPL-2.0-only
"""How a command ends when it cannot go on: one message, and an exit code."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from drwalab.compare import ResultError
from drwalab.extras import ExtraError
from drwalab.guest import GuestError
from drwalab.kernels import KernelError
from drwalab.quicstacks import StackError
from drwalab.sources import SourceError
from drwalab.spec import SpecError
from drwalab.traces import TraceError


def fail(message: str, code: int = 2) -> NoReturn:
    print(f"lab: {message}", file=sys.stderr)
    raise typer.Exit(code)


@contextmanager
def reported() -> Iterator[None]:
    """Turns what can go wrong into one message and an exit code: 2 before a guest boots, else 1."""
    try:
        yield
    except (
        SpecError,
        KernelError,
        SourceError,
        StackError,
        TraceError,
        ResultError,
        ExtraError,
    ) as error:
        fail(str(error))
    except GuestError as error:
        fail(str(error), 1)
