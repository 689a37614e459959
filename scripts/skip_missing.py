"""A plugin for pytest: a test that asks for a package which is not installed is skipped; any other error stays one."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from oscar_causal.errors import MissingExtra


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """While fixtures are made."""
    yield from _skipping()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """While the test runs."""
    yield from _skipping()


def _skipping() -> Iterator[None]:
    try:
        yield
    except (MissingExtra, ModuleNotFoundError) as error:
        cause = error if isinstance(error, ModuleNotFoundError) else error.__cause__
        name = getattr(cause, "name", None) or "oscar_causal"
        if find_spec(name.partition(".")[0]) is not None:
            raise
        pytest.skip(f"needs {name}")
