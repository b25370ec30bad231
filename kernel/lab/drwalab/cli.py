# SPDX-License-Identifier: GPL-2.0-only
import typer

from drwalab.kernels import kernel_app

app = typer.Typer(no_args_is_help=True)
app.add_typer(kernel_app, name="kernel")


@app.callback()
def main() -> None:
    """The DRWA network lab."""
