"""Settings pages of a project and of an account."""
