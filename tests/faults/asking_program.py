"""A program and a function that ask the toy service at ``SYSTEM_TOY``: ``python asking_program.py QUERY``."""

from __future__ import annotations

import json
import os
import sys
from typing import Any
from urllib.request import Request, urlopen


def answer(question: str) -> dict[str, Any]:
    """Return the answer of the RAG service."""
    body = json.dumps({"question": question}).encode()
    with urlopen(Request(os.environ["SYSTEM_TOY"] + "/ask", body), timeout=5) as reply:
        return dict(json.load(reply))


if __name__ == "__main__":
    print(json.dumps(answer(sys.argv[1])))
