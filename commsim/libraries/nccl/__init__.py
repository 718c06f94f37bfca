"""What does NCCL do, and how long does it take?"""

from commsim.libraries.nccl.library import Nccl

__all__ = ["Nccl"]
