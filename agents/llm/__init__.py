"""Providers and their models: one seam, `CompletionProvider.complete`, and what implements it."""
