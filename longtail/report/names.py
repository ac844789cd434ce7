"""How labels are named where people read them."""

from __future__ import annotations

import unicodedata

from longtail.core.labels import Labels
from longtail.core.texts import printable


def short_name(labels: Labels, label: int) -> str:
    """The key of a label; if the key is only a number, its text."""
    key, text = labels.keys[label], "" if labels.texts is None else labels.texts[label]
    return printable(text if text and key.isdecimal() else key)


def full_name(labels: Labels, label: int) -> str:
    """Key and text of a label; see `key_and_text`."""
    return key_and_text(labels.keys[label], None if labels.texts is None else labels.texts[label])


def key_and_text(key: str, text: str | None) -> str:
    """`key  text`; the text alone if it begins with the key, the key alone if there is no text."""
    return printable(text or key) if not text or text.startswith(key) else printable(f"{key}  {text}")


def cut_name(name: str, width: int) -> str:
    """A name cut to at most `width` columns, with … where it was cut; wide characters take two columns."""
    taken, room = "", width
    for character in name:
        room -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if room < 0:
            return taken[:-1].rstrip() + "…"
        taken += character
    return taken
