"""The fleet's pages in a real browser: rules beside an expert's, how labels hang together, what changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect

from oscar_causal.graph.rule_drift import RULE_DRIFT_SCHEMA
from oscar_causal.report.page import write_page
from oscar_causal.report.page_data import page_data
from oscar_causal.report.sources import open_sources

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None and os.environ.get("OSCAR_REQUIRE_BROWSER") != "1",
        reason="no Chromium: `bash .ci/tools` brings it",
    ),
]
VIEWS = {"rules": "Rules", "interplay": "Label graph", "changes": "Changes"}


@pytest.fixture(scope="module")
def file(place: Path, population: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "page.html"
    write_page(page_data(open_sources(place / "results"), population=population), out)
    return out


@pytest.fixture
def visit(open_page: Any, file: Path) -> Iterator[Any]:
    """A page that must have stayed silent and offline to the end."""
    visit = open_page(file)
    yield visit
    assert visit.complaints == []
    assert set(visit.asked) == {visit.url}
    visit.context.close()


def menu(page: Any, title: str) -> Any:
    return page.locator(".control", has=page.get_by_text(title, exact=True)).locator("select")


def test_the_views_are_there_only_with_a_population(open_page: Any, place: Path, visit: Any, tmp_path: Path) -> None:
    page = visit.go()
    for view, title in VIEWS.items():
        page.click(f"a[data-page={view}]")
        page.locator("main h2", has_text=title).wait_for()
    write_page(page_data(open_sources(place / "results")), tmp_path / "bare.html")
    bare = open_page(tmp_path / "bare.html")
    page = bare.go()
    assert page.locator("nav a").count() == 4
    for view in VIEWS:
        assert page.locator(f"a[data-page={view}]").count() == 0
    bare.context.close()


def test_hostile_names_are_text(visit: Any) -> None:
    for view in VIEWS:
        page = visit.go(f"#/{view}")
        for markup in ("main b > *", "main u", "main i", "main img", "main script"):
            assert page.locator(markup).count() == 0, (view, markup)
    texts = visit.go("#/rules").locator("main").inner_text()
    assert "<u>book</u>.json" in texts
    assert "⟨U+202E⟩right to left" in texts


def test_rule_cards_say_what_the_expert_and_the_data_say(visit: Any) -> None:
    page = visit.go("#/rules")
    cards = page.locator(".card")
    assert cards.count() == 3
    names = ("engine", "<b>brakes</b>", "right to left")
    engine, guess, none = (page.locator(".card", has=page.locator("h3", has_text=name)).inner_text() for name in names)
    assert "looser than the expert's" in engine
    assert "expert (until 2024-02-01): A & B" in engine
    assert "Your rule lacks" in engine
    assert "0.80 (" in engine
    assert "not stated, a best guess" in guess
    assert "Could as well be" in guess
    assert "3 against 2 sequences" in guess
    assert "no rule could be proposed" in none
    menu(page, "Show").select_option("differ")
    expect(cards).to_have_count(1)
    menu(page, "Show").select_option("guess")
    expect(cards).to_have_count(2)


def test_counter_examples_lead_to_their_sequences(visit: Any) -> None:
    page = visit.go("#/rules/engine")
    expect(page.locator(".card")).to_have_count(1)
    page.locator(".card summary").press("Enter")
    examples = page.locator(".examples")
    assert "gone" in examples.inner_text()  # explained elsewhere: named, not linked
    assert examples.locator("a").all_inner_texts() == ["car 3", "car 5"]
    examples.locator("a").first.click()
    expect(page.locator("main h2")).to_have_text("car 3")


def test_the_label_table_leads_to_the_card(visit: Any) -> None:
    page = visit.go("#/labels")
    link = page.locator(".proposal a", has_text="looser than in <u>book</u>.json")
    link.click()
    page.locator("main h2", has_text="Rules").wait_for()
    assert page.locator(".card").count() == 1


def test_the_label_graph_is_drawn_listed_and_explained(visit: Any) -> None:
    page = visit.go("#/interplay")
    page.wait_for_selector(".arcs .arc")
    assert page.locator(".arcs .arc").count() == 2  # independent ones are listed, not drawn
    assert page.locator("tbody tr").count() == 3
    style = "element => getComputedStyle(element).strokeDasharray"
    styles = [page.locator(f".arcs .{name}").evaluate(style)
              for name in ("still-dependent", "explained-by-their-boundaries")]  # fmt: skip
    assert styles[0] == "none" != styles[1]
    words = page.locator(".arcs .edge-group").first.get_attribute("aria-label")
    assert "still dependent, correlation +0.50, +0.30 with their boundaries held" in words
    first = page.locator("tbody tr").first.inner_text()
    assert "fall by 0.40 and 0.60" in first
    page.locator(".arcs .node", has_text="right to left").press("Enter")
    expect(page.locator(".arcs .arc")).to_have_count(1)
    assert menu(page, "Label").input_value() == "\u202eright to left"
    menu(page, "Label").select_option("")
    menu(page, "Verdict").select_option("independent")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert "No pair to draw" in page.locator("main").inner_text()
    assert page.evaluate("document.activeElement.tagName") == "SELECT"  # the menu keeps the focus


def test_changes_show_window_by_window(visit: Any) -> None:
    page = visit.go("#/changes")
    text = page.locator("main").inner_text()
    assert "1 of 1 rule fits differently" in text
    assert "1 of 2 pairs of label and event" in text
    assert "here: A & C" in text
    assert "stricter than that of all windows" in text
    assert page.locator(".window-dot").count() == 2
    assert page.locator(".window-dot.changed").count() == 1
    label = page.locator(".windows svg").get_attribute("aria-label")
    assert label == "2024-01-01: +0.40; 2024-02-01: +0.10, differs"


def test_a_part_that_changed_is_told_with_its_date_and_both_rules(
    open_page: Any, place: Path, population: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(population, tmp_path / "p")
    days = {name: datetime(2024, 1, day, tzinfo=UTC) for name, day in (("until", 7), ("from", 9), ("to", 30))}
    counts = {"decided": 35, "came": 0, "decided_elsewhere": 175, "came_elsewhere": 174}
    rules = {"rule": "A | <b>B</b> | C", "rule_here": "A | C", "rule_elsewhere": "A | <b>B</b>", "relation": "stricter"}
    rows = [
        {"label": "engine", **days, **counts, **rules, "part": part, "says": True, "q_value": 0.01, "changed": changed}
        for part, changed in (("<b>B</b>", True), ("A", False))
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=RULE_DRIFT_SCHEMA), folder / "rule_drift.parquet")
    write_page(page_data(open_sources(place / "results"), population=folder), tmp_path / "page.html")
    visit = open_page(tmp_path / "page.html")
    page = visit.go("#/changes")
    text = page.locator("article.part").inner_text()
    told = "alone decides, the label came in 174 of 175 sequences until 2024-01-07 and in 0 of 35 from 2024-01-09 on"
    assert f"Where <b>B</b> {told}" in text
    assert text.count("alone decides") == 1
    assert "before: A | <b>B</b>" in text
    assert "after: A | C" in text
    assert page.locator("article.part table").count() == 0  # no window was compared
    assert visit.complaints == []
    visit.context.close()


def test_the_test_on_observed_labels_is_in_the_table(visit: Any) -> None:
    page = visit.go("#/fleet")
    rows = page.locator("tbody tr").all_inner_texts()
    assert rows[0].split()[-1] == "0.002"
    assert "+0.30 to +0.50" in rows[0]
    assert "1 of 2 tested pairs hold up" in page.locator("main").inner_text()


def test_a_bare_population_says_what_was_not_asked_for(
    open_page: Any, place: Path, population: Path, tmp_path: Path
) -> None:
    (tmp_path / "p").mkdir()
    shutil.copy(population / "boundaries.parquet", tmp_path / "p")
    (tmp_path / "p" / "population.json").write_text('{"kind": "population", "format_version": 1}')
    write_page(page_data(open_sources(place / "results"), population=tmp_path / "p"), tmp_path / "page.html")
    visit = open_page(tmp_path / "page.html")
    for view, told in (("rules", "No rules were recovered"), ("interplay", "Nobody looked"), ("changes", "--window"),
                       ("fleet", "--world")):  # fmt: skip
        assert told in visit.go(f"#/{view}").locator("main .empty").inner_text()
    assert visit.complaints == []
    visit.context.close()


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_sticks_out_sideways(open_page: Any, file: Path, width: int) -> None:
    visit = open_page(file, viewport={"width": width, "height": 844})
    for view in VIEWS:
        page = visit.go(f"#/{view}")
        page.reload()
        page.wait_for_selector("main h2", state="attached")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
        current = page.locator(f"a[data-page={view}]")
        box = current.bounding_box()
        assert 0 <= box["x"] <= width - box["width"], view  # the bar of pages scrolls to the one that is shown
    visit.context.close()
