"""The REST interface of this app (api.md)."""
