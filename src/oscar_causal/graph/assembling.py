"""`oscar population`: results folders (or populations of shards) in, one population out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from oscar_causal import __version__
from oscar_causal.data.rules import parse
from oscar_causal.data.sequences import Dataset, read_dataset
from oscar_causal.data.subjects import pack_subjects
from oscar_causal.density.folds import ModelSet, load_models
from oscar_causal.density.precision import settle_on
from oscar_causal.discovery.classical.boundaries import GlobalBoundary
from oscar_causal.discovery.classical.folder import read_boundaries
from oscar_causal.discovery.classical.methods import ESTIMAND
from oscar_causal.discovery.evidence import FleetEvidence, Whereabouts, check_window, collect_results, merge
from oscar_causal.discovery.fleet_prior import Classical, FleetPrior, features_by_label, fit_prior
from oscar_causal.discovery.fused import FusedConfig
from oscar_causal.discovery.intervention import InterventionConfig
from oscar_causal.discovery.reading import count_patterns, not_counted
from oscar_causal.discovery.results import read_run, read_table
from oscar_causal.errors import FolderError, UsageError
from oscar_causal.graph.calibration import Calibration, calibrate, choose_sequences
from oscar_causal.graph.drift import drift
from oscar_causal.graph.part_drift import doubts
from oscar_causal.graph.population import PopulationConfig, boundaries
from oscar_causal.graph.population_folder import Population, is_population, label_table, read_info
from oscar_causal.graph.rule_drift import Recover, rule_drift
from oscar_causal.graph.rules.proposal import NONE
from oscar_causal.graph.statistics import read_statistics

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class AssemblyConfig:
    """Everything that decides a population besides its inputs."""

    boundaries: PopulationConfig = field(default_factory=PopulationConfig)
    window_days: float | None = None
    """Length of the windows of `start` that drift is looked for between; None = no drift."""
    looks_per_label: int = 40
    """Sequences of each label that are looked at closely, which `fused` needs; 0 = none, and no prior."""
    intervention: InterventionConfig = field(default_factory=InterventionConfig)
    """As `fused` will be run: looks are worth what they are worth at this budget."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.window_days is not None:
            check_window(self.window_days)
        if self.looks_per_label < 0:
            raise UsageError(f"looks per label: expected 0 or more, got {self.looks_per_label}")
        if self.seed < 0:
            raise UsageError(f"seed: expected 0 or more, got {self.seed}")


@dataclass(frozen=True)
class Source:
    """A results folder with its dataset and, where there is one, its model."""

    results: Path
    run: dict[str, Any]
    dataset: Dataset
    models: ModelSet | None


def open_source(
    results: Path | str,
    *,
    dataset: Path | str | None = None,
    model: Path | str | None = None,
    device: str = "cpu",
    with_model: bool = True,
) -> Source:
    """Open a results folder; dataset and model come from its `run.json` unless given."""
    run = read_run(results)
    if run.get("estimator") in ("prefix", *ESTIMAND):
        raise UsageError(f"{results}: expected results of intervention or fused, got {run['estimator']} (no effects)")
    told = run.get("dataset") or {}
    data = read_dataset(dataset or told.get("path") or "unknown")
    if data.info.get("digest") != told.get("digest", data.info.get("digest")):
        raise FolderError(f"{data.path}: is not the dataset of {results} (other content)")
    place = model or (run.get("model") or {}).get("path")
    if not with_model or not place:
        return Source(Path(results), run, data, None)
    if not Path(place).exists():
        raise FolderError(f"{place}: the model of {results} is not there: name it, or ask for no looks and no rules")
    settle_on(device)
    models = load_models(place, device=device)
    return Source(Path(results), run, data, models.compiled(torch.bfloat16) if device.startswith("cuda") else models)


def read_classical(results: Path | str) -> Classical:
    """The global boundaries of an `oscar baseline` folder, as a source of the prior."""
    run, path = read_run(results), Path(results) / "boundaries.jsonl"
    if not path.exists():
        raise FolderError(f"{results}: expected the results of `oscar baseline` (boundaries.jsonl), found none")
    found = [item for item in read_boundaries(path) if item.complete]
    data = learnt_from(results)
    return classical_of(str(run.get("estimator")), found, None if data is None else pack_subjects(data.subject_ids))


