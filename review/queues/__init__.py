"""Review queues: settings, sampling, creation, distribution, progress, and planning of the next review."""
