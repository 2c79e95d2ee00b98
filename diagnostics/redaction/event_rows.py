"""The row of an event: redacted, canonical, hashed."""

import re
from hashlib import sha256
from typing import Any

from pydantic_core import to_json

from failsoft.events import FAILURE_EVENT_KINDS, PostedEvent
from failsoft.json_values import clean_text
from failsoft.redaction import FAILED, Redact
from failsoft.redaction.pipeline import INPUT_CHARACTERS, PREVIEW_BYTES
from failsoft.redaction.secret_names import NAME_FIELDS, SECRET_MARK, is_secret_name

Row = dict[str, Any]

# In the order of the payload.
PAYLOAD_FIELDS = (
    *("raw_output_preview", "validation_errors", "repairs", "coerced", "attributes"),
    *("original_error_type", "tool", "temperature", "max_output_tokens"),
)
# Texts from closed lists, which need no masking.
CLOSED_FIELDS = frozenset(
    {"event_id", "name", "node", "occurred_at", "output_mode"}
    | {"parse_error_type", "status", "unchecked"}
)
COLUMN_EXCEPTIONS = frozenset((*PAYLOAD_FIELDS, "name"))
# Not hashed if missing, so that events stored before these fields keep their hash.
LATER_FIELDS = frozenset(
    {"served_model", "upstream", "system_fingerprint", "reasoning_tokens"}
    | {"unchecked", "region", "credential"}
)
RECORD_FIELDS = ("validation_errors", "repairs", "coerced")
NESTED_FIELDS = (*RECORD_FIELDS, "attributes")
SEPARATOR, NAME_SEPARATOR = "\n\n", ","
# Counts are below 2^31, too short for a card number. Only attributes have longer numbers.
SHORT_NUMBER = 2**31
KEY = re.compile(r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,}")
"""What no name of a credential contains, but many credentials do that no rule knows."""


def make_row(index: int, event: PostedEvent, redact: Redact, *, keep_preview: bool = True) -> Row:
    """Return the row of one event: redacted columns, payload or None, content hash.

    The preview is redacted on its whole length and then cut to 8 KiB (8,192 bytes of
    UTF-8). The hash covers the redacted content, for later comparison. A preview that
    is not kept is in the hash but not in the row.
    """
    content, kinds = redact_content(event, redact)
    kind = event.kind
    row = {name: value for name, value in content.items() if name not in COLUMN_EXCEPTIONS}
    row |= {"index": index, "kind": kind.value, "content_hash": digest(content)}
    if kind in FAILURE_EVENT_KINDS or event.repairs or event.coerced:
        payload = {field: content[field] for field in PAYLOAD_FIELDS}
        payload |= {"redacted_kinds": sorted(kinds), "sampled_out": False}
        if not keep_preview and payload["raw_output_preview"] is not None:
            payload |= {"raw_output_preview": None, "sampled_out": True}
        row["payload"] = payload
    return row


def redact_content(event: PostedEvent, redact: Redact) -> tuple[Row, set[str]]:
    """Return the event in its wire form with every text cleaned and redacted."""
    content = event.model_dump(mode="json", by_alias=True)
    preview = content.pop("raw_output_preview")
    kinds: set[str] = set()
    if content["credential"] is not None and KEY.search(content["credential"]):
        content["credential"] = SECRET_MARK
        kinds.add("secret")
    if not _is_clean(content, redact):
        masking = _Masking(redact, kinds)
        content = {
            # What is from a closed list, or a number, stays as it is.
            key: value
            if key in CLOSED_FIELDS or isinstance(value, int | float)
            else masking.walk_field(key, value)
            for key, value in content.items()
        }
    if preview is not None:
        redacted = redact(clean_text(preview), PREVIEW_BYTES)
        kinds.update(redacted.found)
        preview = redacted.text
    content["raw_output_preview"] = preview
    return content, kinds


def digest(content: Row) -> str:
    """Return the SHA-256 of a content in the order of its fields, attributes sorted, in hex."""
    if len(content["attributes"]) > 1:
        content = content | {"attributes": dict(sorted(content["attributes"].items()))}
    hashed = {
        name: value
        for name, value in content.items()
        if value is not None or name not in LATER_FIELDS
    }
    return sha256(to_json(hashed)).hexdigest()


def _is_clean(content: Row, redact: Redact) -> bool:
    """Whether nothing needs masking, checked over all short texts at once: true for most events."""
    if any(map(is_secret_name, content["attributes"])):
        return False
    names, texts = list[str](), list[str]()
    for key, value in content.items():
        if type(value) is str and key not in CLOSED_FIELDS:
            (names if key in NAME_FIELDS else texts).append(value)
    for field in NESTED_FIELDS:
        if content[field]:
            _collect(content[field], texts)
    joined, joined_names = SEPARATOR.join(texts), NAME_SEPARATOR.join(names)
    if len(joined) > INPUT_CHARACTERS or clean_text(joined + joined_names) != joined + joined_names:
        return False
    return not (redact(joined, None).found or redact(joined_names, None, is_name=True).found)


def _collect(value: object, texts: list[str]) -> None:
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, dict):
        texts.extend(value)
        for item in value.values():
            if item is not None:
                _collect(item, texts)
    elif isinstance(value, list):
        for item in value:
            _collect(item, texts)
    elif isinstance(value, int) and abs(value) >= SHORT_NUMBER:
        texts.append(str(value))


class _Masking:
    def __init__(self, redact: Redact, kinds: set[str]) -> None:
        self._redact = redact
        self._kinds = kinds

    def walk_field(self, field: str, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Mask a field; in lists of records, the keys are our own."""
        if field in NAME_FIELDS and isinstance(value, str):
            return self._mask(value, is_name=True)
        if field not in RECORD_FIELDS or not isinstance(value, list):
            return self.walk(value)
        return [{name: self.walk(item) for name, item in record.items()} for record in value]

    def walk(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        if isinstance(value, str):
            return self._mask(value)
        if isinstance(value, dict):
            return {self._mask(key): self._under(key, item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.walk(item) for item in value]
        if isinstance(value, int) and abs(value) >= SHORT_NUMBER:
            return self._mask_number(value)
        return value

    def _mask_number(self, value: int) -> int | str | None:
        """Mask a long number; None if the redactor failed."""
        masked = self._mask(str(value))
        if masked == FAILED:
            return None
        return value if masked == str(value) else masked

    def _under(self, key: str, item: object) -> object:
        if item in (None, "") or not is_secret_name(key):
            return self.walk(item)
        self._kinds.add("secret")
        return SECRET_MARK

    def _mask(self, text: str, *, is_name: bool = False) -> str:
        redacted = self._redact(clean_text(text), None, is_name=is_name)
        self._kinds.update(redacted.found)
        return redacted.text
