"""The model of a failed call that does not name it: that of the other calls of its run.

Some clients learn the name of the model from its answer only. A call of the same run and node
names it, if all of them name the same.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from diagnostics.ingest.otlp.mapping import CALL, Draft
from diagnostics.store.models import Event

Sibling = tuple[str, str]
NAMES = ("provider", "model")


def name_models(project_id: int, drafts: Sequence[Draft]) -> list[Draft]:
    """Return the drafts; failed calls have the model of their siblings."""
    nameless = {_family(draft) for draft in drafts if _is_nameless(draft)}
    if not nameless:
        return list(drafts)
    known = defaultdict[Sibling, set[tuple[str | None, str]]](set)
    for draft in drafts:
        if draft.fields.get("model") is not None:
            known[_family(draft)].add((draft.fields.get("provider"), draft.fields["model"]))
    for event in _stored(project_id, nameless):
        known[event.correlation_id, event.node].add((event.provider, str(event.model)))
    return [_named(draft, known) if _is_nameless(draft) else draft for draft in drafts]


def _is_nameless(draft: Draft) -> bool:
    return draft.slot == CALL and draft.is_error and "model" not in draft.fields


def _family(draft: Draft) -> Sibling:
    return str(draft.fields.get("correlation_id")), draft.node


def _stored(project_id: int, families: Iterable[Sibling]) -> Iterable[Event]:
    runs = {run for run, _ in families}
    return Event.objects.filter(
        project_id=project_id, correlation_id__in=runs, model__isnull=False
    ).only("correlation_id", "node", *NAMES)


def _named(draft: Draft, known: dict[Sibling, set[tuple[str | None, str]]]) -> Draft:
    names = known.get(_family(draft), set())
    if len({model for _, model in names}) != 1:
        return draft
    provider, model = min(names, key=lambda name: name[0] or "")
    found = {"model": model} | ({"provider": provider} if provider is not None else {})
    return replace(draft, fields={**found, **draft.fields})
