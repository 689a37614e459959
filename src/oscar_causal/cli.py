"""The command `oscar`: a table verb -> function. Each verb lives in a file of its own under `verbs/`."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, NoReturn, cast, get_type_hints

import typer

from oscar_causal import __version__
from oscar_causal.errors import OscarError, UsageError
from oscar_causal.verbs.output import VOLUME, Quiet, Verbose

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
    "explain-run": "oscar_causal.verbs.explain_run",
    "population": "oscar_causal.verbs.population",
    "score": "oscar_causal.verbs.score",
    "bench": "oscar_causal.verbs.bench",
    "graph": "oscar_causal.verbs.graph",
    "report": "oscar_causal.verbs.report",
    "serve": "oscar_causal.verbs.serve",
    "doctor": "oscar_causal.verbs.doctor",
}
"""In the order of the work; each module holds a function `run` whose signature is the verb's help."""

EXIT_CODES = (
    "Exit codes: 0 done; 1 interrupted, or a defect; 2 an option that cannot be; 3 bad content of a file; 4 a folder "
    "that is damaged, foreign, newer, or cannot be written; 5 an optional package is missing."
)

_PARSER_ERROR = cast(type[Exception], typer.BadParameter.__mro__[2])
"""What the option parser raises: click's ClickException, whether click is a package of its own or part of typer."""


def build_app() -> typer.Typer:
    """The command with every verb registered."""
    app = typer.Typer(
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help answers in half the time
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=EXIT_CODES,
    )
    app.callback()(_root)
    for name, module in VERBS.items():
        app.command(name)(_with_volume(import_module(module).run))
    return app


def _with_volume(run: Callable[..., None]) -> Callable[..., None]:
    """The verb with the options -v and -q, which every verb has."""

    @wraps(run)
    def heard(*args: Any, verbose: bool, quiet: bool, **given: Any) -> None:
        VOLUME.change(verbose=verbose, quiet=quiet)
        run(*args, **given)

    hints = {**get_type_hints(run, include_extras=True), "verbose": Verbose, "quiet": Quiet}
    own = [part.replace(annotation=hints[name]) for name, part in inspect.signature(run).parameters.items()]
    last = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=hints[name])
        for name in ("verbose", "quiet")
    ]
    heard.__annotations__ = hints
    heard.__signature__ = inspect.Signature([*own, *last])  # type: ignore[attr-defined]
    return heard


def main() -> None:
    """Run the command; what the user can mend is one line on stderr and an exit code, never a stack trace."""
    # Threads that wait without spinning: beside other work a spinning one makes a run ten times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    VOLUME.verbose = VOLUME.quiet = False
    try:
        code = build_app()(sys.argv[1:] or ["--help"], prog_name="oscar", standalone_mode=False)
    except OscarError as error:
        if VOLUME.verbose:
            traceback.print_exc()
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
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Which events caused each outcome in this very sequence, how strongly, in which direction, and how sure are we?"""
    VOLUME.change(verbose=verbose, quiet=quiet)
