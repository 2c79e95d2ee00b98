"""OTLP: encodings, conventions, and events made of them."""
