"""SVG charts drawn on the server, each with a table beside it. No Django.

One function a chart, as ``forest.forest`` and ``forest.timeline``.
"""
