"""BERTScore against its authors' package, in a separate environment: ``python -m tools.crosscheck.bert_score``.

The package brings PyTorch and half a gigabyte more, which neither running nor testing needs. The environment is created
once and reused. PyTorch is installed first, so that a CPU build is kept if the index offers one under that version."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv-bert-score"
COMPARED = "contrib/local_embeddings/tests/test_against_bert_score.py"
STEPS = (["torch==2.13.0"], ["bert-score==0.3.13", "pytest", "pytest-django", "hypothesis", "-e", f"{ROOT}[semantic]"])


def main() -> int:
    """The exit code of the comparison."""
    python = FOLDER / "bin" / "python"
    if not (FOLDER / "complete").exists():
        venv.create(FOLDER, with_pip=True)
        for packages in STEPS:
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        (FOLDER / "complete").touch()
    return subprocess.run([python, "-m", "pytest", "-q", COMPARED], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
