"""The command `oscar`: a table verb -> function. Each verb lives in a file of its own under `verbs/`."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated

import typer

from oscar_causal import __version__
from oscar_causal.errors import OscarError

VERBS = {
    "synth": "oscar_causal.verbs.synth",
    "import": "oscar_causal.verbs.import_",
    "select": "oscar_causal.verbs.select",
    "inspect": "oscar_causal.verbs.inspect",
}
"""In the order of the work; each module holds a function `run` whose signature is the verb's help."""


def build_app() -> typer.Typer:
    """The command with every verb registered."""
    app = typer.Typer(
        no_args_is_help=True, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
    )
    app.callback()(_root)
    for name, module in VERBS.items():
        app.command(name)(import_module(module).run)
    return app


def main() -> None:
    """Run the command; what the user can mend is one line on stderr and an exit code, never a stack trace."""
    try:
        build_app()(prog_name="oscar")
    except OscarError as error:
        line = " ".join(str(error).splitlines())
        sys.stderr.write(f"oscar: {line}\n")
        sys.exit(error.exit_code)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"oscar {__version__}\n")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Which events caused each outcome in this very sequence, how strongly, in which direction, and how sure are we?"""
