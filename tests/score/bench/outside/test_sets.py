"""Adapters: sequences, truth and folds of tiny raw files, worked out by hand; and what is known of the real ones."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from oscar_causal.errors import DataError
from oscar_causal.score.bench.ladder.interface import Answer, Reasons
from oscar_causal.score.bench.ladder.scoring import score
from oscar_causal.score.bench.outside import bpic, causrca, fault_trees, fines, telecom
from oscar_causal.score.bench.outside.ground import SETS, OutsideGround
from oscar_causal.score.bench.outside.own_figures import average_precision_at, edge_figures, edges_named
from oscar_causal.score.bench.outside.trees import Gate, TooMany, Tree, minimal_cut_sets, read_tree

REAL = Path(os.environ.get("OSCAR_OUTSIDE_DATA") or Path(__file__).resolve().parents[4] / ".." / "shared" / "data")


def test_telecom(raw: Path) -> None:
    found = telecom.load(raw / telecom.FOLDER, 0, 0)
    rows = found.sequences.to_pylist()
    assert [row["events"] for row in rows] == [["A05", "A07", "A10"], ["A12", "A03"], ["A07"]]
    assert [(row["labels"], row["label_times"]) for row in rows] == [
        (["A11"], [20.0]),
        (["A11"], [6.0]),
        (["A11"], [1.0]),
    ]
    assert [row["subject_id"] for row in rows] == ["device 01", "device 01", "device 02"]
    first, second = ((row["sequence_id"], "A11") for row in rows[:2])
    assert found.truth == {
        first: Reasons(frozenset({"A07"}), frozenset({"A10"})),  # A10 came after the first alarm, before the last one
        second: Reasons(frozenset(), frozenset({"A12"})),
    }
    assert found.fold[0] == found.fold[1]
    answers = {first: Answer(frozenset({"A07", "A05"}))}
    figures = found.own(answers, found.truth)
    assert (figures["edge precision"], figures["edge recall"]) == (0.5, 1.0)
    assert figures["F1 contested"] == pytest.approx(2 / 3)


def test_fines(raw: Path) -> None:
    found = fines.load(raw / fines.FOLDER, 0, 0)
    assert found.sequences["times"].to_pylist()[0] == [0.0, 864000.0, 1728000.0, 2592000.0]
    assert len(found.truth) == 60
    assert found.truth["c0", "credit_collection"] == Reasons(frozenset({"Add penalty"}))
    assert found.truth["c1", "fully_paid"] == Reasons(frozenset({"Payment"}))
    inhibited = {pair: Answer(reasons.causes, frozenset({"Payment"})) for pair, reasons in found.truth.items()}
    figures = found.own(inhibited, found.truth)
    assert (figures["edge precision"], figures["edge recall"]) == (1.0, pytest.approx(2 / 3))
    assert (figures["prevention found"], figures["prevention as cause"]) == (1.0, 0.0)
    right = {"credit_collection": "Insert Fine Notification", "fully_paid": "Payment"}
    swapped = {pair: Answer(frozenset({right[pair[1]]})) for pair in found.truth}  # the twin instead of the penalty
    assert found.own(swapped, found.truth)["F1, inseparable as one"] == 1.0
    assert score(swapped, found.truth).f1() == pytest.approx(2 / 3)
    named = {pair: Answer(frozenset({"Payment"})) for pair in found.truth}
    assert found.own(named, found.truth)["prevention as cause"] == 1.0


def test_bpic(raw: Path) -> None:
    found = bpic.load(raw / bpic.FOLDER, 0, 0)
    pair = ("1", "not_f2_cea_unanswered")
    assert len(found.truth) == 4
    assert found.truth[pair] == Reasons(frozenset({"cea"}), positions={"cea": frozenset({3})})
    every = {p: Answer(reasons.causes) for p, reasons in found.truth.items()}
    assert found.own(every, found.truth)["F1 f2"] == 1.0
    # both occurrences of CEA are meant, one is right: precision .5, 1, 1 over three pairs
    assert found.own(every, found.truth)["F1 of occurrences, f2 f3"] == pytest.approx(2 * (2.5 / 3) / (2.5 / 3 + 1))
    exact = every | {pair: Answer(frozenset({"cea"}), positions={"cea": frozenset({3})})}
    assert found.own(exact, found.truth)["F1 of occurrences, f2 f3"] == 1.0


def test_bpic_refuses_a_reason_that_is_not_there(raw: Path) -> None:
    path = raw / bpic.FOLDER / "reasons.csv.gz"
    path.unlink()
    with gzip.open(path, "wt") as file:
        file.write("case_id,label,pos,event,role\n2,f1_tumour_marker,1,ca-125,cause\n")
    with pytest.raises(DataError, match="expected 'ca-125' at 1"):
        bpic.load(raw / bpic.FOLDER, 0, 0)


def test_causrca(raw: Path) -> None:
    found = causrca.load(raw / causrca.FOLDER, 0, 0)
    one, two = "exp_coolant-exp_1-run_1", "exp_coolant-exp_2-run_1"
    assert found.truth[one, "P_alarm"] == Reasons(frozenset({"P=False"}))  # P=True came before the manipulation
    assert found.truth[two, "Q_alarm"] == Reasons(frozenset({"Q=False"}), frozenset({"P=False"}))
    assert not [pair for pair in found.truth if pair[1] == "usual" or pair[0].startswith("op_")]
    fold = dict(zip(found.sequences["sequence_id"].to_pylist(), found.fold.tolist(), strict=True))
    assert fold[one] == fold[one.replace("run_1", "run_2")] != fold[two]
    assert {fold[f"op_{run}"] for run in range(4)} == {-1}
    assert "0.25" in found.remarks[0]  # Q_alarm, in 2 of 8 pairs, rings in one experiment
    answers = {pair: Answer(scores={"R=1": 3.0, "P=True": 2.0, "beat=1": 1.0}) for pair in found.truth}
    figures = found.own(answers, found.truth)
    assert (figures["Top-1 coolant"], figures["MAP@3 hydraulics"]) == (0.0, 0.5)
    assert figures["MAP@3 coolant"] == pytest.approx((2 * 0.5 + 2 * 0.25) / 4)


def random_tree(rng: np.random.Generator, basic: int = 7, gates: int = 6) -> Tree:
    """Gates over basic events and earlier gates; the last one is the top."""
    nodes = [("basic-event", f"e{k}") for k in range(basic)]
    made = {}
    for k in range(gates):
        children = tuple(nodes[i] for i in rng.choice(len(nodes), int(rng.integers(2, 5)), replace=False))
        operator = str(rng.choice(["and", "or", "atleast"]))
        made["gate", f"g{k}"] = Gate(operator, children, int(rng.integers(1, len(children) + 1)))
        nodes.append(("gate", f"g{k}"))
    return Tree("random", made, ("gate", f"g{gates - 1}"))


def brute_force(tree: Tree, present: list[str]) -> set[frozenset[str]]:
    """All minimal cut sets by trying every subset of what is present."""
    found: list[frozenset[str]] = []
    for size in range(len(present) + 1):
        for some in map(frozenset, combinations(present, size)):
            row = np.array([[name in some for name in tree.basic]])
            if tree.values(row)[tree.top][0] and not any(smaller < some for smaller in found):
                found.append(some)
    return set(found)


def test_minimal_cut_sets_are_those_of_brute_force() -> None:
    rng, several = np.random.default_rng(3), 0
    for _ in range(60):
        tree = random_tree(rng)
        present = rng.random((1, len(tree.basic))) < 0.7
        values = {node: bool(value[0]) for node, value in tree.values(present).items()}
        expected = brute_force(tree, [name for name, there in zip(tree.basic, present[0], strict=True) if there])
        assert set(minimal_cut_sets(tree, values, 500)) == expected
        several += len(expected) > 1
    assert several > 10


def test_reading_trees(raw: Path) -> None:
    tree = read_tree(raw / fault_trees.FOLDER / "plain.xml.gz")
    assert (tree.top, tree.basic, tree.coherent) == (("gate", "top"), ("a", "b", "c", "d"), True)
    values = {node: bool(value[0]) for node, value in tree.values(np.ones((1, 4), bool)).items()}
    assert set(minimal_cut_sets(tree, values, 500)) == {frozenset(cut) for cut in ("ab", "bc", "bd", "cd")}
    with pytest.raises(TooMany):
        minimal_cut_sets(tree, values, 3)
    assert not read_tree(raw / fault_trees.FOLDER / "crossed.xml.gz").coherent
    broken = raw / "broken.xml"
    gate = "<opsa-mef><define-gate name='g'><nor/></define-gate></opsa-mef>"
    for text, told in (("<opsa-mef>", "broken.xml"), (gate, "'nor'"), ("<opsa-mef/>", "0 tops")):
        broken.write_text(text)
        with pytest.raises(DataError, match=told):
            read_tree(broken)


def test_fault_trees(raw: Path) -> None:
    found = fault_trees.load(raw / fault_trees.FOLDER, 4, 600)
    again, other = (fault_trees.load(raw / fault_trees.FOLDER, seed, 600) for seed in (4, 5))
    assert found.sequences.equals(again.sequences)
    assert not found.sequences.equals(other.sequences)
    rows = {row["sequence_id"]: row for row in found.sequences.to_pylist()}
    often = Counter(label for row in rows.values() for label in row["labels"])
    assert all(0.03 < often[name] / 600 < 0.14 for name in ("plain", "crossed"))
    tree = read_tree(raw / fault_trees.FOLDER / "plain.xml.gz")
    for (name, label), reasons in found.truth.items():
        there = {event.removeprefix(f"{label} ") for event in rows[name]["events"] if event.startswith(label)}
        if label == "plain":
            assert reasons.causes == {f"plain {e}" for cut in brute_force(tree, sorted(there)) for e in cut}
        else:
            assert (there, reasons.causes) == ({"a"}, {"crossed a"})
    assert all(("plain" in row["labels"]) == ((row["sequence_id"], "plain") in found.truth) for row in rows.values())
    everything = {pair: Answer(reasons.causes) for pair, reasons in found.truth.items()}
    assert set(found.own(everything, found.truth).values()) == {1.0}


def test_a_table_that_cannot_be_read_is_told(raw: Path) -> None:
    path = raw / telecom.FOLDER / "18v_dag_edges.csv"
    path.write_text("cause,effects\n1,2\n")
    with pytest.raises(DataError, match="expected column 'effect'"):
        telecom.load(path.parent, 0, 0)
    path.write_text("cause,effect\n1,x\n")
    with pytest.raises(DataError, match="expected a number, got 'x'"):
        telecom.load(path.parent, 0, 0)


KNOWN = {
    "telecom": (5936, 20942, {"A06": 1354, "A11": 2172, "A14": 628, "A15": 95}),
    "fines": (10000, 31337, {"credit_collection": 3387, "fully_paid": 4354, "dismissed": 140}),
    "bpic2011": (1143, 150291, {"f1_tumour_marker": 460, "not_f2_cea_unanswered": 248, "f3_scc_before_biopsy": 259,
                                "f4_big_resection": 321}),
    "causrca": (232, 296599, {"Hyd_A_700202": 19, "T_A_701309": 211}),
}  # fmt: skip
"""Sequences, events and positives that the sources tell (of causRCA: counted; four production runs have no events)."""


@pytest.mark.parametrize("name", KNOWN)
def test_the_real_files(name: str) -> None:
    adapter, (sequences, events, positives) = SETS[name], KNOWN[name]
    folder = REAL / adapter.FOLDER
    missing = OutsideGround(name, 0, REAL, REAL).missing()
    if missing:
        pytest.skip(f"no {missing[0]} in {folder}")
    found = adapter.load(folder, 0, 0)
    lengths = [len(some) for some in found.sequences["events"].to_pylist()]
    assert (len(lengths), sum(lengths)) == (sequences, events)
    counted = Counter(label for some in found.sequences["labels"].to_pylist() for label in some)
    assert {label: counted[label] for label in positives} == positives


def test_the_real_trees() -> None:
    folder = REAL / fault_trees.FOLDER
    if OutsideGround("fault trees", 0, REAL, REAL).missing():
        pytest.skip(f"no fault trees in {folder}")
    trees = {tree.name: tree for tree in map(read_tree, folder.glob("*.xml.gz"))}
    assert len(trees) == 22
    assert [name for name, tree in trees.items() if not tree.coherent] == ["das9601"]
    assert {name: len(trees[name].basic) for name in ("chinese", "nus9601")} == {"chinese": 25, "nus9601": 1567}


def test_edges_and_rankings() -> None:
    present = {(str(k), "y"): frozenset("AB") for k in range(4)}
    answers = {(str(k), "y"): Answer(frozenset("A" if k < 2 else "")) for k in range(3)}
    assert edges_named(answers, present) == {("y", "A")}  # in two of four
    assert edge_figures({("y", "A")}, {("y", "A"), ("y", "B")})["edge F1"] == pytest.approx(2 / 3)
    assert average_precision_at(3, ["x", "a"], frozenset("a")) == 0.5
    assert average_precision_at(1, ["a", "x"], frozenset("ab")) == 1.0
    assert average_precision_at(3, [], frozenset("a")) == 0.0
