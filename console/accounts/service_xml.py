"""Service properties as XML for the editor: their text, version, and comparison of two versions."""

import hashlib
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from console.site.xml_text import indent_xml
from storage.domain.service_properties.properties import PropertiesUpdate, ServiceProperties
from storage.domain.service_properties.xml import FIRST_PARTIAL_VERSION, read_properties, write_properties

CONTEXT: Final = 3  # lines shown around a difference


def read_update(text: str) -> PropertiesUpdate:
    """Parse the changes in edited XML; raises StorageError."""
    return read_properties(text.encode(errors="surrogatepass"), FIRST_PARTIAL_VERSION)


def write_xml(properties: ServiceProperties) -> str:
    """Serialize the properties like the service, indented."""
    return indent_xml(write_properties(properties, FIRST_PARTIAL_VERSION))


def version_of(properties: ServiceProperties) -> str:
    """Return a digest of the properties, to detect concurrent saves."""
    return hashlib.sha256(write_properties(properties, FIRST_PARTIAL_VERSION)).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """Line of a compared version; ``is_gap`` stands for omitted common lines."""

    text: str = ""
    is_different: bool = False
    is_gap: bool = False


def compare_lines(text: str, other: str) -> list[ComparedLine]:
    """Return the differing lines of a text, with some context."""
    lines = text.splitlines()
    matcher = SequenceMatcher(None, lines, other.splitlines(), autojunk=False)
    near = {
        number
        for tag, start, end, _start, _end in matcher.get_opcodes()
        if tag != "equal"
        for number in range(start - CONTEXT, end + CONTEXT)
    }
    same = {start + offset for start, _start, size in matcher.get_matching_blocks() for offset in range(size)}
    compared: list[ComparedLine] = []
    for number, line in enumerate(lines):
        if number in near:
            compared.append(ComparedLine(line, is_different=number not in same))
        elif not compared or not compared[-1].is_gap:
            compared.append(ComparedLine(is_gap=True))
    return compared
