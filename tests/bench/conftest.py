"""How do tests of the measuring programs use the machine? One thread, since several of them run at once."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
