"""Plan graph: the steps of a plan in layers, dependencies from left to right.

1. A step's layer is the longest chain of dependencies before it; a cycle, which a
   valid plan never has, is cut.
2. An edge that passes a layer gets an unseen place there, so that lines do not run
   through boxes.
3. Within a layer, places are ordered by the mean place of what they depend on.
4. Layers are centred on the tallest one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from diagnostics.figures import Tone, plural
from diagnostics.web.charts import shape_of

BOX_WIDTH, BOX_HEIGHT = 164, 42
LAYER_GAP, ROW_GAP, MARGIN = 44, 12, 4
VIA_HEIGHT = 10
FIRST_FITS, SECOND_FITS = 16, 19
MOST_STEPS = 60


@dataclass(frozen=True, slots=True)
class GraphStep:
    step_id: str
    title: str
    tool: str
    state: str
    tone: Tone
    dependencies: tuple[str, ...]
    is_root: bool = False
    is_critical: bool = False
    url: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    step: GraphStep
    x: int
    y: int
    first: str
    second: str

    @property
    def mark(self) -> str:
        return shape_of(self.step.tone)

    @property
    def name(self) -> str:
        """What the box stands for, in full."""
        title = f": {self.step.title}" if self.step.title else ""
        return f"{self.step.step_id}{title} ({_step_words(self.step)})"


@dataclass(frozen=True, slots=True)
class Edge:
    """The line from a dependency to the step that waits for it."""

    path: str
    source: str
    target: str
    tone: Tone
    is_critical: bool = False


@dataclass(frozen=True, slots=True)
class PlanGraph:
    """The whole drawing; `left_out` steps are too many to draw."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    left_out: int
    text: str
    box_width: int = BOX_WIDTH
    box_height: int = BOX_HEIGHT

    @property
    def role(self) -> str:
        """A picture, or a group of links."""
        return "group" if any(box.step.url for box in self.boxes) else "img"


Place = tuple[str, ...]
"""("step_2",) for a step, ("step_1", "step_2", "1") for an edge passing layer 1."""


def plan_graph(steps: Sequence[GraphStep]) -> PlanGraph:
    """Lay out the first `MOST_STEPS` steps, whatever their dependencies say."""
    shown = {step.step_id: step for step in steps[:MOST_STEPS]}
    parents = {
        key: tuple(dict.fromkeys(dep for dep in step.dependencies if dep in shown and dep != key))
        for key, step in shown.items()
    }
    layer_of = assign_layers(parents)
    routes: dict[tuple[str, str], tuple[Place, ...]] = {}
    for key in shown:
        for dep in parents[key]:
            passed = range(layer_of[dep] + 1, layer_of[key])
            routes[dep, key] = ((dep,), *((dep, key, str(layer)) for layer in passed), (key,))
    layers: list[list[Place]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for key, layer in layer_of.items():
        layers[layer].append((key,))
    for via in (via for route in routes.values() for via in route[1:-1]):
        layers[int(via[2])].append(via)
    layers = _order(layers, routes)
    tops = _tops(layers)
    return PlanGraph(
        width=max(len(layers) * (BOX_WIDTH + LAYER_GAP) - LAYER_GAP, 0) + 2 * MARGIN,
        height=max((_height(layer) for layer in layers), default=0) + 2 * MARGIN,
        boxes=tuple(_box(step, _left(layer_of[key]), tops[key,]) for key, step in shown.items()),
        edges=tuple(
            Edge(
                _path(route, layer_of, tops),
                source,
                target,
                shown[source].tone,
                shown[source].is_critical and shown[target].is_critical,
            )
            for (source, target), route in routes.items()
        ),
        left_out=len(steps) - len(shown),
        text=describe_graph(steps),
    )


def assign_layers(parents: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return for every step the length of the longest chain before it; cycles are cut."""
    layers: dict[str, int] = {}
    waiting = dict(parents)
    while waiting:
        ready = [
            key for key, before in waiting.items() if all(dep in layers for dep in before)
        ] or [next(iter(waiting))]
        for key in ready:
            layers[key] = max(
                (layers[dep] + 1 for dep in waiting.pop(key) if dep in layers), default=0
            )
    return layers


def describe_graph(steps: Sequence[GraphStep]) -> str:
    """List the steps, their states and what they wait for, as text."""
    parts = [
        f"{step.step_id} {_step_words(step)}"
        + (f" after {', '.join(step.dependencies)}" if step.dependencies else "")
        for step in steps[:MOST_STEPS]
    ]
    return f"plan of {plural(len(steps), 'step')}: " + "; ".join(parts)


def _step_words(step: GraphStep) -> str:
    root = ", root cause" if step.is_root else ""
    return f"{step.state}{root}{', on the critical path' if step.is_critical else ''}"


def _box(step: GraphStep, x: int, y: int) -> Box:
    state = "root cause" if step.is_root else step.state
    # Bold letters are wider. The tool's name gives way, not the state.
    fits = SECOND_FITS - 3 if step.is_root else SECOND_FITS
    tool = _cut(step.tool, max(fits - len(state) - 3, 3))
    second = " · ".join(part for part in (tool, state) if part)
    return Box(step, x, y, _cut(step.step_id, FIRST_FITS), second)


def _cut(text: str, fits: int) -> str:
    return text if len(text) <= fits else text[: fits - 1] + "…"


def _order(
    layers: list[list[Place]], routes: Mapping[tuple[str, str], Sequence[Place]]
) -> list[list[Place]]:
    before: dict[Place, list[Place]] = {}
    for route in routes.values():
        for earlier, later in pairwise(route):
            before.setdefault(later, []).append(earlier)
    rank: dict[Place, float] = {}
    for layer in layers:
        means: dict[Place, float] = {}
        for index, place in enumerate(layer):
            ranks = [rank[dep] for dep in before.get(place, ()) if dep in rank]
            means[place] = sum(ranks) / len(ranks) if ranks else float(index)
        layer.sort(key=means.__getitem__)
        rank.update({place: index / max(len(layer) - 1, 1) for index, place in enumerate(layer)})
    return layers


def _size(place: Place) -> int:
    return BOX_HEIGHT if len(place) == 1 else VIA_HEIGHT


def _height(layer: Sequence[Place]) -> int:
    return sum(_size(place) + ROW_GAP for place in layer) - ROW_GAP if layer else 0


def _tops(layers: Sequence[Sequence[Place]]) -> dict[Place, int]:
    tallest = max((_height(layer) for layer in layers), default=0)
    tops: dict[Place, int] = {}
    for layer in layers:
        top = MARGIN + (tallest - _height(layer)) // 2
        for place in layer:
            tops[place] = top
            top += _size(place) + ROW_GAP
    return tops


def _left(layer: int) -> int:
    return MARGIN + layer * (BOX_WIDTH + LAYER_GAP)


def _path(route: Sequence[Place], layer_of: Mapping[str, int], tops: Mapping[Place, int]) -> str:
    """Draw a curve from right edge to left edge, straight through unseen places."""
    x, y = _left(layer_of[route[0][0]]) + BOX_WIDTH, tops[route[0]] + BOX_HEIGHT // 2
    parts = [f"M{x} {y}"]
    for place in route[1:]:
        layer = layer_of[place[0]] if len(place) == 1 else int(place[2])
        to_x, to_y = _left(layer), tops[place] + _size(place) // 2
        parts.append(f"C{(x + to_x) // 2} {y} {(x + to_x) // 2} {to_y} {to_x} {to_y}")
        if len(place) > 1:
            to_x += BOX_WIDTH
            parts.append(f"H{to_x}")
        x, y = to_x, to_y
    return "".join(parts)
