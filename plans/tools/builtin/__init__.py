"""Tools that every installation has: useful and harmless. Importing registers them."""

from plans.tools.builtin import echo, fail, http_get, json_select, sleep, template

__all__ = ["echo", "fail", "http_get", "json_select", "sleep", "template"]
