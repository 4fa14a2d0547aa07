"""The WSGI entrance, by a name that a package of it has."""

from config.wsgi import application

__all__ = ["application"]
