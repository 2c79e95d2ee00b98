"""Compiled schemas in memory, bounded by their size."""

import json

import pytest

from diagnostics.ingest import schemas
from diagnostics.ingest.schemas import SchemaCache


def text_of(title: str, properties: int) -> str:
    return json.dumps({"title": title, "properties": {f"p{n}": {} for n in range(properties)}})


def test_a_schema_is_compiled_once() -> None:
    cache = SchemaCache()
    assert cache.read(text_of("a", 3), is_ours=True) is cache.read(text_of("a", 3), is_ours=True)


def test_the_ones_used_longest_ago_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "MAX_CACHED_BYTES", 100_000)
    cache = SchemaCache()
    first = cache.read(text_of("first", 80), is_ours=True)
    second = cache.read(text_of("second", 80), is_ours=True)
    assert cache.read(text_of("first", 80), is_ours=True) is first
    cache.read(text_of("third", 80), is_ours=True)
    assert cache.size <= 100_000
    assert cache.read(text_of("first", 80), is_ours=True) is first
    assert cache.read(text_of("second", 80), is_ours=True) is not second


def test_one_that_is_larger_than_the_cache_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "MAX_CACHED_BYTES", 1_000)
    cache = SchemaCache()
    assert cache.read(text_of("large", 80), is_ours=True) is not None
    assert cache.size == 0


def test_a_refused_schema_is_none_and_a_request_may_have_what_is_not_supported() -> None:
    cache = SchemaCache()
    text = json.dumps({"nullable": True})
    assert cache.read(text, is_ours=True) is None
    assert cache.read(text, is_ours=False) is not None
