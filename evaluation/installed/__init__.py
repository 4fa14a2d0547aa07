"""The product installed as a package.

A wheel holds here what lies beside the apps in a checkout (``config``, ``contrib``, ``templates``, ``static``,
``locale``), so that it owns no other top-level name; all of it becomes importable with this package. Servers and tools
find it by ``DJANGO_SETTINGS_MODULE=evaluation.installed.settings`` and ``evaluation.installed.wsgi:application``.
Imported by nothing in the product.
"""

import os
import sys
from pathlib import Path

_BESIDE = str(Path(__file__).resolve().parent)
if Path(_BESIDE, "config").is_dir() and _BESIDE not in sys.path:
    sys.path.insert(0, _BESIDE)  # before whatever else is called config
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_BESIDE, os.environ.get("PYTHONPATH")]))  # for children


def main() -> None:
    """``concord COMMAND``, in a checkout ``manage.py COMMAND``."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
