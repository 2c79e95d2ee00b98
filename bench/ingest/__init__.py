"""Ingestion beside its floor and its peers: `python -m bench.ingest`."""
