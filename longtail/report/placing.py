"""Places for the names of dots in a chart: near their dots, and over no other name, dot or edge."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

CHARACTER, LINE = 5.7, 11.0  # width and height of a character in the font that names are drawn in
DISTANCES = (6.0, 12.0, 20.0, 30.0, 42.0, 56.0, 72.0, 90.0)  # from a dot to its name
DIRECTIONS = 16
NEAR = 3.0  # a name should be so much nearer to its own dot than to another one
DOT = 4.5  # half the side of the square that a dot takes
TRIED = 48  # of the places around a dot, those with the least in the way
ROUNDS = 4  # of looking for a better place for each name, given the others


Line = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Box:
    """A rectangle: left, top, right, bottom."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """The area that both cover."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across * down if across > 0 and down > 0 else 0.0

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The point of the rectangle that is nearest to a point."""
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)


@dataclass(frozen=True)
class Place:
    """Where a name goes; `distance` is that to its dot."""

    box: Box
    distance: float


@dataclass(frozen=True)
class Field:
    """What names must keep clear of: the dots, the squares that they take, and lines."""

    dots: Sequence[tuple[float, float]]
    squares: Sequence[Box]
    lines: Sequence[Line]


@lru_cache(maxsize=64)
def place_names(
    dots: tuple[tuple[float, float], ...], names: tuple[str, ...], frame: Box, lines: tuple[Line, ...] = ()
) -> list[Place]:
    """A place for the name of each dot, by the sum of small costs: distance, and what it covers or crosses.

    `lines` are drawn in the chart too. The same dots, names and lines always get the same places.
    """
    field = Field(dots, [Box(x - DOT, y - DOT, x + DOT, y + DOT) for x, y in dots], lines)
    options = []
    for i, (dot, name) in enumerate(zip(dots, names, strict=True)):
        own = [(cost(place, i, field), place) for place in candidates(dot, name, frame)]
        options.append(sorted(own, key=lambda pair: pair[0])[:TRIED])
    placed: dict[int, Place] = {}
    for _ in range(ROUNDS):
        for i in sorted(range(len(dots)), key=lambda i: (-crowd(dots, i), i)):
            others = {j: place for j, place in placed.items() if j != i}
            costs = [own + cost_beside(place, i, others, field) for own, place in options[i]]
            placed[i] = options[i][costs.index(min(costs))][1]
    return [placed[i] for i in range(len(dots))]


def candidates(dot: tuple[float, float], name: str, frame: Box) -> Iterator[Place]:
    """The places around a dot that are within the frame, from near to far; to its right comes first."""
    width, height = CHARACTER * len(name), LINE
    found = False
    for distance in DISTANCES:
        for turn in range(DIRECTIONS):
            angle = 2 * math.pi * turn / DIRECTIONS
            x = dot[0] + math.cos(angle) * (distance + width / 2)
            y = dot[1] - math.sin(angle) * (distance + height / 2)
            box = Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            if (
                frame.left <= box.left
                and box.right <= frame.right
                and frame.top <= box.top
                and box.bottom <= frame.bottom
            ):
                found = True
                nearest = box.nearest(*dot)
                yield Place(box, math.dist(nearest, dot))
    if not found:  # a name wider than the frame
        yield Place(Box(dot[0], dot[1] - height / 2, dot[0] + width, dot[1] + height / 2), 0.0)


def crowd(dots: Sequence[tuple[float, float]], i: int) -> float:
    """How near other dots are to dot number i."""
    return sum(1 / (10 + math.dist(dots[i], other)) for j, other in enumerate(dots) if j != i)


def cost(place: Place, i: int, field: Field) -> float:
    """What speaks against a place for name number i: its distance, and dots and lines in the way or as near."""
    total = place.distance + 40 * sum(place.box.overlap(square) for square in field.squares)
    leader = (field.dots[i], place.box.nearest(*field.dots[i]))
    total += 25 * sum(crosses(leader, square) for j, square in enumerate(field.squares) if j != i)
    reach = place.distance + NEAR
    total += 12 * sum(math.dist(place.box.nearest(*dot), dot) < reach for j, dot in enumerate(field.dots) if j != i)
    return total + 10 * sum(crosses(line, place.box) for line in field.lines)


def cost_beside(place: Place, i: int, others: Mapping[int, Place], field: Field) -> float:
    """What speaks against a place for name number i, given the places of others."""
    total = 0.0
    leader = (field.dots[i], place.box.nearest(*field.dots[i]))
    for j, other in others.items():
        total += 40 * place.box.overlap(other.box)
        total += 60 * crosses(leader, other.box)
        total += 60 * crosses((field.dots[j], other.box.nearest(*field.dots[j])), place.box)
    return total


def crosses(line: Line, box: Box) -> bool:
    """Whether a line goes through a rectangle (clipped side by side, after Liang and Barsky)."""
    (x0, y0), (x1, y1) = line
    low, high = 0.0, 1.0
    for start, change, least, most in ((x0, x1 - x0, box.left, box.right), (y0, y1 - y0, box.top, box.bottom)):
        if change == 0:
            if not least < start < most:
                return False
            continue
        ends = sorted(((least - start) / change, (most - start) / change))
        low, high = max(low, ends[0]), min(high, ends[1])
    return low < high
