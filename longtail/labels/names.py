"""How a label is called where people see it."""

from __future__ import annotations

import unicodedata

from longtail.core.labels import Labels
from longtail.data.inspect.statistics import printable


def short_name(labels: Labels, label: int) -> str:
    """The key of a label; where that is but a number, its text."""
    key, text = labels.keys[label], "" if labels.texts is None else labels.texts[label]
    return printable(text if text and key.isdecimal() else key)


def full_name(labels: Labels, label: int) -> str:
    """Key and text; a text that begins with the key stands alone."""
    key, text = labels.keys[label], "" if labels.texts is None else labels.texts[label]
    return printable(text or key) if not text or text.startswith(key) else printable(f"{key}  {text}")


def cut_name(name: str, width: int) -> str:
    """A name of at most `width` columns, ended by … where something is left out; wide characters take two."""
    taken, room = "", width
    for character in name:
        room -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if room < 0:
            return taken[:-1].rstrip() + "…"
        taken += character
    return taken
