"""SVG pictures drawn on the server, each with a table beside it. Pure Python above ``evaluation.core``.

Door: one function a picture: ``forest.forest``, ``forest.timeline`` and the others.
"""
