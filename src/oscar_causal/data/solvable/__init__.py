"""An exactly solvable process of events and labels: the oracle that estimators are tested against.

process = solvable.example("announcer")
drawn = process.sample(1000, np.random.default_rng(0))
process.next_event_probs(drawn.event_ids[:, :3])    # what an ideal Tf_x says, (1000, V)
process.label_probs_along(drawn.event_ids)          # what an ideal Tf_y says of every prefix, (1000, L+1, Y)
process.eq4(0, drawn.event_ids[0], c=2)             # where the paper's estimator converges, (L,)
process.direct_effects(drawn.event_ids[0], r=0.2)   # where the intervention estimator converges
"""

from oscar_causal.data.solvable.config import Effect, HiddenDriver, LabelLaw, Pull, SolvableConfig
from oscar_causal.data.solvable.examples import EXAMPLES, example
from oscar_causal.data.solvable.information import bernoulli_entropy, bernoulli_kl, truncate
from oscar_causal.data.solvable.oracle import ExactOracle, PerturbedOracle
from oscar_causal.data.solvable.process import SolvableProcess
from oscar_causal.data.solvable.sampling import SolvableSample

__all__ = [
    "EXAMPLES",
    "Effect",
    "ExactOracle",
    "HiddenDriver",
    "LabelLaw",
    "PerturbedOracle",
    "Pull",
    "SolvableConfig",
    "SolvableProcess",
    "SolvableSample",
    "bernoulli_entropy",
    "bernoulli_kl",
    "example",
    "truncate",
]
