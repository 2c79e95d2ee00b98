"""The model of a failed call that does not name it, as some clients learn it from the answer only.

It is that of the other calls of its run and node, else of its node, if all name the same.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from diagnostics.ingest.otlp.mapping import CALL, Draft
from diagnostics.store.models import Event, Series

# By run and node, else by node alone: provider and model.
Known = Mapping[tuple[str, ...], set[tuple[str | None, str]]]
NAMES = ("node", "provider", "model")


def name_models(project_id: int, drafts: Sequence[Draft]) -> list[Draft]:
    """Return the drafts; failed calls have the model of their siblings."""
    nameless = [_family(draft) for draft in drafts if _is_nameless(draft)]
    if not nameless:
        return list(drafts)
    runs, nodes = map(set, zip(*nameless, strict=True))
    events = Event.objects.filter(project_id=project_id, correlation_id__in=runs)
    series = Series.objects.filter(project_id=project_id, node__in=nodes)
    members = [
        *((*_family(draft), *map(draft.fields.get, NAMES[1:])) for draft in drafts),
        *events.values_list("correlation_id", *NAMES),
        *(("", *names) for names in series.values_list(*NAMES)),
    ]
    known = defaultdict[tuple[str, ...], set[tuple[str | None, str]]](set)
    for run, node, provider, model in members:
        if model is not None:
            known[run, node].add((provider, model))
            known[node,].add((provider, model))
    return [_named(draft, known) if _is_nameless(draft) else draft for draft in drafts]


def _is_nameless(draft: Draft) -> bool:
    return draft.slot == CALL and draft.is_error and "model" not in draft.fields


def _family(draft: Draft) -> tuple[str, str]:
    return str(draft.fields.get("correlation_id")), draft.node


def _named(draft: Draft, known: Known) -> Draft:
    own = draft.fields.get("provider")
    of_node = {name for name in known.get((draft.node,), ()) if own in (None, name[0])}
    names = known.get(_family(draft)) or of_node
    if len({model for _, model in names}) != 1:
        return draft
    provider, model = min(names, key=lambda name: name[0] or "")
    named = {"model": model} | ({"provider": provider} if provider is not None else {})
    return replace(draft, fields={**named, **draft.fields})
