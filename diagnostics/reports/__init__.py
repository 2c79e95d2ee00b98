"""The scheduled report: subscriptions, figures, mails, the archive."""
