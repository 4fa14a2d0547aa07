"""Database layer: append-only tables, multi-row rules as triggers, bulk inserts and SQL statements."""
