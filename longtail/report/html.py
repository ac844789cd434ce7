"""HTML pages: the style sheet, the frame of a page, and tables.

A page needs nothing from elsewhere: no script, no font, no image. Everything that comes from the data is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

# Colours and font, for light and dark mode
LIGHT = {"ink": "#1c1d21", "soft": "#62656e", "rule": "#d9dbe0", "grid": "#ebecef", "paper": "#ffffff"}
LIGHT |= {"c0": "#2f5d8c", "c1": "#d08c2e", "c2": "#8fa9bf", "c3": "#3f8f63", "c4": "#b8323a", "c5": "#8554a0"}
DARK = {"ink": "#e6e7ea", "soft": "#9da1ab", "rule": "#3b3e46", "grid": "#2b2d33", "paper": "#17181b"}
DARK |= {"c0": "#7fb0e0", "c1": "#e2a957", "c2": "#56697c", "c3": "#6cc08f", "c4": "#ef7078", "c5": "#c39ada"}
SANS = '"Source Sans 3", "Helvetica Neue", "Segoe UI", Roboto, Arial, sans-serif'
IN_THE_DARK = "@media (prefers-color-scheme: dark)"


def variables(colours: dict[str, str]) -> str:
    """The rule that names colours, so that other rules write var(--ink)."""
    return ":root { " + " ".join(f"--{name}: {colour};" for name, colour in colours.items()) + " }"


def written_out(rules: str) -> str:
    """These rules for a picture in a file of its own, in light and dark mode.

    Browsers know variables; the libraries with which other programs draw SVG mostly do not, and would draw in black.
    """
    both = []
    for colours in (LIGHT, DARK):
        plain = rules
        for name, value in {**colours, "sans": SANS}.items():
            plain = plain.replace(f"var(--{name})", value)
        both.append(plain.strip())
    return f"\n{both[0]}\n{IN_THE_DARK} {{\n{both[1]}\n}}\n"


COLOURS = f"""
{variables({**LIGHT, "sans": SANS})}
{IN_THE_DARK} {{ {variables(DARK)} }}
"""
LAYOUT = """
:root { color-scheme: light dark; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2.5rem 1.25rem 3rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 var(--sans);
  font-variant-numeric: tabular-nums lining-nums; }
h1 { font-size: 1.7rem; line-height: 1.2; font-weight: 600; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; font-weight: 600; margin: 0 0 .5rem; } section { margin-top: 2.2rem; }
.pairs section { margin: 0; }
p { margin: .3rem 0; } .soft, figcaption, footer { color: var(--soft); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(6rem, 1fr)); gap: 1rem 1.5rem;
  margin: 1.6rem 0 0; padding: 1.1rem 0; border: solid var(--rule); border-width: 1px 0; }
.figures div { display: flex; flex-direction: column-reverse; justify-content: flex-end; }
.figures dt { color: var(--soft); font-size: .85rem; line-height: 1.3; }
.figures dd { margin: 0; font-size: 1.45rem; line-height: 1.3; }
.pairs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); gap: 2rem 2.5rem;
  margin-top: 2.2rem; align-items: start; }
figure { margin: 0; } figcaption { font-size: .85rem; line-height: 1.4; margin-top: .3rem; }
figcaption b { color: var(--ink); font-weight: 600; }
svg { display: block; width: 100%; height: auto; max-width: 34rem; }
svg text { fill: var(--soft); font-size: 11px; } svg .title { fill: var(--ink); font-size: 12px; text-anchor: middle; }
svg .x { text-anchor: middle; } svg .y { text-anchor: end; } svg .up { font-size: 8px; }
svg .axis { fill: none; stroke: var(--soft); } svg .grid { stroke: var(--grid); }
svg .dots { stroke: var(--c0); stroke-width: 3.4; stroke-linecap: round; }
svg .bar-0 { fill: var(--c0); } svg .bar-1 { fill: var(--c1); } svg .bar-2 { fill: var(--c2); }
svg .line-0, svg .line-1, svg .line-2 { fill: none; stroke-width: 2; } svg .line-0 { stroke: var(--c0); }
svg .line-1 { stroke: var(--c1); } svg .line-2 { stroke: var(--c2); }
svg .points-0, svg .points-1, svg .points-2 { stroke-width: 6; stroke-linecap: round; }
svg .points-0 { stroke: var(--c0); } svg .points-1 { stroke: var(--c1); } svg .points-2 { stroke: var(--c2); }
.key { display: inline-block; width: .7em; height: .7em; } .key.bar-0 { background: var(--c0); }
.key.bar-1 { background: var(--c1); } .key.bar-2 { background: var(--c2); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; } caption { caption-side: bottom; text-align: left;
  color: var(--soft); font-size: .85rem; padding-top: .45rem; }
th, td { padding: .22rem 0 .22rem 1.6rem; text-align: right; white-space: nowrap; vertical-align: top; }
th { font-weight: 600; white-space: normal; } thead th { border-bottom: 1px solid var(--rule); vertical-align: bottom; }
tbody tr:last-child td { border-bottom: 1px solid var(--rule); }
th:first-child, td:first-child { padding-left: 0; text-align: left; white-space: normal; }
.text { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 11rem; }
footer { margin-top: 3rem; font-size: .85rem; }
@media (max-width: 34rem) { th, td { padding-left: .8rem; } svg text { font-size: 12px; }
  svg .title { font-size: 13px; } table { font-size: .88rem; } }
@media print { body { max-width: none; padding: 0; } figure, table { break-inside: avoid; } }
"""


def page(title: str, body: Iterable[str], command: str, style: str = "") -> str:
    """A whole page: `body` holds its parts as HTML, `style` more rules, and the footer names the `command`."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{COLOURS}{LAYOUT}{style}</style>"
    )
    footer = f"<footer>Made by <code>{escape(command)}</code>.</footer>"
    content = "\n".join(part for part in (*body, footer) if part)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{content}\n</body>\n</html>\n'


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    title: str = "",
    caption: str = "",
    text: int | None = None,
) -> str:
    """A section with a table, under a heading if there is a `title`; column number `text` holds running text."""

    def line(cells: Sequence[str], tag: str) -> str:
        kinds = (' class="text"' if i == text else "" for i in range(len(cells)))
        return "<tr>" + "".join(f"<{tag}{k}>{escape(c)}</{tag}>" for c, k in zip(cells, kinds, strict=True)) + "</tr>"

    heading = f"<h2>{escape(title)}</h2>\n" if title else ""
    below = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "\n".join(line(row, "td") for row in rows)
    whole = f"<table>{below}<thead>{line(header, 'th')}</thead>\n<tbody>{body}</tbody></table>"
    return f'<section>{heading}<div class="wide">{whole}</div></section>'


def grid(kind: str, head: Iterable[str], lines: Iterable[str]) -> str:
    """A table of the class `kind` that scrolls where it is too wide; rows of its head and body are HTML already."""
    body = "\n".join(lines)
    return (
        f'<div class="wide"><table class="{kind}"><thead>{"".join(head)}</thead>\n<tbody>{body}</tbody></table></div>'
    )


def figure(drawing: str, caption: str) -> str:
    """A drawing (SVG) with its caption; both are HTML already."""
    return f"<figure>{drawing}<figcaption>{caption}</figcaption></figure>"
