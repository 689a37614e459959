"""Measures what the intervention estimator promises: false verdicts, recall by boundary size, coverage of intervals.

Writes error-rates.json and error-rates.md. Models are perfect (solvable process, plain response functions), so every
figure is about the estimator and its tests, none about a trained network.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from program import commit
from response_models import (
    ResponseModel,
    additive,
    all_of,
    any_and,
    any_of,
    evidence_of,
    ignoring,
    one_sequence,
)

import oscar_causal
from oscar_causal.data.folders import write_json, write_text
from oscar_causal.data.solvable import EXAMPLES, SolvableProcess
from oscar_causal.data.vocabulary import SPECIAL_IDS
from oscar_causal.density.exact import ExactDensity
from oscar_causal.discovery.boundary import EventEvidence
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.significance import (
    benjamini_hochberg,
    bounded_interval,
    column_test,
    inverted_interval,
)
from oscar_causal.discovery.subject import prepare, respond

ALPHAS = (0.01, 0.05, 0.1)
FOCUS_ROWS = {64: 42, 256: 170}
"""Contexts of the focus stage at N = 64 and N = 256: what tests and intervals see."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Campaign:
    """Seed and size of the measurements; `scale` 1 is the published size."""

    seed: int
    scale: float

    def count(self, families: int) -> int:
        """Families at this scale."""
        return max(20, round(families * self.scale))

    def rng(self, *keys: int) -> np.random.Generator:
        """A generator of its own for every measurement."""
        return np.random.default_rng([self.seed, *keys])


def share_row(name: str, alpha: float, hits: int, families: int) -> Row:
    """One line of a rate against its bound alpha + 2 se."""
    bound = alpha + 2 * (alpha * (1 - alpha) / families) ** 0.5
    share = hits / families
    return {"case": name, "alpha": alpha, "families": families, "share": share, "bound": bound, "holds": share <= bound}


# --- (a) events the model ignores ---


def placebo_columns(campaign: Campaign) -> list[Row]:
    """Columns that were drawn and never used, tested against outcomes that hang on other columns."""
    outcomes = {
        "AND of three": lambda real: np.where(real.any(1), 0.02, 0.95),
        "OR of two": lambda real: np.where(real[:, :2].all(1), 0.02, 0.95),
        "XOR of two": lambda real: np.where(real[:, 0] != real[:, 1], 0.1, 0.9),
    }
    rows = []
    for k, (name, answer) in enumerate(outcomes.items()):
        rng, families = campaign.rng(1, k), campaign.count(5000)
        smallest = np.empty(families)
        for family in range(families):
            rate = rng.choice([0.12, 0.25, 0.5])
            real, placebo = rng.random((42, 3)) < rate, (rng.random((42, 8)) < rate).astype(float)
            tests = column_test(answer(real), placebo, np.full(8, rate), rng.random((999, 42)))
            smallest[family] = benjamini_hochberg(tests.p_values).min()
        rows += [share_row(f"placebo columns, outcome {name}", a, int((smallest <= a).sum()), families) for a in ALPHAS]
    return rows


def ignored_events(campaign: Campaign) -> list[Row]:
    """The whole estimator on a label model that ignores every event; delta = 0, so that the test alone decides."""
    families, rng = campaign.count(5000), campaign.rng(2)
    model = ResponseModel(60, ignoring(rng))
    config = InterventionConfig(contexts=64, delta=0.0, alpha=0.1, redraws=1000)
    smallest = np.empty(families)
    for family in range(families):
        found = evidence_of(model, np.arange(25), f"a{family}", config)
        smallest[family] = min((item.q_value for item in found if item.q_value is not None), default=1.0)
    return [share_row("every event ignored, whole estimator", a, int((smallest <= a).sum()), families) for a in ALPHAS]


