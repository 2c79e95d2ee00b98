"""Redacting stored data again after a rule was added, in batches that can be killed.

1. A request is a row; each project has one at a time.
2. A batch reads the next rows of a source by key, masks their texts and advances the cursor,
   all in one transaction that locks the request's row. A killed batch has changed nothing.
3. After the last source the request is done. A request whose batches fail five times in a row
   without progress is marked as failed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, models, transaction
from django.db.models import F, Q

from diagnostics import clock
from diagnostics.redaction.rules import RedactionRule, Rescrub, forget_rules, redactor_of
from failsoft.redaction import Redact
from failsoft.redaction.pipeline import cut
from failsoft.redaction.secret_names import NAME_FIELDS

BATCH_ROWS = 200
MOST_STARTS = 5
# A task stays short: the rest waits for the next beat.
BATCHES_A_TASK = 50
MOST_NAME = 200


@dataclass(frozen=True, slots=True)
class StoredTexts:
    """A source of stored texts: a model, its key, the text fields, the path to the project."""

    model: type[models.Model]
    texts: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    key: tuple[str, ...] = ("pk",)
    project: str = "project"


_sources: list[StoredTexts] = []


def register_texts(*sources: StoredTexts) -> None:
    """Register the stored texts of a feature; to be called when its app is ready."""
    _sources.extend(source for source in sources if source not in _sources)


def source_count() -> int:
    return len(_sources)


def request_rescrub(project_id: int, by: int | None) -> bool:
    """Request that a project be redacted again; return False if a request is running."""
    try:
        with transaction.atomic():
            Rescrub.objects.create(project_id=project_id, requested_by_id=by)
    except IntegrityError:
        return False
    return True


def advance_all() -> int:
    """Work on running requests, the longest idle first; return how many batches were done."""
    advanced, running = 0, Rescrub.objects.filter(status="running").order_by("moved_at", "pk")
    for identity in running.values_list("pk", flat=True):
        if advanced >= BATCHES_A_TASK:
            # A start without a batch would count as a failure.
            break
        request = Rescrub.objects.filter(pk=identity, status="running")
        if not request.filter(starts__lt=MOST_STARTS).update(starts=F("starts") + 1):
            request.update(status=Rescrub.Status.FAILED, finished_at=clock.now())
            continue
        forget_rules()
        while advanced < BATCHES_A_TASK and advance(identity):
            advanced += 1
    return advanced


def advance(identity: int) -> bool:
    """Do the next batch of a request; return False if it is over or locked by another worker."""
    with transaction.atomic():
        rows = Rescrub.objects.select_for_update(skip_locked=True)
        request = rows.filter(pk=identity, status="running").first()
        if request is None:
            return False
        if request.stage >= len(_sources):
            request.status, request.finished_at = Rescrub.Status.DONE, clock.now()
        else:
            _do_batch(request, _sources[request.stage])
        request.starts, request.moved_at = 0, clock.now()
        request.save()
        return request.status == Rescrub.Status.RUNNING


def _do_batch(request: Rescrub, source: StoredTexts) -> None:
    redact = redactor_of(request.project_id)
    left = _rows_of(request, source)
    if request.cursor:
        left = left.filter(_after(source.key, request.cursor))
    rows = list(left.order_by(*source.key)[:BATCH_ROWS])
    for row in rows:
        changes = changes_of(row, source, redact)
        if changes:
            key = {name: getattr(row, name) for name in source.key}
            same = _rows_of(request, source).filter(**key)
            request.changed_rows += _update(same, changes, row)
    request.seen_rows += len(rows)
    if len(rows) < BATCH_ROWS:
        request.stage, request.cursor = request.stage + 1, []
    else:
        request.cursor = [_cursor_value(getattr(rows[-1], name)) for name in source.key]


def _update(same: models.QuerySet[Any], changes: dict[str, Any], row: models.Model) -> int:
    """Write the changes; if the masked name is taken, its id is appended."""
    try:
        with transaction.atomic():
            return same.update(**changes)
    except IntegrityError:
        name = changes.get("name")
        if name is None:
            raise
        number = f" {row.pk}"
        room = (_longest(row, "name") or MOST_NAME) - len(number)
        return same.update(**{**changes, "name": cut(name, room) + number})


def _rows_of(request: Rescrub, source: StoredTexts) -> models.QuerySet[Any]:
    return source.model._default_manager.filter(**{source.project: request.project_id})


def _after(key: Sequence[str], cursor: Sequence[Any]) -> Q:
    later = Q(**{f"{key[0]}__gt": cursor[0]})
    if len(key) == 1:
        return later
    same = Q(**{key[0]: cursor[0]}) & _after(key[1:], cursor[1:])
    # The redundant bound lets an index start there.
    return Q(**{f"{key[0]}__gte": cursor[0]}) & (later | same)


def _cursor_value(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return value if isinstance(value, int) else str(value)


def changes_of(row: models.Model, source: StoredTexts, redact: Redact) -> dict[str, Any]:
    """Return the fields of a row that are redacted otherwise now."""
    masked: dict[str, Any] = {
        name: _fit(row, name, redact(text, None).text)
        for name in source.texts
        if (text := getattr(row, name))
    }
    masked |= {name: mask_document(getattr(row, name), redact) for name in source.documents}
    return {name: value for name, value in masked.items() if value != getattr(row, name)}


def _fit(row: models.Model, name: str, masked: str) -> str:
    """Cut a masked text to its column: a marker may be longer than the secret."""
    longest = _longest(row, name)
    return cut(masked, longest) if longest and len(masked) > longest else masked


def _longest(row: models.Model, name: str) -> int | None:
    return getattr(row._meta.get_field(name), "max_length", None)


def mask_document(value: Any, redact: Redact, *, is_name: bool = False) -> Any:  # noqa: ANN401 - any JSON
    """Mask every text of a JSON value, as a name under a key such as `model`; keys stay."""
    if isinstance(value, str):
        return redact(value, None, is_name=is_name).text
    if isinstance(value, list):
        return [mask_document(item, redact, is_name=is_name) for item in value]
    if isinstance(value, dict):
        return {
            key: mask_document(item, redact, is_name=key in NAME_FIELDS)
            for key, item in value.items()
        }
    return value


def rules_of(project_id: int) -> Sequence[RedactionRule]:
    rows = RedactionRule.objects.filter(project_id=project_id)
    return list(rows.select_related("created_by").order_by("name"))


def latest_rescrub(project_id: int) -> Rescrub | None:
    return Rescrub.objects.filter(project_id=project_id).order_by("-requested_at").first()
