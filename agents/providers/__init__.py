"""Who answers prompts: one seam, `Provider.complete`, and what stands behind it."""
