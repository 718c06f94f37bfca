"""What does `nvidia-smi topo -m` say of a machine?"""

from commsim.hardware.topo_matrix.read import machine, read_matrix

__all__ = ["machine", "read_matrix"]
