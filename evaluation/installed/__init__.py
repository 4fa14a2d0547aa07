"""The product as an installed package.

A wheel puts the top-level directories of a checkout (``config``, ``contrib``, ``templates``, ``static``, ``locale``)
here instead of at the top level, and makes them importable. Servers and tools use
``DJANGO_SETTINGS_MODULE=evaluation.installed.settings`` and ``evaluation.installed.wsgi:application``. In the product
only ``manage.py`` imports this package."""

import os
import sys
from pathlib import Path

_PACKAGE_DIRECTORY = str(Path(__file__).resolve().parent)
if Path(_PACKAGE_DIRECTORY, "config").is_dir() and _PACKAGE_DIRECTORY not in sys.path:
    # Take precedence over any other package named ``config``.
    sys.path.insert(0, _PACKAGE_DIRECTORY)
    # Child processes need the same path.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_PACKAGE_DIRECTORY, os.environ.get("PYTHONPATH")]))


def main() -> None:
    """Entry point of ``concord COMMAND`` and of ``manage.py COMMAND``."""
    from evaluation.management.command_line import run_command

    run_command()
