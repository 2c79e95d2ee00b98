"""Fills a database with as many events as one asks for, and what the fold makes of them."""
