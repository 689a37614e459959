"""The file: its policy lets exactly its own script and styles run, its data comes back, and it asks for nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from oscar_causal.report.page import bundled, embedded, page_html, write_page
from oscar_causal.report.page_data import page_data
from oscar_causal.report.sources import open_sources

ROOT = Path(__file__).resolve().parents[2]


class Reader(HTMLParser):
    """Collects elements as a browser's parser would."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None], str]] = []
        self._open = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), ""))
        self._open = True

    def handle_endtag(self, tag: str) -> None:
        self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            tag, attributes, text = self.elements[-1]
            self.elements[-1] = (tag, attributes, text + data)

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for name, attributes, text in self.elements if name == tag]


@pytest.fixture(scope="module")
def data(place: Path) -> dict[str, Any]:
    return page_data(open_sources(place / "results"))


@pytest.fixture(scope="module")
def page(data: dict[str, Any]) -> Reader:
    return Reader(page_html(data))


def test_nasty_names_open_no_element(page: Reader) -> None:
    tags = [tag for tag, _, _ in page.elements]
    expected = ["html", "head", "meta", "meta", "meta", "meta", "title", "style", "body", "noscript"]
    assert tags == [*expected, "script", "script", "script"]


def test_the_data_comes_back(page: Reader, data: dict[str, Any]) -> None:
    texts = {attributes.get("id"): text for attributes, text in page.all("script")}
    assert json.loads(texts["data"]) == data


def test_the_policy_names_the_only_script_and_style(page: Reader) -> None:
    policy = next(a["content"] for a, _ in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    parts = dict(part.split(" ", 1) for part in policy.split("; "))
    runs = [text for attributes, text in page.all("script") if "type" not in attributes]
    [style] = [text for _, text in page.all("style")]
    assert len(runs) == 1
    for name, text in (("script-src", runs[0]), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert parts[name] == f"'sha256-{digest}'"
    assert parts["default-src"] == "'none'"
    assert "unsafe" not in policy


def test_no_attribute_runs_code_or_fetches(page: Reader) -> None:
    for _, attributes, _ in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "href", "style")]


def test_the_same_results_give_the_same_bytes(place: Path, data: dict[str, Any], tmp_path: Path) -> None:
    again = page_data(open_sources(place / "results"))
    assert page_html(again) == page_html(data)
    size = write_page(data, tmp_path / "a.html")
    assert (tmp_path / "a.html").stat().st_size == size


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "\u2028\u2029", "&amp;", "\x00", "𝄞"])
def test_embedded_json_is_json_and_no_markup(text: str) -> None:
    held = embedded({text: [text]})
    assert "<" not in held
    assert json.loads(held) == {text: [text]}


def test_the_bundle_carries_the_licences_of_what_it_bundles() -> None:
    notices = bundled("NOTICES.txt")
    wanted = json.loads((ROOT / "web" / "package.json").read_text())["dependencies"]
    for name, version in wanted.items():
        assert f"{name} {version} (" in notices
    assert notices.count("Copyright") >= len(wanted)


def test_the_sources_write_no_markup() -> None:
    for file in (ROOT / "web" / "src").rglob("*.ts"):
        found = re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(", file.read_text())
        assert not found or file.parent.name == "live", f"{file}: {found}"


def test_the_lock_names_no_registry() -> None:
    text = (ROOT / "web" / "package-lock.json").read_text()
    assert '"resolved"' not in text
    for versions in ("dependencies", "devDependencies"):
        for name, version in json.loads((ROOT / "web" / "package.json").read_text())[versions].items():
            assert re.fullmatch(r"\d+\.\d+\.\d+", version), name
