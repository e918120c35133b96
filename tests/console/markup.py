"""Markup to compare with: how its source is broken into lines does not matter."""

import re


def text(answer):
    """The page of an answer, without whitespace next to tags, and with single spaces elsewhere."""
    return re.sub(r"\s+(?=[<>])|(?<=>)\s+", "", re.sub(r"\s+", " ", answer.content.decode()))
