"""The product's settings, by a name that a package of it has."""

from config.settings import *  # noqa: F403
