"""The page in a real browser: it asks for nothing, complains about nothing, and does what a reader wants."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from oscar_causal.discovery.boundary import Boundary
from oscar_causal.discovery.finalists import WORTH
from oscar_causal.discovery.intervention import FALL
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

HOSTILE_ID = '</script><img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def file(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "page.html"
    write_page(page_data(open_sources(place / "results")), out)
    return out


@pytest.fixture
def visit(open_page: Any, file: Path) -> Iterator[Any]:
    """A page that must have stayed silent and offline to the end."""
    visit = open_page(file)
    yield visit
    assert visit.complaints == []
    assert set(visit.asked) == {visit.url}
    visit.context.close()


def test_every_view_opens(visit: Any, found: list[Boundary]) -> None:
    page = visit.go()
    assert page.locator(".rows button").count() == 30
    for view, title in (("labels", "Labels"), ("fleet", "Fleet graph"), ("about", "About this page")):
        page.click(f"a[data-page={view}]")
        page.locator("main h2", has_text=title).wait_for()  # drawn when the address has changed, a moment later
        assert page.locator("main h2").inner_text() == title
        assert page.locator(f"a[data-page={view}]").get_attribute("aria-current") == "page"
    page.go_back()
    page.locator("main h2", has_text="Fleet graph").wait_for()


def test_hostile_names_are_text(visit: Any, found: list[Boundary]) -> None:
    page = visit.go()
    assert page.locator("main h2").inner_text() == HOSTILE_ID
    for view in ("sequences", "labels", "fleet", "about"):
        page.click(f"a[data-page={view}]")
        page.wait_for_selector(f"a[data-page={view}][aria-current=page]")
        for markup in ("img", "b > *", "u", "i", "main script"):
            assert page.locator(markup).count() == 0
    page.click("a[data-page=sequences]")
    page.wait_for_selector("a[data-page=sequences][aria-current=page]")
    texts = page.locator("main").inner_text()
    assert "<b>brakes</b>" in texts
    assert "⟨U+202E⟩right to left" in texts
    assert "\u202e" not in texts


def test_numbers_on_the_page_are_those_of_the_results(visit: Any, found: list[Boundary]) -> None:
    item = next(b for b in found if b.sequence_id == "car 3" and b.label == "engine")
    page = visit.go("#/sequences/car%203")
    rows = page.locator(".explanation table tbody tr")
    assert rows.count() == len(item.causes) > 1
    for row, cause in zip(rows.all(), item.causes, strict=True):
        sign = "+" if cause.indicator > 0 else "−"  # type: ignore[operator]
        assert row.locator(".effect-cell b").inner_text() == f"{sign}{abs(cause.indicator):.2f}"  # type: ignore[arg-type]
        assert row.locator(".symbol").inner_text() == ("▲" if cause.verdict == "cause" else "▽")
        assert "0.003" in row.inner_text()
    assert page.locator(".timeline .dot").count() == sum(len(cause.positions) for cause in item.causes)
    solid, dashed = page.locator(".graph .edge.cause"), page.locator(".graph .edge.inhibitor")
    style = "element => getComputedStyle(element).strokeDasharray"
    assert solid.first.evaluate(style) == "none"
    assert dashed.first.evaluate(style) != "none"


def test_graph_has_an_edge_for_every_accepted_event(visit: Any, found: list[Boundary]) -> None:
    items = [b for b in found if b.sequence_id == "car 2"]
    page = visit.go("#/sequences/car%202")
    page.wait_for_selector(".graph .edge")
    assert page.locator(".chip").count() == len(items) == 3
    assert page.locator(".graph .edge").count() == sum(len(item.causes) for item in items)
    boxes = [box.bounding_box() for box in page.locator(".graph .value").all()]
    for k, one in enumerate(boxes):
        for two in boxes[:k]:
            assert abs(one["y"] - two["y"]) >= 10 or abs(one["x"] - two["x"]) >= 40
    page.locator(".graph .node.label").nth(1).press("Enter")
    assert page.locator(".chip[aria-pressed=true]").count() == 1


def test_search_finds_ids_labels_and_events(visit: Any, found: list[Boundary]) -> None:
    page = visit.go()
    for text, hits in (
        ("car 1", {b.sequence_id for b in found if "car 1" in b.sequence_id}),
        ("BRAKES", {b.sequence_id for b in found if "brakes" in b.label}),
        ("emoji", {b.sequence_id for b in found if any("emoji" in e.event for e in b.causes)}),
        ("brakes car", {b.sequence_id for b in found if "brakes" in b.label and "car" in b.sequence_id}),
        ("no such thing", set()),
    ):
        page.fill("#search", text)
        assert page.locator(".rows button").count() == len(hits)
        assert page.locator("#found").inner_text().startswith(f"{len(hits)} of 30")


def test_all_by_keyboard(visit: Any, found: list[Boundary]) -> None:
    page = visit.go()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#search")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("main h2")).to_have_text("car 1")
    assert page.evaluate("document.activeElement.tagName") == "H2"
    slider = page.locator("[role=slider]")
    slider.focus()
    item = next(b for b in found if b.sequence_id == "car 1" and b.label == "engine")
    positions = sorted({p for cause in item.causes for p in cause.positions})
    for position in positions[:3]:
        page.keyboard.press("PageDown")
        assert slider.get_attribute("aria-valuenow") == str(position + 1)
    page.keyboard.press("End")
    assert slider.get_attribute("aria-valuenow") == slider.get_attribute("aria-valuemax") == "150"
    assert "150" in str(slider.get_attribute("aria-valuetext"))
    page.keyboard.press("Escape")
    assert slider.get_attribute("aria-valuetext") == "no event chosen"


def test_tables_sort(visit: Any) -> None:
    page = visit.go("#/labels")
    head = page.locator("th", has_text="Label").first
    head.locator("button").click()
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    names = page.locator("tbody tr td:first-child .name.label").all_inner_texts()
    assert names == sorted(names)


def test_the_timeline_names_without_overlap(visit: Any, found: list[Boundary]) -> None:
    """Twelve accepted types at many places of 150 events: some are named, no name stands on another."""
    page = visit.go("#/sequences/car%201")
    page.wait_for_selector(".timeline .pin")
    boxes = [box.bounding_box() for box in page.locator(".timeline .pin").all()]
    assert len(boxes) >= 4
    for k, one in enumerate(boxes):
        for two in boxes[:k]:
            apart = one["x"] + one["width"] <= two["x"] or two["x"] + two["width"] <= one["x"]
            assert apart or abs(one["y"] - two["y"]) >= 15


def test_fleet_filters(visit: Any, found: list[Boundary]) -> None:
    page = visit.go("#/fleet")
    page.wait_for_selector(".graph .edge")
    assert page.locator(".graph .edge").count() == 30

    def choose(title: str) -> Any:
        return page.locator(".control", has=page.get_by_text(title, exact=True)).locator("select")

    choose("Edges").select_option("300")
    pairs = {(e.event, b.label) for b in found for e in b.causes}
    expect(page.locator(".graph .edge")).to_have_count(len(pairs))
    choose("Label").select_option("engine")
    engine = {event for event, label in pairs if label == "engine"}
    expect(page.locator(".graph .edge")).to_have_count(len(engine))
    choose("Sign").select_option("inhibitor")
    expect(page.locator(".graph .edge.cause")).to_have_count(0)


def test_dark_follows_the_system_and_the_button(open_page: Any, file: Path) -> None:
    grounds = {}
    for scheme in ("light", "dark"):
        visit = open_page(file, color_scheme=scheme)
        page = visit.go()
        ground = "() => getComputedStyle(document.body).backgroundColor"
        grounds[scheme] = page.evaluate(ground)
        page.click(".theme")
        grounds[f"turned {scheme}"] = page.evaluate(ground)
        visit.context.close()
    assert grounds["light"] == grounds["turned dark"] != grounds["dark"] == grounds["turned light"]


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_sticks_out_sideways(open_page: Any, file: Path, width: int) -> None:
    visit = open_page(file, viewport={"width": width, "height": 844})
    for fragment in ("", "#/sequences/car%201", "#/labels", "#/fleet", "#/about"):
        page = visit.go(fragment)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, fragment
    visit.context.close()


def test_on_a_phone_list_and_detail_take_turns(open_page: Any, file: Path) -> None:
    visit = open_page(file, viewport={"width": 390, "height": 844})
    page = visit.go()
    assert page.locator(".list").is_visible()
    assert not page.locator(".detail").is_visible()
    page.locator(".rows button").nth(4).click()
    page.wait_for_selector(".detail h2")
    assert not page.locator(".list").is_visible()
    page.click(".back")
    page.wait_for_selector(".list", state="visible")
    visit.context.close()


def test_without_dataset_and_model_the_page_says_so(open_page: Any, moved: Path, tmp_path: Path) -> None:
    write_page(page_data(open_sources(moved)), tmp_path / "bare.html")
    visit = open_page(tmp_path / "bare.html")
    page = visit.go()
    assert "No timeline and no curves" in page.locator("main").inner_text()
    page.click(".missing")
    assert "--dataset" in page.locator(".notice").inner_text()
    assert visit.complaints == []
    visit.context.close()


def test_an_injected_script_would_not_run(open_page: Any, file: Path, tmp_path: Path) -> None:
    """The policy is what stops it: the same line runs once the policy is gone."""
    text = file.read_text(encoding="utf-8").replace("<noscript>", "<script>document.title='got in'</script><noscript>")
    open_door = text.replace('http-equiv="Content-Security-Policy"', 'name="nothing"')
    for name, content, expected in (("shut", text, False), ("open", open_door, True)):
        (tmp_path / f"{name}.html").write_text(content, encoding="utf-8")
        visit = open_page(tmp_path / f"{name}.html")
        assert (visit.go().title() == "got in") is expected
        assert bool(visit.complaints) is not expected
        visit.context.close()


@pytest.mark.parametrize(
    ("estimator", "says", "never"),
    [
        ("intervention", "the model's probability of", "forecast of"),
        ("prefix", "the forecast of", "variants"),
        ("iamb", "speaks for", "model's"),
    ],
)
def test_words_fit_the_method(
    open_page: Any, place: Path, tmp_path: Path, estimator: str, says: str, never: str
) -> None:
    """What may be said about a number depends on how it came about."""
    shutil.copytree(place / "results", tmp_path / "results")
    run = tmp_path / "results" / "run.json"
    (tmp_path / "results" / "checksums.json").unlink()
    run.write_text(run.read_text().replace('"estimator": "intervention"', f'"estimator": "{estimator}"'))
    write_page(page_data(open_sources(tmp_path / "results")), tmp_path / "page.html")
    visit = open_page(tmp_path / "page.html")
    words = visit.go("#/sequences/car%203").locator(".words").inner_text()
    assert says in words
    assert never not in words
    assert ("q = 0.003" in words) == (estimator == "intervention")
    visit.context.close()


def test_what_was_accepted_by_score_is_marked_everywhere(
    open_page: Any, scored: tuple[Path, list[Boundary]], tmp_path: Path
) -> None:
    folder, boundaries = scored
    item = next(b for b in boundaries if b.sequence_id == "car 3" and b.label == "engine")
    (event,) = item.by_score
    write_page(page_data(open_sources(folder)), tmp_path / "page.html")
    visit = open_page(tmp_path / "page.html")
    page = visit.go("#/sequences/car%203")
    assert f"{len(item.causes) - sum(e.verdict == 'inhibitor' for e in item.causes)} raise it" in (
        lead := page.locator(".lead").inner_text()
    )
    assert "; 1 of them by score, no test has shown it." in lead
    ways = page.locator(".explanation tbody tr td:nth-child(7)").all_inner_texts()
    assert ways == ["score share\u00a00.62" if e is event else "test" for e in item.causes]
    symbols = page.locator(".explanation tbody .symbol").all_inner_texts()
    assert symbols == ["△" if e is event else "▲" if e.verdict == "cause" else "▽" for e in item.causes]
    assert "△ cause accepted by score: no test has shown it" in page.locator(".legend").inner_text()
    words = page.locator(".words li").all_inner_texts()
    scores = [k for k, text in enumerate(words) if "Accepted by score (0.62 of the strongest event's pull)" in text]
    assert scores == [item.causes.index(event)]
    closing = page.locator(".words .about").inner_text()
    assert "q = 0.003" in closing  # and not the 0.25 of the one that no test has shown
    assert "It says nothing about what was accepted by score." in closing
    page.locator("[role=slider]").focus()
    for _ in range(event.positions[0] + 1):
        page.keyboard.press("ArrowRight")
    assert page.locator(".readout").inner_text().endswith("q = 0.250, accepted by score")
    dotted = page.locator(".graph .edge.by-score").count()
    assert dotted == sum(len(b.by_score) for b in boundaries if b.sequence_id == "car 3")
    page.click("a[data-page=about]")
    page.locator("main h2", has_text="About this page").wait_for()
    reading = page.locator(".reading").inner_text()
    assert f"at least {WORTH} of the strongest event's pull" in reading
    assert f"by at least {FALL:.0%}".replace("%", " %") in reading
    assert visit.complaints == []
    visit.context.close()


def test_folders_that_do_not_say_have_no_such_words(visit: Any) -> None:
    page = visit.go("#/sequences/car%203")
    assert "score" not in page.locator("main").inner_text()
    assert "Accepted by" not in page.locator("main").inner_text()
