"""Hosts that share one database, each started by the documented commands in a working folder of its own."""

from __future__ import annotations

import secrets
import subprocess
import sys
import urllib.request

from tests.faults.site import ROOT, Site, free_port


class Host:
    """One simulated machine: ``serve --no-worker`` (with a ``port``) or ``serve --no-web``, identified by
    ``CONCORD_HOST``."""

    def __init__(self, site: Site, name: str, *, web: bool = False) -> None:
        self.name, self.port = name, free_port() if web else 0
        folder = site.folder / name
        folder.mkdir()
        site.environment.setdefault("SECRET_KEY", secrets.token_urlsafe(64))  # the same for all
        own = {"CONCORD_VAR": str(folder / "var"), "CONCORD_HOST": name, "SITE_WORKER_TIMEOUT_SECONDS": "120"}
        role_options = ["--no-worker", "--port", str(self.port)] if web else ["--no-web"]
        with (site.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "serve", *role_options],
                cwd=folder,
                env={**site.environment, **own},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        site.processes.append(self.process)

    def is_ready(self) -> bool:
        """Return whether its web server answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/login/", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False
