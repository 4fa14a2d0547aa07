"""Review queues: making them, serving their items one person at a time, and how far they are."""
