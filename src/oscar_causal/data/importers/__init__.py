"""Ways in: tables of other shapes become a dataset folder."""

from oscar_causal.data.importers.options import ImportOptions, ImportSummary
from oscar_causal.data.importers.pipeline import import_tables

__all__ = ["ImportOptions", "ImportSummary", "import_tables"]
