"""What notebooks show: counts that are right, names that cannot break out of their cell."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from oscar_causal.data.sequences import from_records
from oscar_causal.discovery.boundary import Boundary, EventEvidence


class Cells(HTMLParser):
    """The texts of a page and the tags it is made of."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


TAGS = {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}


def test_a_dataset_with_nasty_names(nasty: tuple[str, ...]) -> None:
    data = from_records(
        {"sequence_id": name, "events": [name] * 9, "times": [0] * 9, "labels": [name]} for name in nasty
    )
    page = Cells(data._repr_html_())
    assert page.tags <= TAGS
    assert (
        page.texts[0] == f"{len(nasty)} sequences, {9 * len(nasty)} events of {len(nasty)} types, {len(nasty)} labels"
    )
    assert page.texts[-1] == f"… and {len(nasty) - 8} more sequences"
    assert nasty[1] in page.texts


def test_a_boundary() -> None:
    evidence = (
        EventEvidence("weak", (3,), "inhibitor", -0.2, q_value=0.04),
        EventEvidence("<b>", (0, 2), "cause", 0.7, indicator=0.75, ci_low=0.5, ci_high=0.9, q_value=0.001),
        EventEvidence("other", (1,), "no effect", 0.0),
    )
    page = Cells(Boundary("car 1", "fault & co", True, 0.9, evidence, flags=("cut",))._repr_html_())
    assert page.texts[0] == "car 1: fault & co, P = 0.9"
    assert [text for text in page.texts if text in ("<b>", "weak", "other")] == ["<b>", "weak"]  # strongest first
    assert "0, 2" in page.texts
    assert page.texts[-1] == "cut"
    assert "b" not in page.tags
    scored = replace(evidence[0], verdict="cause", accepted_by="score")
    told = Cells(
        Boundary("car 1", "fault", True, 0.9, (scored, replace(evidence[1], accepted_by="test")))._repr_html_()
    )
    assert [text for text in told.texts if text in ("test", "score")] == ["test", "score"]
    assert told.texts[-1] == "1 accepted by score: no test has shown it"
    empty = Cells(Boundary("car 1", "fault", None, None, evidence[2:])._repr_html_())
    assert empty.texts[-1] == "none of 1 tested events was accepted"
