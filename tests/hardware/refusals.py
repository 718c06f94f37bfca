"""What does a test of refusals need?"""

from __future__ import annotations

import pytest

from commsim.errors import InputError
from commsim.hardware.nccl_xml import read_xml


def refused(xml: str, accelerator: str | None = None) -> str:
    """Return the one line that says why the XML is no machine."""
    with pytest.raises(InputError) as caught:
        read_xml(xml, accelerator)
    assert "\n" not in str(caught.value)
    return str(caught.value)
