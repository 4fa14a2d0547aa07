"""A local OpenAI-compatible server on real sockets, with scripted replies, faults and latency.

In a test: fixture ``judge_server`` (``tests/judge_server/fixture.py``) or ``with JudgeServer() as server:``.
On its own: ``python -m tests.judge_server --port 0 --latency 0.2 --fault rate_limited=0.02``.
"""

from tests.judge_server.received import ReceivedRequest
from tests.judge_server.server import JudgeServer

__all__ = ["JudgeServer", "ReceivedRequest"]
