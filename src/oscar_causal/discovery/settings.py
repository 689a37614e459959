"""What `discover` explains, and how: the settings of a run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from oscar_causal.data.vocabulary import Vocabulary
from oscar_causal.discovery.extensions import (
    Estimator,
    Replacement,
    is_own,
    own_digest,
    own_estimand,
    own_function,
    own_name,
)
from oscar_causal.discovery.finalists import WORTH
from oscar_causal.discovery.fused import FusedConfig
from oscar_causal.discovery.intervention import FALL, InterventionConfig
from oscar_causal.discovery.knowledge import Knowledge
from oscar_causal.discovery.prefix import PrefixConfig
from oscar_causal.discovery.prior_files import prior_digest, refuse_foreign
from oscar_causal.discovery.sources import REPLACEMENTS
from oscar_causal.errors import UsageError

ESTIMATORS = {
    "fused": "whether an event type has that effect here: this sequence's evidence with a prior from the fleet",
    "intervention": "controlled direct effect of an event type on the model's P(label | whole sequence)",
    "prefix": "information gain of each event over the forecast of the label, averaged over sampled pasts (Eq. 4)",
}
"""Estimator -> what it estimates."""


@dataclass(frozen=True)
class DiscoveryConfig:
    """What to explain, and how.

    >>> config = DiscoveryConfig(intervention=InterventionConfig(alpha=0.01), labels=("outage",), seed=7)
    >>> config.estimator, config.intervention.alpha
    ('intervention', 0.01)
    """

    estimator: str | Estimator = "intervention"
    """intervention (default), fused (with a population), prefix (the paper's), or your own: a function or its name
    `module:function`."""
    intervention: InterventionConfig = field(default_factory=InterventionConfig)
    prefix: PrefixConfig = field(default_factory=PrefixConfig)
    fused: FusedConfig = field(default_factory=FusedConfig)
    labels: str | tuple[str, ...] = "observed"
    """observed (recorded ones), predicted (P > 0.5), or names of labels to explain in every sequence."""
    excluded: tuple[str, ...] = ()
    """Events that are never replaced, tested or accepted; the same as `knowledge.excluded`."""
    knowledge: Knowledge = field(default_factory=Knowledge)
    """Events excluded, forbidden or required, for all labels or for one."""
    replacement: str | Replacement = "model"
    """What stands where an event is taken out: model (Tf_x), marginal, donors, delete, or your own function."""
    seed: int = 0
    """Decides masks and draws."""

    def __post_init__(self) -> None:
        if is_own(self.estimator):
            own_function(self.estimator, "estimator")
        elif self.estimator not in ESTIMATORS:
            known = f"{', '.join(ESTIMATORS)} or module:function"
            raise UsageError(f"estimator: expected one of {known}, got {self.estimator!r}")
        if (self.estimator == "fused") != (self.fused.population is not None):
            raise UsageError("population: the estimator fused needs a population folder, and no other takes one")
        if isinstance(self.labels, str) and self.labels not in ("observed", "predicted"):
            raise UsageError(f"labels: expected observed, predicted or a list of names, got {self.labels!r}")
        twice = [name for k, name in enumerate(self.labels) if name in self.labels[:k]]
        if twice and not isinstance(self.labels, str):
            raise UsageError(f"labels: expected different ones, got {twice[0]!r} twice")
        if is_own(self.replacement):
            own_function(self.replacement, "replacement")
        elif self.replacement not in REPLACEMENTS:
            known = f"{', '.join(REPLACEMENTS)} or module:function"
            raise UsageError(f"replacement: expected one of {known}, got {self.replacement!r}")
        if self.estimator == "prefix" and self.replacement == "delete":
            raise UsageError("replacement: prefix draws the first events anew; expected model, marginal or donors")
        self._refuse_idle_settings()
        _ = self.known  # excluded here and required there is refused at birth

    def _refuse_idle_settings(self) -> None:
        """What the estimator would not look at must not pass for a setting."""
        for name, kind in (("intervention", InterventionConfig), ("prefix", PrefixConfig)):
            if name not in self._used and getattr(self, name) != kind():
                raise UsageError(f"{name}: its settings mean nothing to the estimator {self.estimator_name}")

    @property
    def _used(self) -> tuple[str, ...]:
        """Which of the estimators' settings this run looks at."""
        return ("fused", "intervention") if self.estimator == "fused" else (self.estimator_name,)

    def check(self, vocabulary: Vocabulary) -> None:
        """Refuse names of labels and events that a model does not know."""
        self.known.check(vocabulary)
        unknown = [name for name in self.labels if name not in vocabulary.label_ids]
        if unknown and not isinstance(self.labels, str):
            raise UsageError(f"labels: the model does not know {unknown[0]!r}")
        if self.fused.population is not None:
            refuse_foreign(self.fused.population, vocabulary.labels if isinstance(self.labels, str) else self.labels)

    @property
    def known(self) -> Knowledge:
        """All background knowledge."""
        return replace(self.knowledge, excluded=(*self.knowledge.excluded, *self.excluded))

    @property
    def estimator_name(self) -> str:
        """As runs record it: the estimator's name, or `module:function`."""
        return own_name(self.estimator)

    @property
    def estimand(self) -> str:
        """What is estimated, in words."""
        return own_estimand(self.estimator) if is_own(self.estimator) else ESTIMATORS[self.estimator_name]

    def to_json(self) -> dict[str, Any]:
        """All settings that decide the results; own functions by name and by a hash of their source."""
        settings = asdict(self)
        kept = {key: value for key, value in settings.items() if key not in ESTIMATORS or key in self._used}
        if "intervention" in kept:
            kept["intervention"] |= {"least_share": WORTH, "odds_fall": FALL}
        if self.fused.population is not None:
            kept["fused"] |= {"digest": prior_digest(self.fused.population)}
        own = {key: getattr(self, key) for key in ("estimator", "replacement") if is_own(getattr(self, key))}
        if not own:
            return kept
        named = {key: own_name(choice) for key, choice in own.items()}
        return {**kept, **named, "functions": {key: own_digest(choice, key) for key, choice in own.items()}}
