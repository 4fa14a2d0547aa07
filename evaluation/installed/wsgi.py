"""WSGI application under an importable name of the installed package."""

from config.wsgi import application

__all__ = ["application"]
