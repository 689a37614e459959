"""The command `oscar`: a table verb -> function. Each verb lives in a file of its own under `verbs/`."""

from __future__ import annotations

import inspect
import os
import resource
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, NoReturn, cast, get_type_hints

import typer

from oscar_causal import __version__
from oscar_causal.errors import FolderError, OscarError, UsageError
from oscar_causal.signals import interruptible
from oscar_causal.verbs.output import VOLUME, Quiet, Verbose, folder_notes

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
    "Exit codes: 0 done; 1 a defect; 2 an option that cannot be; 3 bad content of a file; 4 a folder "
    "that is damaged, foreign, newer, or cannot be written; 5 an optional package is missing; 6 not enough memory; "
    "130 stopped by Ctrl-C; 143 by SIGTERM."
)
NO_MEMORY = 6
LONGEST_LINE = 500
"""Characters of an error line; of a longer one the middle is left out."""
_MEMORY_WORDS = (
    "allocate memory",  # torch on a CPU, and the C library (ENOMEM)
    "out of memory",  # CUDA
    "failed to map segment",  # a shared library that finds no room
    "bad_alloc",
    "can't start new thread",  # no room for its stack
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
        with interruptible(resumable="resume" in given):
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
    """Run the command; what the user can mend is one line on stderr and an exit code, never a stack trace.

    A defect of the program keeps its stack trace: it is what a report of it needs.
    """
    # Threads that wait without spinning: beside other work a spinning one makes a run ten times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        # Arrow's own allocator sets a GB aside; under a limit (ulimit -v) that is missing elsewhere.
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    VOLUME.verbose = VOLUME.quiet = False
    try:
        with folder_notes():
            code = build_app()(sys.argv[1:] or ["--help"], prog_name="oscar", standalone_mode=False)
    except (OscarError, MemoryError, OSError, ImportError, RuntimeError) as error:
        _explain(error)
    except typer.Abort:
        _leave("stopped", 130)
    except _PARSER_ERROR as error:
        _leave(_usage_line(error), UsageError.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Exception) -> NoReturn:
    """Leave with one line; an error that neither the user nor the machine is to blame for is raised again."""
    short = _memory_error(error)
    if short is None and not isinstance(error, OscarError | OSError):
        raise error
    if VOLUME.verbose:
        traceback.print_exc()
    if short is not None:
        reason = str(short) or type(short).__name__
        _leave(f"not enough memory; free some, lift the limit, or give it less to do at once: {reason}", NO_MEMORY)
    if isinstance(error, OscarError):
        _leave(str(error), error.exit_code)
    _leave(f"{getattr(error, 'filename', None) or 'a file'}: {_reason(error)}", FolderError.exit_code)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _memory_error(error: BaseException | None) -> BaseException | None:
    """The lack of memory behind an error, if there is one: a reader that met it may have blamed its file."""
    while error is not None:
        if isinstance(error, MemoryError):
            return error
        if isinstance(error, OSError | ImportError | RuntimeError) and any(w in str(error) for w in _MEMORY_WORDS):
            return error
        error = error.__cause__ or error.__context__
    return None


def _leave(message: str, code: int) -> NoReturn:
    sys.stderr.write(f"oscar: {_one_line(message)}\n")
    sys.exit(code)


def _one_line(text: str) -> str:
    """Printable, on one line and not too long, whatever names and bytes of files are in it."""
    text = _cut(" ".join(text.splitlines()))
    return _cut("".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text))


def _cut(text: str) -> str:
    end = LONGEST_LINE // 4
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - end - 3]} … {text[-end:]}"


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
