"""A JSON column that keeps the order of its keys."""

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.types.json import Json


class OrderedJSONField(models.JSONField):
    """An object or a list as JSON, its keys in the order they were written.

    On PostgreSQL it is of type ``json``: ``jsonb``, which Django takes, sorts the keys of objects.
    """

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        """Return the column type."""
        return "json" if connection.vendor == "postgresql" else super().db_type(connection)

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        """Adapt a value for the driver."""
        if connection.vendor == "postgresql" and isinstance(value, dict | list):
            return Json(value)
        return super().get_db_prep_value(value, connection, prepared)

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        """Read a column; the driver has parsed PostgreSQL's ``json`` already."""
        return value if isinstance(value, dict | list) else super().from_db_value(value, expression, connection)
