"""Tool calls of a goal of mode actions: carried out, stored, taken back."""
