"""Selections of pages and responses: filters, the query language, time ranges."""
