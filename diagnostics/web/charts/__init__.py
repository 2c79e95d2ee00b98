"""Geometry of the console's drawings: numbers in, coordinates and a sentence out.

States have one shape per tone, so that colour is never alone.
"""

SHAPES: dict[str, str] = {
    "good": "M5 .5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 1 1 0-9z",
    "warn": "M5 0 10 5 5 10 0 5z",
    "bad": "M5 .5 9.9 9.4H.1z",
    "quiet": "M5 .5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 1 1 0-9z"
    "M5 2.3a2.7 2.7 0 1 0 0 5.4a2.7 2.7 0 1 0 0-5.4z",
    "live": "M1.6.6 9.4 5 1.6 9.4z",
}
"""SVG paths in a box of 10 by 10: disc, diamond, triangle, ring, arrowhead."""


def shape_of(tone: str) -> str:
    """Return the path of a tone; an unknown one is drawn as the ring."""
    return SHAPES.get(tone, SHAPES["quiet"])