def mixed_families(campaign: Campaign) -> list[Row]:
    """True causes beside ignored events: false share among discoveries (promised), families with any (not promised)."""
    rows = []
    cases = {"AND of two": (all_of(0, 1), 2), "AND of four": (all_of(0, 1, 2, 3), 4), "OR pair": (any_of(0, 1), 2)}
    for k, (name, (answer, size)) in enumerate(cases.items()):
        families, rng = campaign.count(1500), campaign.rng(3, k)
        shares, p_values = [], []
        causes = {f"e{c}" for c in range(size)}
        for family in range(families):
            ids = rng.permutation(30)
            found = evidence_of(ResponseModel(60, answer), ids, f"m{k} {family}", InterventionConfig(redraws=1000))
            said = {item.event for item in found if item.accepted}
            shares.append(len(said - causes) / max(1, len(said)))
            p_values += [item.p_value for item in found if item.p_value is not None and item.event not in causes]
        se = float(np.std(shares) / families**0.5)
        rows.append(
            {
                "case": name,
                "families": families,
                "false_share": float(np.mean(shares)),
                "false_share_se": se,
                "holds": bool(np.mean(shares) <= 0.05 + 2 * se),
                "families_with_a_false_discovery": float(np.mean(np.array(shares) > 0)),
                "null_p_at_most_0.05": float(np.mean(np.array(p_values) <= 0.05)),
                "null_p_at_most_0.01": float(np.mean(np.array(p_values) <= 0.01)),
            }
        )
    return rows


# --- (b) effects below delta ---


def small_effects(campaign: Campaign) -> list[Row]:
    """Events with an effect below delta = 0.1 that are called a cause or an inhibitor, alone and beside larger ones."""
    families = campaign.count(1000)
    alone = additive(0.3, e0=0.09, e1=0.09, e2=-0.09, e3=0.05, e4=0.05)
    rows = [_small("five effects of 0.05 to 0.09, nothing larger", ResponseModel(60, alone), set(), families)]
    for size in (0.02, 0.05, 0.08, 0.095):
        model = ResponseModel(60, additive(0.1, e0=size, e1=0.4, e2=0.3))
        rows.append(_small(f"effect {size} beside 0.4 and 0.3", model, {"e1", "e2"}, families))
    process = SolvableProcess(replace(EXAMPLES["graded"], length=12))
    for error in (0.0, 0.1):
        name = f"solvable process `graded` (0.005, 0.05 beside 0.5), model error {error} in log-odds"
        sequences = _with_all_relevant(process, campaign.rng(4), families)
        rows.append(_small(name, ExactDensity(process, error=error), {"D"}, families, sequences))
    return rows


def small_effects_in_the_test(campaign: Campaign) -> list[Row]:
    """The same question to the test alone: all of eight effects lie below 0.1; null "no effect" or "at most delta"."""
    sizes = np.array([0.09, 0.09, -0.09, 0.05, 0.05, 0.0, 0.0, 0.0])
    rows = []
    for delta in (0.0, 0.1):
        rng, families = campaign.rng(7), campaign.count(2500)
        smallest = np.empty(families)
        for family in range(families):
            rate = rng.choice([0.12, 0.25, 0.5])
            masks = (rng.random((42, 8)) < rate).astype(float)
            outcome = 0.3 + (1 - masks) @ sizes
            tests = column_test(outcome, masks, np.full(8, rate), rng.random((999, 42)), delta=delta)
            smallest[family] = benjamini_hochberg(tests.p_values).min()
        rows.append(share_row(f"column_test, delta = {delta}", 0.05, int((smallest <= 0.05).sum()), families))
    return rows


def _small(
    name: str, model: object, large: set[str], families: int, sequences: Iterator[np.ndarray] | None = None
) -> Row:
    """Families in which something outside `large` is accepted, and the share of such events among the accepted."""
    config = InterventionConfig(contexts=64, redraws=1000, delta=0.1)
    shares = []
    for k in range(families):
        ids = np.arange(20) if sequences is None else next(sequences)
        said = {item.event for item in evidence_of(model, ids, f"{name} {k}", config) if item.accepted}
        shares.append(len(said - large) / max(1, len(said)))
    row = share_row(name, 0.05, int((np.array(shares) > 0).sum()), families)
    return {**row, "false_share": float(np.mean(shares))}


