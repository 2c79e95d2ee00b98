"""Goals: what was asked, under which bounds, how far it has come, and how it ended."""
