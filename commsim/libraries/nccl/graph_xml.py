"""What graphs did NCCL find on a machine, as NCCL_GRAPH_DUMP_FILE wrote them?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path as File
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from commsim.errors import InputError
from commsim.hardware.nccl_xml.elements import LARGEST_FILE, Element, opened
from commsim.libraries.nccl.graphs import Graph, Graphs, Path, Pattern

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as Parsed

NAMES = {0: "ring", 1: "tree", 2: "collnet_chain", 3: "nvls", 4: "collnet_direct"}
"""The graphs by NCCL's numbers (`id`)."""
_GIGABYTE, _MICROSECOND = 1e9, 1e-6
_MOST_CHANNELS = 1024


def read_graphs(source: str | File) -> Graphs:
    """Return the graphs of a file that NCCL_GRAPH_DUMP_FILE wrote (a path, or the text itself).

    A file without a graph of some kind leaves that one empty. InputError says in one line which element cannot be.
    """
    if isinstance(source, str) and source.lstrip().startswith("<"):
        root = _root(source, "graphs")
    else:
        root = _root(opened(File(source)), str(source))
    found: dict[str, Graph] = {}
    for element in root.each("graph"):
        number = element.needed("id")
        if number not in NAMES or NAMES[number] in found:
            raise InputError(f"{element.where}: id", number, "0 to 4 belong here, each once: NCCL has five graphs")
        found[NAMES[number]] = _graph(element)
    if not found:
        raise InputError(root.where, "no graph", "<graph> elements belong here: what NCCL_GRAPH_DUMP_FILE writes")
    return replace(Graphs(), **found)


def _root(content: bytes | str, name: str) -> Element:
    """The element around the graphs; `name` names the file in errors."""
    if len(content) > LARGEST_FILE:
        raise InputError(name, f"{len(content)} bytes", f"at most {LARGEST_FILE} bytes are read")
    try:
        parsed = fromstring(content, forbid_dtd=True)
    except DefusedXmlException:
        raise InputError(name, "a document type or entity", "plain XML without them belongs here") from None
    except (ParseError, LookupError, ValueError) as error:
        raise InputError(name, str(error), "well-formed XML belongs here") from None
    if parsed.tag != "graphs":
        raise InputError(name, f"<{parsed.tag}>", "<graphs> belongs here: what NCCL_GRAPH_DUMP_FILE writes")
    root = Element("graphs", dict(parsed.attrib), Element(name, {}))
    root.children = [_placed(child, root) for child in parsed]
    return root


def _placed(parsed: Parsed, above: Element) -> Element:
    """A graph with its channels, each of which knows where it stands."""
    element = Element(parsed.tag, dict(parsed.attrib), above)
    element.children = [Element(child.tag, dict(child.attrib), element) for child in parsed]
    return element


def _graph(element: Element) -> Graph:
    number = element.needed("pattern")
    if number not in list(Pattern):
        raise InputError(f"{element.where}: pattern", number, "a pattern from 1 (balanced tree) to 6 belongs here")
    channels = element.number("nchannels", 0, _MOST_CHANNELS)
    return Graph(
        pattern=Pattern(number),
        channels=len(element.each("channel")) if channels is None else channels,
        speed_intra=element.amount("speedintra") * _GIGABYTE,
        speed_inter=element.amount("speedinter") * _GIGABYTE,
        type_intra=_path(element, "typeintra"),
        type_inter=_path(element, "typeinter"),
        same_channels=bool(element.needed("samechannels", 0, 1)),
        cross_nic=element.number("crossnic", 0, 2) or 0,
        latency_inter=element.amount("latencyinter") * _MICROSECOND,
    )


def _path(element: Element, name: str) -> Path:
    given = element.text(name)
    if given not in Path.__members__:
        raise InputError(f"{element.where}: {name}", given, "a kind of path belongs here", among=Path.__members__)
    return Path[given]
