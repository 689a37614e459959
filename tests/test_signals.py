"""A signal ends a verb whatever libraries do with exceptions, and lets it tidy up. Whole commands: `tests/faults`."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from oscar_causal.signals import Interrupted, interruptible

BEGIN = """
import sys, time
from oscar_causal.signals import Interrupted, end_on_signals, interruptible
end_on_signals()
"""
STUBBORN = """
try:
    with interruptible(resumable=True):
        try:
            print("ready", flush=True)
            time.sleep(60)
        except BaseException:
            pass
        try:
            print("swallowed", flush=True)
            time.sleep(60)
        finally:
            time.sleep(1.2)  # longer than it takes to be told again
            print("tidied up", flush=True)
except Interrupted as error:
    print(error)
    sys.exit(error.exit_code)
"""


def child(code: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", BEGIN + code], stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("again", [False, True])
def test_a_swallowed_signal_is_raised_again_and_tidying_up_is_left_alone(again: bool) -> None:
    process = child(STUBBORN)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "swallowed\n"
    if again:  # a second one is no more than the first
        process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    way_on = "the same command with --resume goes on from what was kept"
    assert out == f"tidied up\nstopped by SIGTERM; {way_on}\n"
    assert process.returncode == 143


def test_what_is_ignored_stays_so() -> None:
    code = "import signal; print(signal.getsignal(signal.SIGINT).name, signal.getsignal(signal.SIGTERM).__name__)"
    process = child(code, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert process.communicate(timeout=30)[0] == "SIG_IGN _end\n"


def test_without_handlers_ctrl_c_is_told_and_other_errors_pass() -> None:
    with pytest.raises(Interrupted, match="stopped by Ctrl-C$") as error, interruptible(resumable=False):
        raise KeyboardInterrupt
    assert error.value.exit_code == 130
    with pytest.raises(ValueError, match="no"), interruptible(resumable=False):
        raise ValueError("no")
