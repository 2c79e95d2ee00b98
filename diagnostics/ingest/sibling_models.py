"""The model and provider of a failed call that does not name them, as some clients learn them from
the answer only.

They are those of the other calls of its run and node, else of its node, if all name the same.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from diagnostics.ingest.otlp.drafts import CALL, Draft
from diagnostics.store.models import Event, Series

# By run and node, else by node alone: provider and model.
Known = Mapping[tuple[str, ...], set[tuple[str | None, str]]]
NAMES = ("node", "provider", "model")


def name_models(project_id: int, drafts: Sequence[Draft]) -> list[Draft]:
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
    is_named = draft.fields.keys() >= {"provider", "model"}
    return draft.slot == CALL and draft.is_error and not is_named


def _family(draft: Draft) -> tuple[str, str]:
    return str(draft.fields.get("correlation_id")), draft.node


def _named(draft: Draft, known: Known) -> Draft:
    own = {name: draft.fields[name] for name in NAMES[1:] if name in draft.fields}
    for family in (_family(draft), (draft.node,)):
        siblings = [dict(zip(NAMES[1:], pair, strict=True)) for pair in known.get(family, ())]
        alike = [names for names in siblings if own.items() <= names.items()]
        if len({names["model"] for names in alike}) == 1:
            providers = {names["provider"] for names in alike} - {None}
            own |= {"model": alike[0]["model"]}
            own |= {"provider": providers.pop()} if len(providers) == 1 else {}
    return replace(draft, fields={**own, **draft.fields})