def _with_all_relevant(process: SolvableProcess, rng: np.random.Generator, count: int) -> Iterator[np.ndarray]:
    """Sequences that hold every relevant type, so that no replacement can bring in a missing one."""
    relevant = set(range(len(process.config.events)))
    found = 0
    while found < count:
        for ids in process.sample(2000, rng).event_ids:
            if relevant <= set(ids.tolist()) and found < count:
                found += 1
                yield ids


# --- (c) recall by boundary size ---


def recall_rows(campaign: Campaign) -> list[Row]:
    """Recall of true causes with a perfect model, 40 event types in random order; what the others were called."""
    cases = [(f"AND of {size}", all_of(*range(size)), size) for size in range(1, 9)]
    cases += [("OR pair", any_of(0, 1), 2), ("OR pair and one more", any_and((0, 1), (2,)), 3)]
    rows = []
    for contexts, families in ((64, campaign.count(150)), (256, campaign.count(60))):
        for k, (name, answer, size) in enumerate(cases):
            rng = campaign.rng(5, contexts, k)
            items: list[EventEvidence] = []
            shares = []
            for family in range(families):
                config = InterventionConfig(contexts=contexts)
                found = evidence_of(ResponseModel(80, answer), rng.permutation(40), f"c{k} {family}", config)
                items += [item for item in found if int(item.event[1:]) < size]
                said = [int(item.event[1:]) for item in found if item.accepted]
                shares.append(sum(event >= size for event in said) / max(1, len(said)))
            row = {"case": name, "contexts": contexts, "sequences": families, **_fates(items)}
            rows.append({**row, "false_share": float(np.mean(shares))})
    return rows


def _fates(items: list[EventEvidence]) -> Row:
    """What became of true causes."""
    number = len(items)
    return {
        "recall": sum(item.accepted for item in items) / number,
        "not_resolvable": sum(item.verdict == "not resolvable" for item in items) / number,
        "called_no_effect": sum(item.verdict == "no effect" for item in items) / number,
        "no_finalist": sum(item.p_value is None for item in items) / number,
    }


# --- (d) intervals ---

INTERVAL_CASES = {"null": ("and", "C"), "AND": ("and", "A"), "OR": ("or", "A"), "inhibitor": ("not", "B")}


def interval_rows(campaign: Campaign) -> list[Row]:
    """Coverage and width of 95 % intervals of tau_t(r, Q) on the solvable process; the target is enumerated."""
    rows = []
    for k, (name, (example, event)) in enumerate(INTERVAL_CASES.items()):
        process = SolvableProcess(replace(EXAMPLES[example], length=10))
        for contexts, rate in ((n, r) for n in FOCUS_ROWS for r in (0.12, 0.25, 0.5)):
            rng = campaign.rng(6, k, contexts, round(100 * rate))
            trials = [
                _interval_trial(process, ids, event, rate, FOCUS_ROWS[contexts], rng)
                for ids in _with_all_relevant(process, rng, campaign.count(400))
            ]
            rows += [
                {"case": name, "contexts": contexts, "rate": rate, "interval": kind, **_coverage(trials, at)}
                for at, kind in enumerate(("inverted", "bounded"))
            ]
    return rows


Trial = tuple[float, tuple[tuple[float, float], ...]]


def _interval_trial(
    process: SolvableProcess, ids: np.ndarray, event: str, rate: float, rows: int, rng: np.random.Generator
) -> Trial:
    """The exact effect and both intervals from one design in which every present type is replaced with `rate`."""
    model, wanted = ExactDensity(process), process.event_names.index(event)
    name = str(rng.integers(2**60))
    subject = prepare(model, one_sequence(ids), sequence_id=name, seed=0, shuffle=False)
    truth = process.direct_effect(0, ids, wanted, rate, subject.law.numpy()[:, SPECIAL_IDS:])
    masks = rng.random((rows, len(subject.types))) < rate
    outcome = respond(model, subject, masks, np.array([0]), "focus")[:, 0]
    mask = masks[:, subject.types == wanted + SPECIAL_IDS][:, 0].astype(float)
    inverted = inverted_interval(outcome, mask, rate, rng.random((1000, rows)), 0.95)
    return truth, (inverted, bounded_interval(outcome, mask, 0.95))


