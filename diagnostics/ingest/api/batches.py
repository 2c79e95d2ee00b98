"""What every batch endpoint does: admit, store, respond, record what was refused."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, key_of
from diagnostics.accounts.models import ApiKey
from diagnostics.ingest.item_warnings import time_warnings
from diagnostics.ingest.key_counts import count_items, note_items
from diagnostics.ingest.quotas import admit, refuse_blocked
from diagnostics.ingest.rejects import note_refusals, refuse_body, refuse_items
from diagnostics.rest.bodies import Batch, read_batch
from diagnostics.store.windows import TimeMark

Result = dict[str, Any]


class StoredBatch(NamedTuple):
    """One result per item, in order, and warnings for the sender."""

    results: Sequence[Result]
    warnings: Sequence[Mapping[str, str]] = ()


NOT_UTF_8 = {
    "path": "",
    "code": "not_utf_8",
    "message": "bytes that are not UTF-8 were replaced by U+FFFD",
}
CONFLICT = [{"path": "", "code": "conflict", "message": "this id is known with other content"}]
ANY = "*/*"
PLAIN = frozenset({ANY, "application/json", ""})
# The sender cannot fix these in the body.
NOT_KEPT = frozenset({401, 403, 406, 429, 503})
# Counted by the quota's own rows, or not allowed for the key at all.
NOT_COUNTED = frozenset({401, 403, 406, 429})


class BatchView(KeyedView):
    """Takes a batch: one parse, one statement, a response after commit."""

    required_scopes = {"POST": Scope.INGEST, "GET": Scope.READ, "OPTIONS": Scope.READ}

    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[Any, str]:
        """Negotiate the content type only if the sender does not simply accept JSON or anything."""
        if request.method == "POST" and request.META.get("HTTP_ACCEPT", ANY) in PLAIN:
            return JSONRenderer(), JSONRenderer.media_type
        chosen: tuple[Any, str] = super().perform_content_negotiation(request, force)
        return chosen

    def take(
        self, request: Request, store: Callable[[ApiKey, Batch, float], StoredBatch]
    ) -> Response:
        """Read and store a batch; raises QuotaExceededError before anything is stored."""
        key = key_of(request)
        refuse_blocked(key)
        batch = read_batch(request._request)
        keep_share = admit(key, max(len(batch.items), 1))
        results, warnings = store(key, batch, keep_share)
        sources = [item.get("source") if isinstance(item, dict) else None for item in batch.items]
        pairs: list[tuple[object, str]] = []
        for source, result in zip(sources, results, strict=True):
            is_unchecked = result["status"] == "created" and result.get("unchecked")
            words = result["status"], is_unchecked and "unchecked", result.get("time_mark")
            pairs += [(source, word) for word in words if word]
        note_items(key, count_items(pairs))
        marks = Counter(str(result.get("time_mark")) for result in results)
        mended = [NOT_UTF_8] if batch.is_mended else []
        warnings = [*mended, *warnings, *time_warnings(marks)]
        is_verbose = request.query_params.get("verbose", "") in ("1", "true")
        answer = answer_batch(results, warnings, is_verbose, keep_share)
        if answer.status_code == status.HTTP_207_MULTI_STATUS:
            refused = refuse_items(batch.items, results)
            note_refusals(key, request.path, answer.status_code, refused)
        return answer

    def handle_exception(self, exc: Exception) -> Response:
        """Respond to a refusal of the whole request, and record what was refused."""
        answer = super().handle_exception(exc)
        # Not `auth`: it would query the database again, which may be down.
        key = vars(self.request).get("_auth")
        is_refusal = isinstance(exc, APIException) and self.request.method == "POST"
        if is_refusal and isinstance(key, ApiKey) and answer.status_code not in NOT_COUNTED:
            note_items(key, {("", "rejected"): 1})
            if answer.status_code not in NOT_KEPT:
                (first, *_) = answer.data.get("errors") or [answer.data]
                body: bytes = getattr(exc, "body", b"")
                refusal = refuse_body(body, str(first["code"]), str(answer.data["detail"]))
                note_refusals(key, self.request.path, answer.status_code, [refusal])
        return answer


def refused_result(index: int, event_id: str | None, errors: list[dict[str, str]]) -> Result:
    return {"index": index, "event_id": event_id, "status": "invalid", "errors": errors}


def stored_result(
    index: int, event_id: str | None, status: str, time_mark: TimeMark | None
) -> Result:
    result: Result = {"index": index, "event_id": event_id, "status": status}
    if time_mark is not None:
        result["time_mark"] = time_mark.value
    return {**result, "errors": CONFLICT} if status == "conflict" else result


def answer_batch(
    results: Sequence[Result],
    warnings: Sequence[Mapping[str, str]],
    shows_all: bool,
    keep_share: float,
) -> Response:
    statuses = [result["status"] for result in results]
    accepted, duplicates = statuses.count("created"), statuses.count("duplicate")
    rejected = len(results) - accepted - duplicates
    shown = [r for r in results if shows_all or r["status"] != "created"]
    body: dict[str, Any] = {
        "accepted": accepted,
        "duplicates": duplicates,
        "rejected": rejected,
        "preview_share": round(keep_share, 4),
        "results": shown,
    }
    if warnings:
        body["warnings"] = warnings
    code = status.HTTP_207_MULTI_STATUS if rejected else status.HTTP_200_OK
    return Response(body, status=code)
