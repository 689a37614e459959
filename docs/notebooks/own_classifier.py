# %% [markdown]
# # A cohort in MEDS, and a classifier of your own
#
# A Hugging Face classifier that is already there is explained; OSCAR trains nothing. The cohort is invented: hospital
# stays with events, many of them with the same timestamp. *Fever and a low blood pressure together* bring the label
# `sepsis`; an antibiotic tends to follow fever and causes nothing.

# %%
import tempfile
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification
from transformers.utils import logging

import oscar_causal as oc
from oscar_causal.density import adapters

logging.set_verbosity_error()
place = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
routine = [f"routine {k}" for k in range(24)]


def stay(k):
    events = list(rng.choice(routine, rng.integers(5, 11)))
    if rng.random() < 0.5:
        events += ["fever"] + ["antibiotic"] * int(rng.random() < 0.7)
    if rng.random() < 0.5:
        events.append("low pressure")
    if rng.random() < 0.15:
        events.append("antibiotic")  # for another reason: nobody could tell fever from what always comes with it
    events = rng.permutation(events).tolist()
    times = np.sort(rng.integers(0, 6, len(events))) * 3600.0  # rounds of the ward: ties everywhere
    sick = {"fever", "low pressure"} <= set(events)
    return {"sequence_id": f"stay {k}", "events": events, "times": times.tolist(), "labels": ["sepsis"] * sick}


cohort = oc.from_records(stay(k) for k in range(2400))

# %% [markdown]
# ## Out to MEDS and back
#
# The same functions read a cohort that was MEDS from the beginning.

# %%
from oscar_causal.data.writer import write_dataset
import pyarrow as pa

rows = [
    {
        "sequence_id": cohort.sequence_ids[k].as_py(),
        "events": cohort.events_of(k),
        "times": cohort.times[cohort.events.offsets[k] : cohort.events.offsets[k + 1]].tolist(),
        "labels": cohort.labels_of(k),
    }
    for k in range(len(cohort))
]
write_dataset(place / "cohort", [pa.Table.from_pylist(rows)])
oc.export_meds(place / "cohort", place / "meds")
meds = oc.read_meds(place / "meds", labels=place / "meds" / "labels")
meds

# %% [markdown]
# ## The classifier that "is already there"
#
# A small BERT without positions would do; here it has them, and must learn that order means nothing.

# %%
vocabulary = oc.build_vocabulary(meds)
tokens = {name: 3 + k for k, name in enumerate(vocabulary.events)}  # 0 padding, 1 in front, 2 behind
torch.manual_seed(0)
bert = BertForSequenceClassification(
    BertConfig(
        vocab_size=3 + len(tokens),
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=1,
        problem_type="multi_label_classification",
        id2label={0: meds.label_names[0]},
    )
)


def batch(indices):
    rows = [[1, *(tokens[name] for name in meds.events_of(k)), 2] for k in indices]
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    return ids, torch.tensor([[float(bool(meds.labels_of(k)))] for k in indices])


optimiser = torch.optim.AdamW(bert.parameters(), lr=2e-3)
for _ in range(220):
    ids, wanted = batch(rng.integers(0, 2000, 64))
    loss = bert(input_ids=ids, attention_mask=(ids > 0).long(), labels=wanted).loss
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
bert.eval()
ids, wanted = batch(range(2000, 2400))
with torch.inference_mode():
    right = ((bert(input_ids=ids, attention_mask=(ids > 0).long()).logits > 0) == (wanted > 0)).float().mean()
print(f"right in {right:.1%} of 400 stays it has not seen")

# %% [markdown]
# ## Explain it
#
# What stands where an event is taken out: events by their frequency. (A language model over events would be better.)

# %%
model = adapters.combine(
    labels=adapters.classifier(bert, tokens, before=(1,), after=(2,)),
    events=adapters.marginal(meds, vocabulary),
)
held_out = [k for k in range(2000, 2400) if meds.labels_of(k)][:12]
boundaries = [part for found in oc.discover(model, meds, oc.DiscoveryConfig(), indices=held_out) for part in found]
oc.to_pandas(boundaries)[["sequence_id", "event", "verdict", "indicator", "alone", "q_value"]]

# %%
graph = oc.to_networkx(boundaries)
sorted((event, label) for event, label in graph.edges)

# %% [markdown]
# The antibiotic goes with sepsis in the data and is not accepted. Half the events share a timestamp: how many
# verdicts hang on the order inside a tie?

# %%
sum("order inside a timestamp matters" in flag for part in boundaries for flag in part.flags), len(boundaries)

# %% [markdown]
# ## A negative control
#
# Stays whose label the classifier gives a coin's chance whatever happened: nothing should be found.

# %%
coin = adapters.combine(
    labels=adapters.from_function(lambda rows: [[0.5]] * len(rows), vocabulary),
    events=adapters.marginal(meds, vocabulary),
)
found = [part for group in oc.discover(coin, meds, oc.DiscoveryConfig(), indices=held_out) for part in group]
sum(len(part.causes) for part in found)