def _coverage(trials: list[Trial], at: int) -> Row:
    inside = [ends[at][0] - 1e-6 <= truth <= ends[at][1] + 1e-6 for truth, ends in trials]
    widths = [ends[at][1] - ends[at][0] for _, ends in trials]
    share, number = float(np.mean(inside)), len(trials)
    holds = share >= 0.95 - 2 * (0.95 * 0.05 / number) ** 0.5
    effect = float(np.mean([truth for truth, _ in trials]))
    return {"trials": number, "effect": effect, "coverage": share, "width": float(np.mean(widths)), "holds": holds}


# --- report ---

PARTS = {
    "null_families": lambda c: placebo_columns(c) + ignored_events(c),
    "mixed_families": mixed_families,
    "small_effects": small_effects,
    "small_effects_in_the_test": small_effects_in_the_test,
    "recall": recall_rows,
    "intervals": interval_rows,
}
TITLES = {
    "null_families": "(a) Families without any cause: share with a rejection, against alpha + 2 se",
    "mixed_families": "(a) Causes beside ignored events, alpha = 0.05, N = 64: false share among discoveries",
    "small_effects": "(b) Effects below delta = 0.1, alpha = 0.05, N = 64: families in which one is accepted",
    "small_effects_in_the_test": "(b) Eight effects below 0.1: families in which the test alone rejects one",
    "recall": "(c) Recall by boundary size, perfect model, 40 event types: what true causes were called",
    "intervals": "(d) 95 % intervals of tau(r, Q) on the solvable process",
}
NOTES = {
    "null_families": "With every hypothesis true, Benjamini-Hochberg bounds the share of families with any rejection.",
    "mixed_families": "Beside true causes it bounds the mean false share; families with a false discovery may be more.",
    "small_effects": "`share` counts families, `false share` is the mean share among the accepted events of a family.",
    "small_effects_in_the_test": "delta = 0 asks for any effect, delta = 0.1 for one larger than 0.1.",
    "recall": "`no finalist`: lost while screening. `called no effect`: a true cause declared harmless, an error.",
    "intervals": "`contexts` is N, of which the focus stage has 42 or 170 rows; `holds`: coverage >= 0.95 - 2 se.",
}


def markdown(report: Row) -> str:
    """The report as tables."""
    lines = [
        "# Error rates of the intervention estimator",
        "",
        f"`make error-rates`, seed {report['seed']}, scale {report['scale']:g}, {report['machine']}, "
        f"version {report['version']}, commit {report['commit']}. Perfect models without slopes: no figure here speaks "
        "about a trained network, nor about what is accepted by score, which needs slopes.",
    ]
    for part, title in TITLES.items():
        if part in report:
            lines += ["", f"## {title}", "", NOTES[part], "", *_table(report[part])]
    return "\n".join(lines) + "\n"


def _table(rows: list[Row]) -> list[str]:
    names = list(rows[0])
    body = ["| " + " | ".join(_cell(row[name]) for name in names) + " |" for row in rows]
    return ["| " + " | ".join(name.replace("_", " ") for name in names) + " |", "|" + "---|" * len(names), *body]


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def main() -> None:
    """Run the parts asked for and write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    campaign = Campaign(options.seed, options.scale)
    report: Row = {
        "seed": options.seed,
        "scale": options.scale,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "commit": commit(),
        "version": oscar_causal.__version__,
    }
    for part in options.parts:
        begun = time.perf_counter()
        report[part] = PARTS[part](campaign)
        print(f"{part}: {time.perf_counter() - begun:.0f} s", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(options.out / "error-rates.json", report)
    write_text(options.out / "error-rates.md", markdown(report))


if __name__ == "__main__":
    main()
