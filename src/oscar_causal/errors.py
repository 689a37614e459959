"""The few exceptions users catch. Every message says what was expected, what came, and where.

The command line turns each into one line on stderr and the exit code beside the class.
"""


class OscarError(Exception):
    """Something the user can mend, told in one line. Never raised for a defect of the program itself.

    >>> try:
    ...     raise UsageError("alpha: expected between 0 and 1, got 3")
    ... except OscarError as error:
    ...     print(error, error.exit_code)
    alpha: expected between 0 and 1, got 3 2
    """

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        """Line breaks become blanks: names of files, columns and types go into messages as they are."""
        super().__init__(" ".join(message.splitlines()))


class UsageError(OscarError):
    """An option or argument that cannot be (alpha = 3, an unknown label, an output that exists).

    >>> from oscar_causal import InterventionConfig
    >>> InterventionConfig(alpha=3)
    Traceback (most recent call last):
    oscar_causal.errors.UsageError: alpha: expected 0.0005 up to 1 (smaller ones cannot be told), got 3
    """

    exit_code = 2


class DataError(OscarError):
    """Bad content of a file: a missing column, a time that is no number, the same id twice.

    >>> from oscar_causal import from_records
    >>> from_records([])
    Traceback (most recent call last):
    oscar_causal.errors.DataError: sequences: expected at least one sequence, got none
    """

    exit_code = 3


class FolderError(OscarError):
    """A dataset, model or results folder that is damaged, foreign, newer than this program, or in the way.

    >>> from oscar_causal import read_dataset
    >>> read_dataset("nowhere")
    Traceback (most recent call last):
    oscar_causal.errors.FolderError: nowhere: expected a dataset folder, which holds dataset.json, found none
    """

    exit_code = 4


class MissingExtra(OscarError):
    """A feature needs an optional package that is not installed.

    >>> from oscar_causal.data.extras import load_extra
    >>> load_extra("no_such_module", "flying")
    Traceback (most recent call last):
    oscar_causal.errors.MissingExtra: flying needs the package no_such_module: pip install no_such_module
    """

    exit_code = 5