def learnt_from(results: Path | str) -> Dataset | None:
    """The dataset of an `oscar baseline` folder; None where it is no longer there, or another one is."""
    told = read_run(results).get("dataset") or {}
    place = told.get("path")
    if not place or not (Path(place) / "dataset.json").exists():
        return None
    data = read_dataset(place)
    return data if data.info.get("digest") == told.get("digest") else None


def classical_of(method: str, found: Sequence[GlobalBoundary], subjects: str | None) -> Classical:
    """Global boundaries as a source of the prior; `subjects` of the data they were learnt from."""

    def features(item: GlobalBoundary, *, raising: bool) -> tuple[str, ...]:
        return tuple(m.feature for m in item.members if (m.effect is None or m.effect > 0) == raising)

    return Classical(
        method,
        {item.label: features(item, raising=True) for item in found},
        {item.label: item.positives for item in found},
        subjects,
        {item.label: features(item, raising=False) for item in found},
    )


def assemble(
    sources: Sequence[Source],
    config: AssemblyConfig | None = None,
    *,
    populations: Sequence[Path | str] = (),
    classical: Classical | None = None,
    on_progress: OnProgress | None = None,
) -> Population:
    """Merge evidence, judge it, look closely where a model is at hand, and fit the prior of `fused`."""
    config = config or AssemblyConfig()
    inputs = _inputs(sources, populations)
    _check_windows(populations, config.window_days)
    parts, counted = _statistics(populations)
    for source in sources:
        parts += collect_results(source.results, Whereabouts.of(source.dataset, config.window_days))
    pooled = merge(parts)
    for digest, data in _datasets(sources).items() if classical is not None else ():
        wanted = features_by_label(classical)
        news = not_counted(pooled.patterns, wanted) if digest in counted else wanted
        parts.append(count_patterns(data, news))
        counted.add(digest)
    pooled = merge(parts)
    explained, absent = (int(sum(pooled.labels[name].to_pylist())) for name in ("sequences", "absent"))
    if not explained:
        told = f" whose label came ({absent} of labels that did not)" if absent else ""
        raise UsageError(f"population: the results explain no pair{told}")
    first = fit_prior(pooled, classical)
    looked = [source for source in sources if source.models is not None and config.looks_per_label]
    looks = [_looks(source, first, config, on_progress) for source in looked]
    evidence = merge([pooled, *looks])
    prior = fit_prior(evidence, classical) if len(evidence.cells) else None
    table = boundaries(
        evidence,
        config.boundaries,
        rates=None if prior is None else _mean_rate(prior),
        members=None if classical is None else _member(classical),
    )
    bounds = config.boundaries
    changes = None
    if config.window_days is not None:
        changes = drift(evidence, config.window_days, alpha=bounds.alpha, delta=bounds.delta)
    info = {
        "inputs": inputs,
        "counted": sorted(counted),
        "settings": asdict(config),
        "classical": None if classical is None else {"method": classical.method, "labels": len(classical.members)},
        "sequences": explained,
        "unlabelled": int(sum(evidence.labels["unlabelled"].to_pylist())),
        "absent": absent,
        "versions": {"oscar": __version__},
    }
    return Population(info, evidence, table, label_table(evidence, table), prior, changes)


def with_rules(population: Population, proposals: Sequence[Any], interplay: Any = None) -> Population:
    """The population with what rule recovery proposed; only rules it stands by go into `rules`."""
    rules = {item.label: item.rule for item in proposals if item.status == "proposed" and item.rule is not None}
    told = tuple(item.to_json() for item in proposals)
    return replace(population, rules=rules, proposals=told, interplay=interplay)


def with_read_rules(population: Population, sources: Sequence[Source]) -> Population:
    """The population with the parts of its rules, recovered from the first source, among what the prior reads."""
    if population.prior is None:
        return population
    rules = {label: parse(text) for label, text in population.rules.items()}
    classical = population.prior.classical
    features = features_by_label(classical, rules)
    news = not_counted(population.evidence.patterns, features)
    counts = [count_patterns(data, news) for data in _datasets(sources).values()]
    evidence = merge([population.evidence, *counts])
    prior = fit_prior(evidence, classical, rules)
    mined = pack_subjects(sources[0].dataset.subject_ids) if sources else None
    prior = replace(prior, rule_subjects=mined, never_without=population.prior.never_without)
    return replace(population, evidence=evidence, prior=prior)


