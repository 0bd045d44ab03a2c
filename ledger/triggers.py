"""The rules the database itself keeps, as triggers on both engines.

- Append-only tables refuse UPDATE and DELETE, and what amounts to them: PostgreSQL's TRUNCATE, and SQLite's REPLACE,
  which deletes without telling the triggers of DELETE (INV-17).
- A version changes state or traffic only together with the next stage number, never leaves its student or number, never
  goes back to ``candidate``, and its bill of materials is written once (INV-5, INV-14, INV-29).
- An audit or shadow verdict is written once (INV-28).
- Whatever a routing snapshot reads bumps the state epoch in the same transaction, also for a change made by hand.
"""

APPEND_ONLY = ["ledger_event", "ledger_adminaction", "ledger_versionleaf", "ledger_receipt", "ledger_tombstone"]
_KEYS: dict[str, list[tuple[str, ...]]] = {
    "ledger_event": [("id",)],
    "ledger_adminaction": [("id",)],
    "ledger_versionleaf": [("id",), ("version_id", "split", "key")],
    "ledger_receipt": [("id",), ("on", "client")],
    "ledger_tombstone": [("hash",)],
}
SNAPSHOT_SOURCES = [
    "ledger_student",
    "ledger_version",
    "ledger_task",
    "ledger_runtimeflag",
    "ledger_apikey",
    "ledger_notrain",
]

_VERSION_RULES = [
    (
        "(OLD.state <> NEW.state OR OLD.traffic_pct <> NEW.traffic_pct) AND NEW.stage <> OLD.stage + 1",
        "a version moves only with the next stage number",
    ),
    ("OLD.state = NEW.state AND OLD.traffic_pct = NEW.traffic_pct AND NEW.stage <> OLD.stage", "a stage is a move"),
    ("NEW.state = 'candidate' AND OLD.state <> 'candidate'", "a version never becomes a candidate again"),
    ("OLD.student_id <> NEW.student_id OR OLD.number <> NEW.number", "a version keeps its student and number"),
    ("OLD.bom IS NOT NULL AND (NEW.bom IS NULL OR OLD.bom <> NEW.bom)", "a bill of materials is written once"),
]
_REQUEST_RULES = [
    ("OLD.audit NOT IN ('pending') AND NEW.audit <> OLD.audit", "an audit verdict is written once"),
    ("OLD.shadow NOT IN ('pending') AND NEW.shadow <> OLD.shadow", "a shadow verdict is written once"),
]
_GUARDED = {"ledger_version": _VERSION_RULES, "ledger_request": _REQUEST_RULES}


def create_sql(vendor: str) -> list[str]:
    """Return the statements that create every trigger for ``sqlite`` or ``postgresql``."""
    return _sqlite() if vendor == "sqlite" else _postgresql()


def drop_sql(vendor: str) -> list[str]:
    """Return the statements that drop every trigger again."""
    is_sqlite = vendor == "sqlite"
    return [f"DROP TRIGGER IF EXISTS {name}" + ("" if is_sqlite else f" ON {table}") for name, table in _names(vendor)]


def create_guards_sql(vendor: str) -> list[str]:
    """Return the statements that create the triggers for TRUNCATE (``postgresql``) or REPLACE (``sqlite``)."""
    if vendor == "sqlite":
        return [
            f"CREATE TRIGGER {table}_append_only_replace BEFORE INSERT ON {table} "  # noqa: S608 - our own names
            f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {_same_row(table)}) "
            f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            for table in APPEND_ONLY
        ]
    refusals = [
        f"CREATE TRIGGER {table}_append_only_truncate BEFORE TRUNCATE ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION ratchet_append_only()"
        for table in APPEND_ONLY
    ]
    return refusals + [
        f"CREATE TRIGGER {table}_epoch_truncate AFTER TRUNCATE ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION ratchet_bump_epoch()"
        for table in SNAPSHOT_SOURCES
    ]


def drop_guards_sql(vendor: str) -> list[str]:
    """Return the statements that drop the triggers of ``create_guards_sql`` again."""
    if vendor == "sqlite":
        return [f"DROP TRIGGER IF EXISTS {table}_append_only_replace" for table in APPEND_ONLY]
    names = [(f"{table}_append_only_truncate", table) for table in APPEND_ONLY]
    names += [(f"{table}_epoch_truncate", table) for table in SNAPSHOT_SOURCES]
    return [f"DROP TRIGGER IF EXISTS {name} ON {table}" for name, table in names]


def _same_row(table: str) -> str:
    keys = (" AND ".join(f'"{column}" = NEW."{column}"' for column in key) for key in _KEYS[table])
    return " OR ".join(f"({key})" for key in keys)


def _names(vendor: str) -> list[tuple[str, str]]:
    names = [(f"{table}_append_only_{verb}", table) for table in APPEND_ONLY for verb in ("update", "delete")]
    names += [(f"{table}_rules", table) for table in _GUARDED]
    verbs = ("insert", "update", "delete")
    if vendor == "sqlite":
        return names + [(f"{table}_epoch_{verb}", table) for table in SNAPSHOT_SOURCES for verb in verbs]
    return names + [(f"{table}_epoch", table) for table in SNAPSHOT_SOURCES]


def _sqlite() -> list[str]:
    statements = []
    for table in APPEND_ONLY:
        for verb in ("update", "delete"):
            statements.append(
                f"CREATE TRIGGER {table}_append_only_{verb} BEFORE {verb.upper()} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
    for table, rules in _GUARDED.items():
        checks = " ".join(f"SELECT RAISE(ABORT, '{message}') WHERE {condition};" for condition, message in rules)
        statements.append(f"CREATE TRIGGER {table}_rules BEFORE UPDATE ON {table} BEGIN {checks} END")
    for table in SNAPSHOT_SOURCES:
        for verb in ("insert", "update", "delete"):
            statements.append(
                f"CREATE TRIGGER {table}_epoch_{verb} AFTER {verb.upper()} ON {table} "  # noqa: S608 - our own names
                "BEGIN UPDATE ledger_stateepoch SET value = value + 1; END"
            )
    return statements


def _postgresql() -> list[str]:
    statements = [
        "CREATE OR REPLACE FUNCTION ratchet_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation'; "
        "END $$",
        "CREATE OR REPLACE FUNCTION ratchet_bump_epoch() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN UPDATE ledger_stateepoch SET value = value + 1; RETURN NULL; END $$",
    ]
    for table in APPEND_ONLY:
        for verb in ("update", "delete"):
            statements.append(
                f"CREATE TRIGGER {table}_append_only_{verb} BEFORE {verb.upper()} ON {table} "
                f"FOR EACH ROW EXECUTE FUNCTION ratchet_append_only()"
            )
    for table, rules in _GUARDED.items():
        checks = " ".join(
            f"IF {condition} THEN RAISE EXCEPTION '{message}' USING ERRCODE = 'integrity_constraint_violation'; END IF;"
            for condition, message in rules
        )
        statements.append(
            f"CREATE OR REPLACE FUNCTION {table}_rules() RETURNS trigger LANGUAGE plpgsql AS $$ "
            f"BEGIN {checks} RETURN NEW; END $$"
        )
        statements.append(
            f"CREATE TRIGGER {table}_rules BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION {table}_rules()"
        )
    for table in SNAPSHOT_SOURCES:
        statements.append(
            f"CREATE TRIGGER {table}_epoch AFTER INSERT OR UPDATE OR DELETE ON {table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION ratchet_bump_epoch()"
        )
    return statements
