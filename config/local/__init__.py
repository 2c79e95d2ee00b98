"""The whole product on one machine: database, broker, model, web, workers."""
