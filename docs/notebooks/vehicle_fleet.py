# %% [markdown]
# # A vehicle fleet
#
# Trouble codes of drives, failures as labels. The fleet is synthetic, so the true reasons are known and the answers
# can be checked. It is small enough for a minute on two cores: read its figures as an example.

# %%
import json
import tempfile
from pathlib import Path

import numpy as np

import oscar_causal as oc
from oscar_causal.data.synthetic import preset, write_fleet

place = Path(tempfile.mkdtemp())
sizes = {"event_types": 80, "labels": 4, "mean_length": 20.0, "sd_length": 5.0, "boundary_sizes": ((2, 1.0),)}
write_fleet(preset("demo", sequences=3000, **sizes), 3, place / "fleet", workers=1)
fleet = oc.read_dataset(place / "fleet")
fleet

# %% [markdown]
# Each failure follows a rule, which training never sees. Symptoms, precursors and near misses are mixed in.

# %%
json.loads((place / "fleet" / "rules.json").read_text(encoding="utf-8"))

# %% [markdown]
# ## Train, and ask whether the model can be believed

# %%
config = oc.TrainConfig(steps=220, batch_tokens=3072, min_context=5, evaluations=4)
quality = oc.train(fleet, place / "model", config)
for label, figures in quality["per_label"].items():
    print(
        f"{label}: F1 {figures['f1']:.2f} on {figures['positives']} held-out positives, trusted: {figures['trusted']}"
    )

# %% [markdown]
# ## Discover, in cars the model has not seen

# %%
models = oc.load_models(place / "model")
unseen = np.flatnonzero(~models.seen_in_training(fleet.subject_ids))
config = oc.DiscoveryConfig(intervention=oc.InterventionConfig(contexts=96))
oc.discover_folder(place / "model", place / "fleet", place / "causes", config, indices=unseen[:80])
frame = oc.to_pandas(place / "causes")
frame[["sequence_id", "label", "event", "verdict", "indicator", "alone", "q_value"]].head(10)

# %% [markdown]
# Because this fleet knows its reasons, the verdicts can be scored, beside those of the paper's estimator and of a
# classical method that sees all sequences at once.

# %%
from oscar_causal.discovery.classical.folder import baseline_folder

prefix = oc.DiscoveryConfig(estimator="prefix", prefix=oc.PrefixConfig(context=5))
oc.discover_folder(place / "model", place / "fleet", place / "prefix", prefix, indices=unseen[:80])
baseline_folder(place / "fleet", place / "iamb")
for name in ("causes", "prefix", "iamb"):
    figures = oc.score_results(place / name, dataset=place / "fleet")["truth"]["why"]["micro"]
    print(f"{name:7s} precision {figures['precision']:.2f}  recall {figures['recall']:.2f}")

# %% [markdown]
# The rules here are mere presence, and a global boundary read by presence is hard to beat on such a fleet; it was
# learnt from all 3,000 drives, those it is scored on included. Where order or routes matter the picture turns: see
# the log study.
#
# ## One picture, one paragraph

# %%
graph = oc.filter_graph(oc.population_graph(oc.read_boundaries(place / "causes")), top=12)
oc.draw(graph, place / "graph.png", title="accepted in 80 drives")

from IPython.display import Image

Image(place / "graph.png", width=700)

# %%
oc.explain_run(place / "causes")
