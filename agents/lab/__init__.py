"""The parse lab and replay: one answer, or stored samples, under other settings."""
