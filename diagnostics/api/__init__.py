"""The REST interface of this app (docs/http-api.md)."""
