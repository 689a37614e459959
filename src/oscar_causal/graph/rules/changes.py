"""Did a part of a rule change at some date? Part by part, whether the label came where that part alone decides.

A rule that lists an old and a new alternative fits every window alike as a whole; each alternative by itself does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy
from scipy.stats import fisher_exact

from oscar_causal.data.rules import And, Not, Or, Rule, evaluate
from oscar_causal.data.rules.logic import plain_atom
from oscar_causal.data.rules.tree import Atom, all_of, any_of
from oscar_causal.data.sequences import Dataset
from oscar_causal.data.subjects import subject_hashes
from oscar_causal.graph.rules.mining import Bool, Int64, Mined, pivotal
from oscar_causal.graph.rules.proposal import Share

ONE_OF_A_SUBJECT_SEED = 40_961
"""Which sequence stands for a subject is hashed apart from splits and groups."""


@dataclass(frozen=True)
class Part:
    """What alone decides in some sequences: an alternative that makes the rule hold, or a condition that is missing."""

    rule: Rule
    """`A & B`: all of it is needed there; of a missing condition, `B | C`: any of it would do."""
    says: bool
    """What the rule says there: True = the label comes, thanks to this part; False = it does not, for want of it."""
    rows: Int64
    """The sequences where it decides."""
    atom: Atom
    """One atom of it: fixed at `not held`, the rule says the opposite there."""
    held: bool


@dataclass(frozen=True)
class PartChange:
    """The date that tells best apart when the label came where a part decides, and whether that can be chance."""

    part: Part
    until: int
    """Start of the last sequence before the change; all dates in the unit of `Dated.start`."""
    since: int
    """Start of the first one after."""
    before: Share
    after: Share
    p_value: float
    """Of no change at any date."""

    @property
    def difference(self) -> float:
        """Share with the label after less the share before; 0 where one side is empty."""
        before, after = self.before.value, self.after.value
        return 0.0 if before is None or after is None else after - before


@dataclass(frozen=True)
class Dated:
    """Labelled sequences, all with a known start."""

    data: Dataset

    @cached_property
    def mined(self) -> Mined:
        """The same, indexed for rules."""
        return Mined(self.data)

    @cached_property
    def start(self) -> Int64:
        """As the dataset counts time (microseconds since 1970): (n,)."""
        return np.asarray(self.data.start.cast("int64").to_numpy(zero_copy_only=False), np.int64)

    @cached_property
    def _subject(self) -> npt.NDArray[np.uint64]:
        return subject_hashes(self.data.subject_ids)

    @cached_property
    def _turn(self) -> npt.NDArray[np.uint64]:
        return subject_hashes(self.data.sequence_ids, seed=ONE_OF_A_SUBJECT_SEED)

    def one_of_each_subject(self, rows: Int64) -> Int64:
        """Of these sequences one for each subject, chosen by a hash of its name: these are independent."""
        drawn = rows[np.argsort(self._turn[rows], kind="stable")]
        chosen: Int64 = drawn[np.unique(self._subject[drawn], return_index=True)[1]]
        return chosen

    def change(self, part: Part, came: Bool) -> PartChange:
        """The likeliest date of a change, by all sequences; its test, by one sequence of each subject.

        The test is Fisher's, exact, of the label before and after that date, times the number of dates there are to
        choose from (Bonferroni): it holds for the best of all dates, however it was found.
        """
        until, since = likeliest_change(self.start[part.rows], came[part.rows])
        late = self.start >= since
        sample = self.one_of_each_subject(part.rows)
        table = [[int((late[sample] == side)[came[sample] == has].sum()) for has in (True, False)] for side in (0, 1)]
        dates = len(np.unique(self.start[sample])) - 1
        p = min(1.0, dates * float(fisher_exact(table).pvalue)) if dates else 1.0
        before, after = (came[part.rows[late[part.rows] == side]] for side in (False, True))
        shares = Share(int(before.sum()), len(before)), Share(int(after.sum()), len(after))
        return PartChange(part, until, since, *shares, p_value=p)


def likeliest_change(start: Int64, came: Bool) -> tuple[int, int]:
    """Between which two neighbouring starts the share of `came` most likely changed; the first twice if nowhere.

    >>> likeliest_change(np.array([5, 1, 3, 9]), np.array([False, True, True, False]))
    (3, 5)
    """
    order = np.argsort(start, kind="stable")
    start, hits = start[order], np.cumsum(came[order], dtype=np.int64)
    last = np.flatnonzero(start[1:] != start[:-1])  # of the sequences before each possible date
    if not len(last) or hits[-1] in (0, len(hits)):
        return int(start[0]), int(start[0])
    likelihood = _likelihood(hits[last], last + 1) + _likelihood(hits[-1] - hits[last], len(hits) - last - 1)
    best = last[np.argmax(likelihood)]
    return int(start[best]), int(start[best + 1])


def _likelihood(hits: Int64, of: Int64) -> npt.NDArray[np.float64]:
    """Of so many hits at their own share, in nats."""
    found: npt.NDArray[np.float64] = xlogy(hits, hits / of) + xlogy(of - hits, (of - hits) / of)
    return found


def deciding_parts(rule: Rule, mined: Mined) -> list[Part]:
    """The parts of a rule that decide alone somewhere; what always decides together is one part.

    >>> from oscar_causal.data.rules import format_rule, parse
    >>> from oscar_causal.data.sequences import from_records
    >>> cars = [{"sequence_id": s, "events": list(s), "times": [0] * len(s), "labels": []} for s in ("AB", "C", "A")]
    >>> found = deciding_parts(parse("A & B | C"), Mined(from_records(cars)))
    >>> [(format_rule(part.rule), part.says, part.rows.tolist()) for part in found]
    [('A & B', True, [0]), ('B | C', False, [2]), ('C', True, [1])]
    """
    found: dict[tuple[bool, bytes], list[tuple[Atom, bool]]] = {}
    for says, rows, atom, held in _critical(rule, mined):
        if len(rows):
            found.setdefault((says, rows.tobytes()), []).append((atom, held))
    parts = []
    for (says, where), critical in found.items():
        literals = [atom if held == says else Not(atom) for atom, held in critical]
        whole = all_of(literals) if says else any_of(literals)
        parts.append(Part(whole, says, np.frombuffer(where, np.int64), *critical[0]))
    return parts


def _critical(rule: Rule, mined: Mined) -> Iterator[tuple[bool, Int64, Atom, bool]]:
    """What the rule says, in which sequences, where an atom decides and holds or fails."""
    word = evaluate(rule, mined.index)
    for atom, masks in pivotal(rule, mined.index).items():
        for held, mask in zip((True, False), masks, strict=True):
            for says in (True, False):
                yield says, np.flatnonzero(mask & (word == says)), atom, held


def rule_among(rule: Rule, changed: Sequence[Part], came: Bool, among: Bool) -> Rule | None:
    """The rule of some sequences alone: parts among those that changed against which most of them speak are undone.

    None where nothing is left that could hold, or fail.
    """
    left: Rule | bool = rule
    for part in changed:
        rows = part.rows[among[part.rows]]
        if len(rows) and (came[rows] == part.says).mean() < 0.5 and not isinstance(left, bool):
            left = fixed(left, part.atom, not part.held)
    return None if isinstance(left, bool) else left


def fixed(rule: Rule, atom: Atom, value: bool) -> Rule | bool:
    """What is left of a rule where one atom always holds (or never); True or False where nothing is.

    >>> from oscar_causal.data.rules import format_rule, parse
    >>> from oscar_causal.data.rules.tree import Event
    >>> format_rule(fixed(parse("A & (B | C) & !D"), Event("B"), False)), fixed(parse("A & !D"), Event("D"), True)
    ('A & C & !D', False)
    """
    match rule:
        case Not(item):
            inner = fixed(item, atom, value)
            return not inner if isinstance(inner, bool) else Not(inner)
        case And(items) | Or(items):
            enough = isinstance(rule, Or)  # one such item decides
            parts = [fixed(item, atom, value) for item in items]
            if any(part is enough for part in parts):
                return enough
            left = [part for part in parts if not isinstance(part, bool)]
            if not left:
                return not enough
            return any_of(left) if enough else all_of(left)
        case _:
            return value if plain_atom(rule) == atom else rule
