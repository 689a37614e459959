"""The command `oscar`: a table verb -> function. Each verb lives in a file of its own under `verbs/`."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any, NoReturn, cast

import typer

from oscar_causal import __version__
from oscar_causal.errors import OscarError, UsageError

VERBS = {
    "demo": "oscar_causal.verbs.demo",
    "synth": "oscar_causal.verbs.synth",
    "import": "oscar_causal.verbs.import_",
    "select": "oscar_causal.verbs.select",
    "inspect": "oscar_causal.verbs.inspect",
    "export": "oscar_causal.verbs.export",
    "train": "oscar_causal.verbs.train",
    "check": "oscar_causal.verbs.check",
    "discover": "oscar_causal.verbs.discover",
    "baseline": "oscar_causal.verbs.baseline",
    "explain": "oscar_causal.verbs.explain",
    "score": "oscar_causal.verbs.score",
}
"""In the order of the work; each module holds a function `run` whose signature is the verb's help."""

_PARSER_ERROR = cast(type[Exception], typer.BadParameter.__mro__[2])
"""What the option parser raises: click's ClickException, whether click is a package of its own or part of typer."""


def build_app() -> typer.Typer:
    """The command with every verb registered."""
    app = typer.Typer(
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help answers in half the time
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name, module in VERBS.items():
        app.command(name)(import_module(module).run)
    return app


def main() -> None:
    """Run the command; what the user can mend is one line on stderr and an exit code, never a stack trace."""
    # Threads that wait without spinning: beside other work a spinning one makes a run ten times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        code = build_app()(sys.argv[1:] or ["--help"], prog_name="oscar", standalone_mode=False)
    except OscarError as error:
        _leave(str(error), error.exit_code)
    except typer.Abort:
        _leave("stopped", 1)
    except _PARSER_ERROR as error:
        _leave(_usage_line(error), UsageError.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _leave(message: str, code: int) -> NoReturn:
    sys.stderr.write(f"oscar: {' '.join(message.splitlines())}\n")
    sys.exit(code)


def _usage_line(error: Any) -> str:
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "oscar"
    message = error.format_message().rstrip(".") or "expected a verb"
    return f"{message} (see {where} --help)"


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
