"""A row holds redacted content only, and its hash tells contents apart."""

from random import Random

from diagnostics.redaction.event_rows import make_row
from failsoft.redaction import Redacted, Redactor
from failsoft.redaction.pipeline import PREVIEW_BYTES
from failsoft.redaction.rules import load_rules
from tests.diagnostics.builders import make_event, wire_event
from tests.failsoft.redaction.made_up import make

SECRET = "sk-ant-" + make("{alnum:40}", Random(2))[0]
REDACTOR = Redactor(load_rules(), {})


def redact(text: str, limit: int | None, *, is_name: bool = False) -> Redacted:
    redactor = REDACTOR.for_name(text) if is_name else REDACTOR
    return redactor.redact(text, limit)


def test_s0_45_a_secret_in_any_field_is_masked() -> None:
    event = make_event(
        correlation_id=f"run {SECRET}",
        provider=SECRET,
        model=SECRET,
        source=SECRET,
        release=SECRET,
        finish_reason=SECRET,
        schema=SECRET,
        tool=SECRET,
        parse_error_type=SECRET,
        validation_errors=[{"path": SECRET, "message": SECRET}, SECRET],
        raw_output_preview=SECRET,
        repairs=[{"kind": SECRET}],
        coerced=[{"path": SECRET, "kind": "x"}],
        attributes={SECRET: SECRET, "n": 1},
    )
    row = make_row(0, event, redact)
    assert SECRET[:20] not in str(row)
    assert "anthropic_key" in row["payload"]["redacted_kinds"]
    assert row["payload"]["attributes"]["n"] == 1


def test_the_value_under_a_secret_name_is_masked_whatever_it_looks_like() -> None:
    row = make_row(0, make_event(attributes={"apiKey": "abc", "password": 5}), redact)
    marks = row["payload"]["attributes"].values()
    assert set(marks) == {"[REDACTED:secret]"}


def test_s0_38_a_preview_of_a_megabyte_is_redacted_then_cut() -> None:
    for place in (0, PREVIEW_BYTES - 20, PREVIEW_BYTES - 3):
        text = "x" * place + " " + SECRET + " " + "y" * 1_000_000
        row = make_row(0, make_event(raw_output_preview=text), redact)
        preview = row["payload"]["raw_output_preview"]
        assert len(preview.encode()) <= PREVIEW_BYTES
        assert SECRET[:10] not in preview


def test_a_secret_beyond_what_is_scanned_at_once_is_masked_too() -> None:
    errors = ["z" * 4096] * 80 + [SECRET]
    row = make_row(0, make_event(validation_errors=errors), redact)
    assert SECRET[:20] not in str(row)


def test_the_hash_tells_contents_apart_and_nothing_else() -> None:
    wire = wire_event()
    same = make_row(0, make_event(**wire), redact)["content_hash"]
    assert make_row(9, make_event(**wire), redact)["content_hash"] == same
    for change in ({"attempt": 2}, {"raw_output_preview": "?"}, {"attributes": {"a": 1}}):
        other = make_row(0, make_event(**{**wire, **change}), redact)
        assert other["content_hash"] != same


def test_an_event_that_tells_nothing_new_keeps_the_hash_it_had_in_0_1_0() -> None:
    event = make_event(event_id="01930000-0000-7000-8000-000000000001")
    kept = "f10305820f9043c3d5194a2c8ebe572c28ffbd65f5ecf558366e2a6ecf3bb30f"
    assert make_row(0, event, redact)["content_hash"] == kept
    told = make_event(event_id=str(event.event_id), upstream="azure")
    assert make_row(0, told, redact)["content_hash"] != kept
