"""Versioned corpora: documents split into chunks with stable ids and positions, and a reference system that answers
from them."""
