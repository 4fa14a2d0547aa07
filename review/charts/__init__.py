"""Layouts of server-side SVG charts. Templates render them, each with a table. Independent of Django."""
