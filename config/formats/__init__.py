"""The formats of dates and times in `/admin/`."""
