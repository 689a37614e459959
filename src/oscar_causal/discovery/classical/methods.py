"""The table of classical methods, and one label taken through one of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from oscar_causal.data.rules import Event, format_rule
from oscar_causal.data.rules.tree import Atom
from oscar_causal.discovery.classical.boundaries import GlobalBoundary, Member
from oscar_causal.discovery.classical.ci_tests import CiConfig
from oscar_causal.discovery.classical.cmb import cmb
from oscar_causal.discovery.classical.features import FeatureConfig, feature_table
from oscar_causal.discovery.classical.found import Found
from oscar_causal.discovery.classical.iamb import iamb
from oscar_causal.discovery.classical.mb_by_mb import mb_by_mb
from oscar_causal.discovery.classical.mi_mcf import MiMcfConfig, mi_mcf
from oscar_causal.discovery.classical.occurrences import Occurrences
from oscar_causal.discovery.classical.pcd_by_pcd import pcd_by_pcd
from oscar_causal.discovery.classical.sparse import SparseTable
from oscar_causal.discovery.classical.tester import CiTester, OutOfTime
from oscar_causal.errors import UsageError

Method = Literal["iamb", "cmb", "mb-by-mb", "pcd-by-pcd", "mi-mcf"]
Int64 = npt.NDArray[np.int64]
ESTIMAND = {
    "iamb": "Markov boundary of each label in the whole dataset (IAMB), read where its events are present",
    "cmb": "Markov boundary of each label in the whole dataset (CMB), read where its events are present",
    "mb-by-mb": "Markov boundary of each label in the whole dataset (MB-by-MB), read where its events are present",
    "pcd-by-pcd": "neighbours of each label in the whole dataset (PCD-by-PCD), read where its events are present",
    "mi-mcf": "causal features of each label in the whole dataset (MI-MCF), read where its events are present",
}


@dataclass(frozen=True)
class BaselineConfig:
    """Everything that decides the boundaries."""

    method: Method = "iamb"
    tests: CiConfig = field(default_factory=CiConfig)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    mi_mcf: MiMcfConfig = field(default_factory=MiMcfConfig)
    labels_as_candidates: bool | None = None
    """May other labels enter as candidates and conditions? None: only in mi-mcf, whose second phase is about them."""
    outcomes: bool = True
    """Labels come last and cause nothing: no search for their effects. False: the algorithms as published."""
    label_time_limit: float | None = 60.0
    """Seconds for one label; then what was found so far, marked incomplete."""
    time_limit: float | None = None
    """Seconds for all labels together, likewise."""

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise UsageError(f"baseline: expected one of {', '.join(get_args(Method))}, got {self.method!r}")
        for name, limit in (("label time limit", self.label_time_limit), ("time limit", self.time_limit)):
            if limit is not None and not limit > 0:
                raise UsageError(f"{name}: expected a number of seconds above 0, got {limit}")

    @property
    def with_labels(self) -> bool:
        """Do other labels take part?"""
        return self.method == "mi-mcf" if self.labels_as_candidates is None else self.labels_as_candidates

    def to_json(self) -> dict[str, Any]:
        """For `run.json`."""
        return asdict(self)


def learn_label(
    presence: SparseTable,
    label: int,
    config: BaselineConfig,
    *,
    index: Occurrences | None = None,
    seconds_left: float | None = None,
) -> GlobalBoundary:
    """The boundary of one label (a label id). `index` is needed for counts and orders."""
    begun = time.monotonic()
    limits = [limit for limit in (config.label_time_limit, seconds_left) if limit is not None]
    deadline = begun + min(limits) if limits else None
    view = _view(presence, label, config, index, deadline)
    tester = CiTester(view.table, config.tests, allowed=_allowed(view, config), deadline=deadline)
    found = _apply(tester, view.target, frozenset(view.labels) - {view.target}, config)
    return GlobalBoundary(
        label=presence.names[presence.n_events + label],
        members=_members(tester, view, found),
        rows=view.table.n_rows,
        positives=int(view.table.totals[view.target]),
        tests=tester.tests + view.tests,
        complete=found.complete and view.complete,
        seconds=time.monotonic() - begun,
    )


@dataclass(frozen=True)
class _View:
    """What one label's search looks at."""

    table: SparseTable
    target: int
    labels: tuple[int, ...]
    """Columns of labels, the target among them."""
    atoms: tuple[Atom, ...] | None = None
    """What the leading columns are, where they are more than events."""
    tests: int = 0
    complete: bool = True


