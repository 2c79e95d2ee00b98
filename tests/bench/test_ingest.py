"""The benchmark of ingestion sends what the product and its peers can read."""

import gzip
import json

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from bench.ingest.peers import to_envelope, to_spans
from bench.ingest.workload import Workload, to_body
from diagnostics.rest.batches import read_events, read_items
from failsoft.events import PostedEvent


def test_every_event_of_the_workload_is_one() -> None:
    body = to_body(Workload().batch(50))
    events = read_events(read_items(body), body)
    assert all(isinstance(event, PostedEvent) for event in events)
    kinds = {event.kind for event in events if isinstance(event, PostedEvent)}
    assert kinds == {"succeeded", "parse_invalid"}


def test_the_same_seed_gives_the_same_events_but_for_their_time() -> None:
    one, other = (Workload(seed=3).batch(5) for _ in range(2))
    assert [e["correlation_id"] for e in one] == [e["correlation_id"] for e in other]
    assert len({event["event_id"] for event in Workload().batch(500)}) == 500


def test_peers_are_sent_the_same_events() -> None:
    events = Workload().batch(20)
    request = trace_service_pb2.ExportTraceServiceRequest()
    request.ParseFromString(gzip.decompress(to_spans(events)))
    assert len(request.resource_spans[0].scope_spans[0].spans) == 20
    lines = gzip.decompress(to_envelope(events[0])).splitlines()
    assert [json.loads(line) for line in lines][2]["tags"]["model"] in json.dumps(events[0])
