"""Worlds outside the grammar of rules: labels by formula, with their true probabilities and reasons.

Read in this order: `occurrences` (what a mechanism sees), `features` (presence, recency, rate, value, order, ...),
`mechanism` (features and a link give P), `planting` and `kinds` (every constant drawn by the seed), `world`
(sequences), `reasons` (what a cause is, by definition), `truth` (of drawn sequences), `write` (dataset folders).
Beside them a world whose mechanism is a program: `sql_facts`, `sql_scripts`, `sql`.
"""

from oscar_causal.data.synthetic.worlds.kinds import CORE, FIRST_RECORDED_SEED, KINDS, RECORD_ONLY, STATE_DECIDES
from oscar_causal.data.synthetic.worlds.occurrences import Recorded
from oscar_causal.data.synthetic.worlds.reasons import DELTA, Reason, reasons, subsets
from oscar_causal.data.synthetic.worlds.sql import SQL, SqlWorld, draw_sql, explain_sql, make_sql_world
from oscar_causal.data.synthetic.worlds.truth import Explained, audit, explain
from oscar_causal.data.synthetic.worlds.world import Drawn, World, draw, make_world

__all__ = [
    "CORE",
    "DELTA",
    "FIRST_RECORDED_SEED",
    "KINDS",
    "RECORD_ONLY",
    "SQL",
    "STATE_DECIDES",
    "Drawn",
    "Explained",
    "Reason",
    "Recorded",
    "SqlWorld",
    "World",
    "audit",
    "draw",
    "draw_sql",
    "explain",
    "explain_sql",
    "make_sql_world",
    "make_world",
    "reasons",
    "subsets",
]
