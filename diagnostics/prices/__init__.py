"""What tokens cost: prices of an installation and listed ones."""
