"""The site's settings with other times: ``SITE_LEASE_SECONDS`` in the environment becomes ``CONCORD_LEASE_SECONDS``."""

import os

from config.settings import *  # noqa: F403 -- all of them

for _name in ("LEASE_SECONDS", "TASK_SECONDS", "HEARTBEAT_SECONDS", "WORKER_TIMEOUT_SECONDS"):
    if f"SITE_{_name}" in os.environ:
        globals()[f"CONCORD_{_name}"] = int(os.environ[f"SITE_{_name}"])
