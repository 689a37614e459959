"""The few exceptions users catch. Every message says what was expected, what came, and where.

The command line turns each into one line on stderr and the exit code beside the class.
"""


class OscarError(Exception):
    """Something the user can mend. Never raised for a defect of the program itself."""

    exit_code = 1


class UsageError(OscarError):
    """An option or argument that cannot be (alpha = 3, an unknown label, an output that exists)."""

    exit_code = 2


class DataError(OscarError):
    """Bad content of a file: a missing column, a time that is no number, the same id twice."""

    exit_code = 3


class FolderError(OscarError):
    """A dataset, model or results folder that is damaged, foreign, newer than this program, or in the way."""

    exit_code = 4


class MissingExtra(OscarError):
    """A feature needs an optional package that is not installed."""

    exit_code = 5
