"""Form fields of the admin."""

import json
from typing import Any

from django import forms


class PrettyJSONField(forms.JSONField):
    """A JSON document, shown indented."""

    def prepare_value(self, value: Any) -> Any:
        """Indent a stored document; show what was typed as it was typed, and nothing as nothing."""
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        return json.dumps(value, indent=2, ensure_ascii=False)
