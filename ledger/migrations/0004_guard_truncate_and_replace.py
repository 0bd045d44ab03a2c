"""Append-only also against PostgreSQL's TRUNCATE and SQLite's REPLACE."""

from django.db import migrations

from ledger.triggers import create_guards_sql, drop_guards_sql


def create(apps, schema_editor):
    for statement in create_guards_sql(schema_editor.connection.vendor):
        schema_editor.execute(statement, params=None)


def drop(apps, schema_editor):
    for statement in drop_guards_sql(schema_editor.connection.vendor):
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [("ledger", "0003_task_spec_keeps_its_order")]
    operations = [migrations.RunPython(create, drop)]
