"""The live page in a real browser: the library's numbers, by mouse and by keyboard; hostile names stay text."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from oscar_causal.data.sequences import Dataset
from oscar_causal.density.folds import ModelSet
from oscar_causal.density.model import sequence_contexts
from oscar_causal.serve.guards import Access

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None and os.environ.get("OSCAR_REQUIRE_BROWSER") != "1",
        reason="no Chromium: `bash .ci/tools` brings it",
    ),
]
CAUSE = '<img src=x onerror="window.hacked=1">'
SENT = {"sequence_id": "<b>my car</b>", "events": ["A", CAUSE, "A", "</script><script>window.hacked=1</script>"]}
"""The second event is the strong cause of both labels."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    assert CHROMIUM is not None, "OSCAR_REQUIRE_BROWSER=1: expected chromium on the path, found none"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Any, running: Any) -> Iterator[Any]:
    """A page that must end without an error, a foreign request or a foreign name that became code."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(20_000)
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith((running.url, "data:")) else troubles.append(r.url))
    page.goto(running.url)
    yield page
    assert page.evaluate("window.hacked") is None
    context.close()
    assert troubles == []


def paste(page: Any, sequence: dict[str, Any]) -> None:
    page.get_by_text("Paste or upload a sequence").click()
    page.fill("#pasted", json.dumps(sequence))
    page.get_by_role("button", name="Use this sequence").click()
    page.wait_for_selector("#probabilities")


def shown(page: Any) -> dict[str, tuple[float, float]]:
    """label -> (before, after), in full precision."""
    read = "rows => rows.map(r => [r.dataset.label, Number(r.dataset.before), Number(r.dataset.after)])"
    rows = page.locator("#probabilities tbody tr").evaluate_all(read)
    return {label: (before, after) for label, before, after in rows}


def library(models: ModelSet, as_dataset: Callable[..., Dataset], sequence: dict[str, Any]) -> dict[str, float]:
    data = as_dataset({"labels": None, **sequence, "mileage": [float("nan")] * len(sequence["events"])})
    encoded = models.models[0].encode(data)
    every, length = torch.arange(len(models.vocabulary.labels)), torch.tensor([len(sequence["events"])])
    probs = models.models[0].label_probs(sequence_contexts(encoded, 0), every, length)[0, 0]
    return dict(zip(models.vocabulary.labels, probs.tolist(), strict=True))


def assert_numbers(page: Any, before: dict[str, float], after: dict[str, float]) -> None:
    found = shown(page)
    assert set(found) == set(before)
    np.testing.assert_allclose([found[k][0] for k in before], list(before.values()), atol=2e-6)
    np.testing.assert_allclose([found[k][1] for k in before], list(after.values()), atol=2e-6)


def told_by(page: Any, words: str) -> None:
    """Wait until the sentence says so."""
    page.locator("#sentences", has_text=words).wait_for()


def settle(page: Any, events: int) -> None:
    """Wait until the service has answered an edit."""
    page.wait_for_function(
        "n => document.querySelectorAll('.event-chip').length === n"
        " && document.querySelector('.strip').getAttribute('aria-busy') !== 'true'",
        arg=events,
    )


def test_what_if_by_keyboard_is_the_library(page: Any, models: ModelSet, as_dataset: Callable[..., Dataset]) -> None:
    paste(page, SENT)
    before = library(models, as_dataset, SENT)
    assert_numbers(page, before, before)
    page.locator(".event-chip").nth(0).click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Delete")
    settle(page, 3)
    cut = {**SENT, "events": [SENT["events"][k] for k in (0, 2, 3)], "times": [0.0, 2.0, 3.0]}
    after = library(models, as_dataset, cut)
    assert_numbers(page, before, after)
    assert all(after[label] < before[label] - 0.05 for label in before)
    told = page.inner_text("#sentences")
    assert told.startswith(f"Without {CAUSE} the probability of '")
    assert "falls from" in told
    page.keyboard.press("Alt+ArrowRight")  # the event after it, with its neighbour
    told_by(page, "exchanged")
    swapped = {**cut, "events": [cut["events"][k] for k in (0, 2, 1)]}
    assert_numbers(page, before, library(models, as_dataset, swapped))
    page.keyboard.press("Control+z")
    told_by(page, f"Without {CAUSE} the")
    page.keyboard.press("Control+z")
    settle(page, 4)
    assert_numbers(page, before, before)


def test_what_if_by_mouse(page: Any, models: ModelSet, as_dataset: Callable[..., Dataset]) -> None:
    """Drag out, drag onto another, replace and insert with the box."""
    paste(page, SENT)
    page.wait_for_selector(".explanation")
    before = library(models, as_dataset, SENT)
    events = list(SENT["events"])
    page.locator(".event-chip").nth(1).drag_to(page.locator(".event-chip").nth(0))
    told_by(page, "exchanged")
    events[0], events[1] = events[1], events[0]
    assert_numbers(page, before, library(models, as_dataset, {**SENT, "events": events}))
    page.locator(".event-chip").nth(0).drag_to(page.locator("h1"))
    settle(page, 3)
    kept = {**SENT, "events": events[1:], "times": [1.0, 2.0, 3.0]}
    assert_numbers(page, before, library(models, as_dataset, kept))
    page.locator(".event-chip").nth(0).click()
    page.fill("#other-event", CAUSE)
    page.get_by_role("button", name="Insert after").click()
    settle(page, 4)
    inserted = {"events": [events[1], CAUSE, *events[2:]], "times": [1.0, 1.5, 2.0, 3.0]}
    assert_numbers(page, before, library(models, as_dataset, {**SENT, **inserted}))
    page.get_by_role("button", name="Put in its place").click()
    told_by(page, "instead of")
    replaced = {**inserted, "events": [CAUSE, *inserted["events"][1:]]}
    assert_numbers(page, before, library(models, as_dataset, {**SENT, **replaced}))
    for left in (4, 3, 4, 4):
        page.get_by_role("button", name="Undo").click()
        settle(page, left)
    assert_numbers(page, before, before)


def test_the_boundary_changes_with_the_cause(page: Any, running: Any) -> None:
    paste(page, SENT)
    page.wait_for_selector(".explanation")
    page.locator(".event-chip").nth(1).click()
    page.get_by_role("button", name="Remove").click()
    settle(page, 3)
    page.get_by_role("button", name="Compare boundaries").click()
    page.wait_for_selector("#boundaries .card")
    with running.client() as client:
        body = {"sequence": SENT, "edits": [{"op": "remove", "positions": [1]}], "boundary": True}
        wanted = client.post("/what-if", json=body).json()["boundary"]
    cards = page.locator("#boundaries .card")
    assert [card.get_attribute("data-label") for card in cards.all()] == [item["label"] for item in wanted["before"]]
    for card, old, new in zip(cards.all(), wanted["before"], wanted["after"], strict=True):
        was, now = ({cause["event"] for cause in item["causes"]} for item in (old, new))
        states = card.locator("li[data-event]").evaluate_all(
            "rows => rows.map(r => [r.dataset.event, r.dataset.state])"
        )
        expected = {event: "stays" if event in was and event in now else "comes in" for event in now}
        expected |= {event: "drops out" for event in was - now}
        assert dict(states) == expected


def test_pick_from_the_dataset_and_watch_it_arrive(page: Any, running: Any, fleet: Dataset) -> None:
    page.wait_for_selector(".rows button")
    assert page.inner_text("#found") == "400 sequences"
    number = next(k for k in range(300, 400) if len(fleet.labels[k]) == 2)
    page.fill("#search", f"car {number}")
    page.locator("#found:text-is('1 sequence')").wait_for()
    page.locator(".rows button").click()
    page.wait_for_selector(".explanation")
    assert page.locator(".event-chip").all_inner_texts() is not None
    chips = [text.split("\n")[0] for text in page.locator(".event-chip bdi").all_inner_texts()]
    assert chips == fleet.events_of(number)
    with running.client() as client:
        sent = client.get("/sequences/one", params={"id": f"car {number}"}).json()
        found = client.post("/explain", json={"sequence": sent}).json()["boundaries"]
    assert page.locator(".chips .chip .name").all_inner_texts() == [item["label"] for item in found]
    accepted = {cause["event"] for cause in found[0]["causes"]}
    marked = {
        chips[k]
        for k in range(len(chips))
        if "cause" in (page.locator(".event-chip").nth(k).get_attribute("class") or "")
    }
    assert marked == accepted & set(chips)
    ways = page.locator(".explanation tbody tr td:nth-child(7)").all_inner_texts()
    assert [text.split()[0] for text in ways] == [cause["accepted_by"] for cause in found[0]["causes"]] != []


def test_an_uploaded_table(page: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text('event,time\n"A",10\n"</script><script>window.hacked=1</script>",11.5\n')
    page.get_by_text("Paste or upload a sequence").click()
    page.set_input_files("#file", tmp_path / "mine.csv")
    page.wait_for_selector("#probabilities")
    assert page.locator(".event-chip").count() == 2
    (tmp_path / "bad.csv").write_text("event,time\nA,zebra\n")
    page.set_input_files("#file", tmp_path / "bad.csv")
    page.locator(".trouble", has_text="row 1: expected a time in seconds, got “zebra”").wait_for()


def test_what_the_service_refuses_is_told(page: Any) -> None:
    page.get_by_text("Paste or upload a sequence").click()
    for text, line in (("[]", "events: expected a list of names"), ("{", "expected JSON"), ("", "empty text")):
        page.fill("#pasted", text)
        page.get_by_role("button", name="Use this sequence").click()
        assert line in page.inner_text(".trouble")


def test_a_phone_shows_everything_without_scrolling_sideways(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    paste(page, {**SENT, "events": [*SENT["events"], "x" * 200], "labels": ["common", "y" * 200]})
    page.wait_for_selector(".explanation")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="another sequence").click()
    assert page.locator("#search").is_visible()


def test_the_token_is_asked_for(browser: Any, start_service: Callable[..., AbstractContextManager[Any]]) -> None:
    with start_service(access=Access("127.0.0.1", "a token of enough letters")) as guarded:
        page = browser.new_page()
        page.goto(guarded.url)
        page.fill("#token", "wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=This is not the service's token")
        page.fill("#token", "a token of enough letters")
        page.keyboard.press("Enter")
        page.wait_for_selector(".rows button")
        assert page.locator("#token").count() == 0
        assert page.locator("text=This is not the service's token").count() == 0
        page.close()
