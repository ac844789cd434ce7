"""Writes longtail/_native/src/unicode_table.inc from this Python's Unicode database.

    python tools/unicode_table.py > longtail/_native/src/unicode_table.inc

The table is checked in rather than made at build time, so that every build cuts texts alike.
"""

import sys
import unicodedata

# Scripts written without spaces between words; runs of these are cut to character n-grams.
UNSPACED = [
    (0x0E00, 0x0EFF), (0x0F00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF),  # Thai, Lao, Tibetan, Burmese, Khmer
    (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),  # kana, Han
    (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x1B000, 0x1B16F), (0x20000, 0x323AF),
]  # fmt: skip


def kind(code: int) -> int:
    """0 separator, 1 part of a word, 2 part of a word in an unspaced script; +4 for digits, +8 for spaces.

    +16 where a word may be spelled in another way with it: compatibility forms, and what joins the character before;
    +32 for other characters, spaces aside, that have a compatibility form.
    """
    char = chr(code)
    category = unicodedata.category(char)
    value = 0
    if char.isalnum() or char == "_" or (category[0] == "M"):
        value = 2 if any(a <= code <= b for a, b in UNSPACED) else 1
    if category == "Nd":
        value += 4
    if char.isspace():
        value += 8
    jamo = 0x1161 <= code <= 0x1175 or 0x11A8 <= code <= 0x11C2  # Korean letters that join to syllables
    changes = unicodedata.normalize("NFKC", char) != char
    if (value & 3 and changes) or unicodedata.combining(char) or jamo:
        value += 16
    elif changes and not char.isspace():
        value += 32
    return value


def ranges() -> list[tuple[int, int, int]]:
    out: list[tuple[int, int, int]] = []
    for code in range(0x110000):
        value = 0 if 0xD800 <= code <= 0xDFFF else kind(code)
        if out and out[-1][2] == value:
            out[-1] = (out[-1][0], code, value)
        else:
            out.append((code, code, value))
    return [r for r in out if r[2]]


def main() -> None:
    lower = []
    for code in range(0x110000):
        if 0xD800 <= code <= 0xDFFF:
            continue
        low = chr(code).lower()
        if len(low) == 1 and ord(low) != code:  # the one two-character case (İ) keeps its capital
            lower.append((code, ord(low)))
    out = sys.stdout
    out.write(f"// Made by tools/unicode_table.py from Unicode {unicodedata.unidata_version}; do not edit.\n")
    out.write("static const struct { uint32_t first, last; uint8_t kind; } kind_ranges[] = {\n")
    out.writelines(f"{{{a},{b},{v}}},\n" for a, b, v in ranges())
    out.write("};\nstatic const struct { uint32_t from, to; } lower_pairs[] = {\n")
    out.writelines(f"{{{a},{b}}},\n" for a, b in lower)
    out.write("};\n")


if __name__ == "__main__":
    main()
