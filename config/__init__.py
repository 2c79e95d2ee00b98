"""Settings, addresses, the Celery application and the one-machine stack."""