def _datasets(sources: Sequence[Source]) -> dict[str, Dataset]:
    """Each dataset once, by its digest."""
    return {str(source.dataset.info.get("digest") or source.dataset.path): source.dataset for source in sources}


def _statistics(populations: Sequence[Path | str]) -> tuple[list[FleetEvidence], set[str]]:
    """The sums of populations, and the datasets whose labels they counted; each dataset is counted once."""
    parts: list[FleetEvidence] = []
    counted: set[str] = set()
    for folder in populations:
        part, mine = read_statistics(folder), set(read_info(folder)["counted"])
        if mine & counted:
            if not mine <= counted:
                raise UsageError(f"{folder}: counted labels of some datasets that others counted too, and of others")
            part = replace(part, patterns=part.patterns.slice(0, 0))
        parts.append(part)
        counted |= mine
    return parts, counted


def with_rule_drift(population: Population, dataset: Dataset, recover: Recover) -> Population:
    """The population with what became of each proposed rule, best guesses too, in every window of `start` and, part by
    part, before and after any date; a rule with a part that does not work on one side of a date is no longer stated.
    """
    settings = population.info["settings"]
    if settings["window_days"] is None and dataset.start.null_count == len(dataset):
        return population
    rules = {str(item["label"]): str(item["rule"]) for item in population.proposals if item["rule"] is not None}
    bounds = settings["boundaries"]
    table = rule_drift(
        rules, dataset, settings["window_days"], recover=recover, alpha=bounds["alpha"], delta=bounds["delta"]
    )
    return _without_changed(replace(population, rule_drift=table), doubts(table))


def _without_changed(population: Population, why: Mapping[str, Sequence[str]]) -> Population:
    """Rules that changed are best guesses: not in `rules`, without confidence, and with the reasons."""
    told = [
        {**item, "status": NONE, "confidence": 0.0, "reasons": (*item["reasons"], *why[item["label"]])}
        if item["label"] in why
        else item
        for item in population.proposals
    ]
    kept = {label: rule for label, rule in population.rules.items() if label not in why}
    return replace(population, rules=kept, proposals=tuple(told))


def _looks(source: Source, first: FleetPrior, config: AssemblyConfig, on_progress: OnProgress | None) -> FleetEvidence:
    assert source.models is not None  # noqa: S101 - the caller asked
    chosen = choose_sequences(read_table(source.results, "verdicts"), config.looks_per_label)
    how = Calibration(first, (config.intervention, FusedConfig()), config.seed)
    return calibrate(source.models, source.dataset, chosen, how, on_progress=on_progress)


def _inputs(sources: Sequence[Source], populations: Sequence[Path | str]) -> list[str]:
    """Fingerprints of all runs that go in; a run that goes in twice would count twice."""
    names = [str(source.run.get("fingerprint")) for source in sources]
    names += [name for folder in populations for name in read_info(folder)["inputs"]]
    if len(set(names)) != len(names):
        raise UsageError("population: the same results are given twice, or are in a population that is given too")
    if not names:
        raise UsageError("population: expected at least one results folder, got none")
    return sorted(names)


def _check_windows(populations: Sequence[Path | str], window_days: float | None) -> None:
    for folder in populations:
        other = read_info(folder)["settings"].get("window_days")
        if other != window_days:
            raise UsageError(f"{folder}: was made with windows of {other} days, expected {window_days} as here")


def _mean_rate(prior: FleetPrior) -> Callable[[str, str], float]:
    by_pair = dict(zip(_pairs(prior.pairs), prior.rates.mean(1).tolist(), strict=True))
    return lambda label, event: by_pair[label, event]


def _member(classical: Classical) -> Callable[[str, str], bool | None]:
    return lambda label, event: event in classical.members[label] if label in classical.members else None


def _pairs(table: pa.Table) -> list[tuple[str, str]]:
    return list(zip(table["label"].to_pylist(), table["event"].to_pylist(), strict=True))


def split_inputs(folders: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Results folders and population folders."""
    return [path for path in folders if not is_population(path)], [path for path in folders if is_population(path)]
