"""The parse lab and replay: parse one answer, or stored samples, with other settings."""
