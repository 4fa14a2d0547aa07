"""How tables behave: append-only rows, rules over several rows as triggers, bulk writes, statements written in SQL.

Imports ``core`` and Django, no table.

Door: ``append_only.AppendOnly``, ``append_only.install``, ``guards.Guard``, ``statements.Statement`` and
``insert_values``, ``tables.CreateTables``.
"""
