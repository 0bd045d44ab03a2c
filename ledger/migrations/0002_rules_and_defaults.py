"""Triggers on both engines, and the rows every ledger starts with."""

from django.db import migrations

from ledger.bootstrap import ensure_defaults
from ledger.triggers import create_sql, drop_sql


def create(apps, schema_editor):
    ensure_defaults(
        apps.get_model("ledger", "Student"), apps.get_model("ledger", "Task"), apps.get_model("ledger", "StateEpoch")
    )
    for statement in create_sql(schema_editor.connection.vendor):
        schema_editor.execute(statement, params=None)


def drop(apps, schema_editor):
    for statement in drop_sql(schema_editor.connection.vendor):
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [("ledger", "0001_initial")]
    operations = [migrations.RunPython(create, drop)]
