"""The order of a task's fields is part of its spec hash, and PostgreSQL's jsonb did not keep it.

Written by hand: Django's ``AlterField`` would rebuild the table on SQLite, where nothing changes, and lose its triggers.
"""

from django.db import migrations

from ledger.models.fields import OrderedJSONField
from ledger.taskspec import parse_spec


def change_type(to):
    def change(apps, schema_editor):
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"ALTER TABLE ledger_task ALTER COLUMN spec TYPE {to} USING spec::{to}")

    return change


def hash_what_is_stored(apps, schema_editor):
    for task in apps.get_model("ledger", "Task").objects.all():
        stored = parse_spec(task.name, task.spec).spec_hash
        if stored != task.spec_hash:
            task.spec_hash = stored
            task.save(update_fields=["spec_hash"])


class Migration(migrations.Migration):
    dependencies = [("ledger", "0002_rules_and_defaults")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(change_type("json"), change_type("jsonb"))],
            state_operations=[
                migrations.AlterField(
                    "task",
                    "spec",
                    OrderedJSONField(
                        help_text="The task spec document (docs/tasks.md); the order of its fields counts."
                    ),
                ),
            ],
        ),
        migrations.RunPython(hash_what_is_stored, migrations.RunPython.noop),
    ]
