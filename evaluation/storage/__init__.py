"""Database behaviour: append-only tables, rules over several rows as triggers, bulk writes, statements in SQL.

Used by others: ``append_only.AppendOnly`` and ``install``, ``guards.Guard``, ``statements.Statement``.
"""
