"""The tables of docs/findings.md that come from `oscar bench`, made anew from the files in docs/results.

    python scripts/findings_tables.py          # after new rows: writes the tables between the markers of the page
    python scripts/findings_tables.py --check  # is the page in step with the files?

A table stands between `<!-- bench NAME-FLEET-seedS -->` and `<!-- end -->`; with no file or no row there is none.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from oscar_causal.data.folders import read_json
from oscar_causal.score.bench import contexts, length, nades, rivals, sampling, table_1, threshold
from oscar_causal.score.bench.pages import percent, table
from oscar_causal.score.bench.paper import paper_cell
from oscar_causal.score.bench.running import Bench
from oscar_causal.score.bench.settings import BenchSettings

PAGE = Path("docs/findings.md")
BLOCK = re.compile(r"(<!-- bench ([a-z]+(?:-1)?)-([a-z]+)-seed(\d+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
Figures = Mapping[str, Any]
Cell = Callable[[str, Figures], str]


def score(truth: str, average: str, figure: str) -> Cell:
    """A figure of a row in percent."""
    return lambda name, row: percent(row["truth"].get(truth, {}), average, figure)


def paper(bench: str, *keys: str) -> Cell:
    """The paper's figure for a row."""
    return lambda name, row: paper_cell(bench, name, *keys)


def seconds(row: Figures) -> str:
    """Of the processor where that was measured (classical methods), else as they passed."""
    return f"{row['cpu_seconds']:.0f} of processor" if "cpu_seconds" in row else f"{row['seconds']['mean']:.0f}"


RULE = [
    (f"{word}, whole rule", score("rule_all", "weighted", key))
    for word, key in (("precision", "precision"), ("recall", "recall"), ("F1", "f1_of_means"))
]
PRESENT = ("F1, causes present", score("why", "sample", "f1_of_means"))
COLUMNS: dict[str, list[tuple[str, Cell]]] = {
    "table-1": [
        *RULE,
        PRESENT,
        ("seconds", lambda name, row: seconds(row)),
        ("paper: F1", paper("table-1", "f1")),
        ("paper: minutes", paper("table-1", "minutes")),
    ],
    "sampling": [
        ("micro F1, whole rule", score("rule_all", "micro", "f1")),
        ("weighted F1, whole rule", score("rule_all", "weighted", "f1")),
        PRESENT,
        ("paper: micro F1", paper("sampling", "f1_micro")),
        ("paper: weighted F1", paper("sampling", "f1_weighted")),
    ],
    "contexts": [
        ("weighted F1, whole rule", score("rule_all", "weighted", "f1")),
        PRESENT,
        ("ms per sequence", lambda name, row: f"{contexts.milliseconds(row):.0f}"),
    ],
    "nades": [
        ("tokens", lambda name, row: f"{row['model']['tokens'] / 1e6:.0f} M"),
        ("weights", lambda name, row: f"{row['model']['weights'] / 1e6:.1f} M"),
        *RULE,
        PRESENT,
        ("Tf_y F1", lambda name, row: f"{100 * row['model']['label_f1']:.1f}"),
        ("paper: F1", paper("nades", "f1")),
        ("paper: Tf_y F1", paper("nades", "label_f1")),
    ],
    "rivals": [
        ("passes", lambda name, row: f"{row['passes']:.0f}"),
        ("precision", score("why", "sample", "precision")),
        ("recall", score("why", "sample", "recall")),
        PRESENT,
    ],
}
CAPTIONS = {
    "length": "**Boundary length**, by the number of events of the label's rule (the paper's figure).",
    "sampling": "**How the first c events are drawn**, `prefix` at k = 3 (the paper's table).",
    "contexts": "**How many contexts** (the paper's figure N).",
    "threshold": "**The threshold** (the paper's figure k).",
    "nades": "**Model size, training and context c** (the paper's table of NADEs).",
    "rivals": "**Attribution rivals**, as in section 8, against the causes present.",
}
"""Above tables that may not be there."""
BENCHES: dict[str, Bench] = {
    module.BENCH.name: module.BENCH for module in (table_1, length, sampling, contexts, threshold, nades, rivals)
}


def plain_table(bench: str, rows: Mapping[str, Figures]) -> list[str]:
    """A line per row."""
    head = ["", *(title for title, _ in COLUMNS[bench])]
    return table(head, [[name, *(cell(name, row) for _, cell in COLUMNS[bench])] for name, row in rows.items()])


def threshold_table(rows: Mapping[str, Figures]) -> list[str]:
    """F1 at every k or alpha, a line per estimator."""
    lines = []
    for name, row in rows.items():
        told = [f"{p['at']:g}: {percent(p['truth']['why'], 'sample', 'f1_of_means')}" for p in row["points"]]
        lines.append([name, "k" if name == "prefix" else "alpha", "; ".join(told)])
    return table(["", "threshold", "F1, causes present"], lines)


def length_table(rows: Mapping[str, Figures]) -> list[str]:
    """A line per size of the rule: pairs, then F1 of each estimator against both truths."""
    sizes = sorted({size for row in rows.values() for size in row["by_size"]["rule_all"]}, key=int)
    head = ["events of the rule", "pairs"]
    head += [f"`{name}`: {words}" for name in rows for words in ("F1, whole rule", "F1, causes present")]
    some = next(iter(rows.values()))["by_size"]["rule_all"]
    lines = []
    for size in sizes:
        cells = [size, str(some.get(size, {}).get("pairs", 0))]
        for row in rows.values():
            parts = [row["by_size"].get(truth, {}).get(size) for truth in ("rule_all", "why")]
            cells += [f"{100 * part['sample']['f1']:.1f}" if part else "–" for part in parts]
        lines.append(cells)
    return table(head, lines)


def block(results: Path, bench: str, fleet: str, seed: int) -> str:
    """The table of one file and where its rows come from; nothing where there is no row."""
    path = results / f"{bench}-{fleet}-seed{seed}.json"
    measured = read_json(path)["rows"] if path.exists() else {}
    known = BENCHES[bench].rows(BenchSettings(results, fleet=fleet, seed=seed))
    rows = {name: measured[name] for name in known if name in measured}
    if not rows:
        return ""
    special = {"threshold": threshold_table, "length": length_table}
    lines = special[bench](rows) if bench in special else plain_table(bench, rows)
    counts = sorted({(row["sequences"], row["pairs"]) for row in rows.values()})
    told = " and ".join(f"{sequences:,} held-out sequences with {pairs:,} pairs" for sequences, pairs in counts)
    page = path.with_suffix(".md").name
    above = [CAPTIONS[bench], ""] if bench in CAPTIONS else []
    below = f"({told}; settings, machines and spread: [results/{page}](results/{page}))"
    return "\n".join(["", *above, *lines, "", below, "", ""])


def filled(text: str, results: Path) -> str:
    """The page with every table made anew."""

    def fill(found: re.Match[str]) -> str:
        begin, bench, fleet, seed, _, end = found.groups()
        return begin + block(results, bench, fleet, int(seed)) + end

    return BLOCK.sub(fill, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page is not in step")
    parser.add_argument("--page", type=Path, default=PAGE)
    args = parser.parse_args()
    before = args.page.read_text(encoding="utf-8")
    after = filled(before, args.page.parent / "results")
    if args.check and after != before:
        sys.exit(f"{args.page}: not in step with its results; run python scripts/findings_tables.py")
    if after != before:
        args.page.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
