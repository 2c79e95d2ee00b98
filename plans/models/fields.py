"""Fields that Django does not have."""

import json
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.types.json import Json


class ExactJSONField(models.JSONField):
    """JSON kept as it was written: the order of keys and the form of numbers too."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        """Return PostgreSQL's type that keeps the text."""
        return "json"

    def get_db_prep_value(
        self,
        value: Any,  # noqa: ANN401 - any JSON
        connection: BaseDatabaseWrapper,
        prepared: bool = False,
    ) -> Any:  # noqa: ANN401 - as Django has it
        """Return what the driver writes; None is NULL."""
        if value is None or hasattr(value, "as_sql"):
            return value
        return Json(value, dumps=lambda given: json.dumps(given, ensure_ascii=False))

    def from_db_value(
        self,
        value: Any,  # noqa: ANN401 - any JSON
        expression: object,
        connection: BaseDatabaseWrapper,
    ) -> Any:  # noqa: ANN401 - any JSON
        """Return the value, which the driver has read already."""
        return value
