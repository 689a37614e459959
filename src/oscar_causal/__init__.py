"""OSCAR: which events caused each outcome in this very sequence, how strongly, in which direction, and how sure are we?

Public names are imported when they are first used, so that `import oscar_causal` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "Dataset": "oscar_causal.data.sequences",
    "from_records": "oscar_causal.data.sequences",
    "from_table": "oscar_causal.data.sequences",
    "read_dataset": "oscar_causal.data.sequences",
    "write_dataset": "oscar_causal.data.writer",
    "ImportOptions": "oscar_causal.data.importers",
    "import_tables": "oscar_causal.data.importers",
    "read_long": "oscar_causal.data.readers",
    "read_meds": "oscar_causal.data.readers",
    "read_xes": "oscar_causal.data.readers",
    "Selection": "oscar_causal.data.select",
    "select_sequences": "oscar_causal.data.select",
    "inspect_dataset": "oscar_causal.data.inspect",
    "export_tables": "oscar_causal.data.export",
    "export_meds": "oscar_causal.data.export_meds",
    "Vocabulary": "oscar_causal.data.vocabulary",
    "build_vocabulary": "oscar_causal.data.vocabulary",
    "train": "oscar_causal.density.fitting",
    "TrainConfig": "oscar_causal.density.settings",
    "load_model": "oscar_causal.density.checkpoint",
    "load_models": "oscar_causal.density.folds",
    "check": "oscar_causal.density.checking",
    "discover": "oscar_causal.discovery.oneshot",
    "discover_folder": "oscar_causal.discovery.local",
    "DiscoveryConfig": "oscar_causal.discovery.oneshot",
    "FusedConfig": "oscar_causal.discovery.fused",
    "InterventionConfig": "oscar_causal.discovery.intervention",
    "PrefixConfig": "oscar_causal.discovery.prefix",
    "Knowledge": "oscar_causal.discovery.knowledge",
    "LabelKnowledge": "oscar_causal.discovery.knowledge",
    "read_knowledge": "oscar_causal.discovery.knowledge",
    "Boundary": "oscar_causal.discovery.boundary",
    "EventEvidence": "oscar_causal.discovery.boundary",
    "to_networkx": "oscar_causal.graph.boundary_graph",
    "to_pandas": "oscar_causal.report.frames",
    "explain_run": "oscar_causal.report.methods",
    "recover_rules": "oscar_causal.graph.rule_recovery",
    "RuleProposal": "oscar_causal.graph.rule_recovery",
    "RuleRecoveryConfig": "oscar_causal.graph.rule_recovery",
    "compare_with_expert": "oscar_causal.graph.rule_recovery",
    "label_interplay": "oscar_causal.graph.interplay",
    "label_graph": "oscar_causal.graph.interplay",
    "read_boundaries": "oscar_causal.graph.boundary_graph",
    "sequence_graph": "oscar_causal.graph.boundary_graph",
    "population_graph": "oscar_causal.graph.boundary_graph",
    "filter_graph": "oscar_causal.graph.boundary_graph",
    "edge_table": "oscar_causal.graph.formats",
    "write_graph": "oscar_causal.graph.formats",
    "draw": "oscar_causal.report.drawing",
    "score_results": "oscar_causal.score.scoring",
    "compare_results": "oscar_causal.score.scoring",
    "OscarError": "oscar_causal.errors",
    "UsageError": "oscar_causal.errors",
    "DataError": "oscar_causal.errors",
    "FolderError": "oscar_causal.errors",
    "MissingExtra": "oscar_causal.errors",
}

__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'oscar_causal' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
