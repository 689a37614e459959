"""Synthetic fleets whose causes are known: sequences with their rules and, for every label, the reasons."""

from oscar_causal.data.synthetic.config import BLOCK_SEQUENCES, FleetConfig
from oscar_causal.data.synthetic.draw import Block, draw_block
from oscar_causal.data.synthetic.presets import PRESETS, knob_help, parse_settings, preset
from oscar_causal.data.synthetic.world import World, make_world
from oscar_causal.data.synthetic.write import write_fleet

__all__ = [
    "BLOCK_SEQUENCES",
    "PRESETS",
    "Block",
    "FleetConfig",
    "World",
    "draw_block",
    "knob_help",
    "make_world",
    "parse_settings",
    "preset",
    "write_fleet",
]