def _view(
    presence: SparseTable, label: int, config: BaselineConfig, index: Occurrences | None, deadline: float | None
) -> _View:
    target = presence.n_events + label
    labels = tuple(range(presence.n_events, presence.n_columns))
    if config.features.only_presence:
        return _View(presence, target, labels)
    if index is None:
        raise UsageError("features: expected an event index for counts and orders, got none")
    tester = CiTester(presence, config.tests, allowed=np.arange(presence.n_events), deadline=deadline)
    try:
        columns, complete = tester.dependent(tester.scan(target)), True
    except OutOfTime:
        columns, complete = [], False
    labels = labels if config.with_labels else (target,)
    table, atoms = feature_table(presence, columns, labels, index, config.features)
    moved = tuple(range(len(atoms), table.n_columns))
    return _View(table, moved[labels.index(target)], moved, atoms, tester.tests, complete)


def _allowed(view: _View, config: BaselineConfig) -> Int64:
    """Events; the target too, for when events are asked about their own neighbours; other labels when asked for."""
    labels = view.labels if config.with_labels else (view.target,)
    return np.append(np.arange(view.table.n_events), labels).astype(np.int64)


def _apply(tester: CiTester, target: int, labels: frozenset[int], config: BaselineConfig) -> Found:
    match config.method:
        case "iamb":
            return iamb(tester, target)
        case "cmb":
            return cmb(tester, target, outcome=config.outcomes)
        case "mb-by-mb":
            return mb_by_mb(tester, target, outcome=config.outcomes)
        case "pcd-by-pcd":
            return pcd_by_pcd(tester, target, outcome=config.outcomes)
        case "mi-mcf":
            return mi_mcf(tester, target, labels=labels, config=config.mi_mcf)


def _members(tester: CiTester, view: _View, found: Found) -> tuple[Member, ...]:
    """The evidence for each member given all the others. Labels may have been among them; they are no events."""
    members = []
    for x in found.members:
        if x >= view.table.n_events:
            continue
        given = [other for other in found.members if other != x]
        statistic, p_value = tester.evidence(x, view.target, given)
        effect, error = effect_in_positives(view.table, view.target, x, given)
        atom = view.atoms[x] if view.atoms is not None else Event(view.table.names[x])
        members.append(Member(format_rule(atom), statistic, p_value, effect, error, found.roles.get(x)))
    return tuple(members)


def effect_in_positives(
    table: SparseTable, target: int, x: int, given: Sequence[int]
) -> tuple[float | None, float | None]:
    """Frequency of the target with x minus without, inside the strata of `given`, averaged over rows with the target.

    Strata where x does not vary say nothing and are left out. The standard error takes the counts of each stratum as
    binomial. (None, None) when no stratum is left.
    """
    n, n_x, n_y, n_xy = (part.astype(np.float64) for part in table.strata_of(target, x, given))
    told = (n_x > 0) & (n_x < n) & (n_y > 0)
    if not told.any():
        return None, None
    n, n_x, n_y, n_xy = n[told], n_x[told], n_y[told], n_xy[told]
    with_x, without = n_xy / n_x, (n_y - n_xy) / (n - n_x)
    share = n_y / n_y.sum()
    variance = with_x * (1 - with_x) / n_x + without * (1 - without) / (n - n_x)
    return float(share @ (with_x - without)), float(np.sqrt(share**2 @ variance))
