"""Small host arrays sent to a device without waiting for it.

A plain copy from pageable memory makes the host wait until the device has done all its work so far; ten such waits for
every sequence leave a GPU idle for a quarter of the time. From pinned memory the copy only joins the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def send(values: Any, device: torch.device) -> Tensor:
    """An array or tensor on a device; the same memory where it lies there already.

    >>> send([1, 2], torch.device("cpu")).tolist()
    [1, 2]
    """
    tensor = torch.as_tensor(values)
    if device.type != "cuda" or tensor.device.type != "cpu":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def send_together(values: Sequence[Any], device: torch.device) -> list[Tensor]:
    """The same of several arrays that differ in their first size alone, in one copy.

    >>> send_together([[1, 2], [3]], torch.device("cpu"))
    [tensor([1, 2]), tensor([3])]
    """
    tensors = [torch.as_tensor(part) for part in values]
    return list(torch.split(send(torch.cat(tensors), device), [len(part) for part in tensors])) if tensors else []
