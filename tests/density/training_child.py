"""Started by the training tests as a process of its own (to be killed, or under torchrun): trains, prints the losses.

Arguments: dataset folder, model folder, settings as JSON. Each step prints one line: step, event loss, label loss.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from oscar_causal.data.sequences import read_dataset
from oscar_causal.density.fitting import train
from oscar_causal.density.partial import is_main_process
from oscar_causal.density.settings import TrainConfig


def tell(step: int, steps: int, figures: dict[str, float]) -> None:
    if is_main_process():
        print(json.dumps([step, figures["event_loss"], figures["label_loss"]]), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    data, out, settings = sys.argv[1:]
    train(read_dataset(data), Path(out), TrainConfig.from_json(json.loads(settings)), on_step=tell)
