"""How does NCCL describe a machine? Its topology files, read and written."""

from commsim.hardware.nccl_xml.read import machine, read_xml
from commsim.hardware.nccl_xml.write import write_xml

__all__ = ["machine", "read_xml", "write_xml"]
