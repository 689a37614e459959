"""Rules: a small language that says when a label comes; how to read, evaluate, explain, compare and publish them."""

from oscar_causal.data.rules.evaluate import evaluate
from oscar_causal.data.rules.index import EventIndex
from oscar_causal.data.rules.logic import equivalent, positive_part
from oscar_causal.data.rules.parser import parse
from oscar_causal.data.rules.published import PublishedRule, read_rules, write_rules
from oscar_causal.data.rules.reasons import Reason, reasons
from oscar_causal.data.rules.shortest import literal_count, shortest
from oscar_causal.data.rules.tree import (
    And,
    AtLeast,
    Event,
    Not,
    Or,
    Rule,
    Then,
    all_of,
    any_of,
    atoms,
    chain_steps,
    event_names,
    format_rule,
    negated_names,
    positive_names,
)

__all__ = [
    "And",
    "AtLeast",
    "Event",
    "EventIndex",
    "Not",
    "Or",
    "PublishedRule",
    "Reason",
    "Rule",
    "Then",
    "all_of",
    "any_of",
    "atoms",
    "chain_steps",
    "equivalent",
    "evaluate",
    "event_names",
    "format_rule",
    "literal_count",
    "negated_names",
    "parse",
    "positive_names",
    "positive_part",
    "read_rules",
    "reasons",
    "shortest",
    "write_rules",
]
