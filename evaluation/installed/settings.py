"""Settings under an importable name of the installed package."""

from config.settings import *  # noqa: F403
