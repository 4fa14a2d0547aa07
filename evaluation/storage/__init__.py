"""Database layer: append-only tables, multi-row rules as triggers, bulk inserts and SQL statements.

Public: ``append_only.AppendOnly`` and ``install``, ``guards.Guard``, ``statements.Statement``."""
