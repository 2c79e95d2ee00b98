"""Alert rules, their evaluation, incidents, silences, channels and notifications."""
