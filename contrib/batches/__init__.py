"""Judge calls in batches of the provider: cheaper, with replies within a day (docs/decisions/0008).

``client`` holds format and HTTP; ``ledger`` selects open and due batches and adds calls; ``runner`` takes a batch from
its file to its last reply; ``feature`` extends the core."""
