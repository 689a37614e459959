# %% [markdown]
# # Incidents in a log
#
# Log keys of nights, incidents as labels, and two routes to one incident: *the disk slows, then a retry*, or *a
# certificate expires, then a login*. The events of the other route often stand by in the wrong order. Which route was
# it this night?

# %%
import csv
import json
import tempfile
from pathlib import Path

import numpy as np

import oscar_causal as oc

place = Path(tempfile.mkdtemp())
rng = np.random.default_rng(1)
routine = [f"job {k}" for k in range(16)]
routes = [("disk slow", "retry"), ("certificate expired", "login")]
four = [event for route in routes for event in route]
truth = {}


def night(k):
    """Events in order, whether there was an incident, and the route that brought it."""
    events = list(rng.choice(routine, rng.integers(4, 8)))
    for event in four:
        if rng.random() < 0.8:
            events.insert(int(rng.integers(0, len(events) + 1)), event)
    fired = {
        event
        for a, b in routes
        if a in events and b in events and events.index(a) < events.index(b)
        for event in (a, b)
    }
    truth[f"night {k}"] = fired
    return events, bool(fired)


with (place / "log.jsonl").open("w") as log, (place / "incidents.csv").open("w", newline="") as incidents:
    table = csv.writer(incidents)
    table.writerow(["case_id", "label"])
    for k in range(4000):
        events, incident = night(k)
        for minute, event in enumerate(events):
            log.write(json.dumps({"case_id": f"night {k}", "time": 60 * minute, "event": event}) + "\n")
        if incident:
            table.writerow([f"night {k}", "outage"])

oc.import_tables([place / "log.jsonl"], place / "nights", oc.ImportOptions(labels=place / "incidents.csv"))
nights = oc.read_dataset(place / "nights")
nights

# %% [markdown]
# ## Train and check

# %%
quality = oc.train(nights, place / "model", oc.TrainConfig(steps=500, batch_tokens=2048, min_context=2, evaluations=5))
quality["per_label"]["outage"]["f1"], quality["per_label"]["outage"]["trusted"]

# %% [markdown]
# ## Which route was it?

# %%
models = oc.load_models(place / "model")
unseen = np.flatnonzero(~models.seen_in_training(nights.subject_ids))
chosen = [k for k in unseen if nights.labels_of(k)][:60]
config = oc.DiscoveryConfig(intervention=oc.InterventionConfig(contexts=96))
oc.discover_folder(place / "model", place / "nights", place / "causes", config, indices=np.array(chosen))
found = {part.sequence_id: {item.event for item in part.causes} for part in oc.read_boundaries(place / "causes")}


def scores(answer):
    hits = sum(len(answer[name] & truth[name]) for name in answer)
    return hits / max(1, sum(map(len, answer.values()))), hits / sum(len(truth[name]) for name in answer)


print("one-shot:            precision {:.2f}, recall {:.2f}".format(*scores(found)))

# %% [markdown]
# A perfect *global* boundary knows all four events, and must blame every one that is present:

# %%
present = {name: set(four) & set(nights.events_of(int(nights.index_of([name])[0]))) for name in found}
print("all four if present: precision {:.2f}, recall {:.2f}".format(*scores(present)))

# %% [markdown]
# Nights in which the other route stood by in the wrong order:

# %%
decoys = [name for name in found if present[name] - truth[name]]
right = sum(not (found[name] - truth[name]) for name in decoys)
print(f"{len(decoys)} nights with bystanders; in {right} of them none was blamed")

# %% [markdown]
# What one-shot evidence misses it calls `not resolvable`; more contexts resolve more. Where both routes fired, each
# stands in for the other.
#
# ## One night in words

# %%
name = decoys[0]
index = int(nights.index_of([name])[0])
print(nights.events_of(index), "| truth:", sorted(truth[name]))
(boundary,) = next(oc.discover(models.models[0], nights, config, indices=[index]))
boundary
