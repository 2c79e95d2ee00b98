"""How dates and times are written where no page says another form: in `/admin/`."""
