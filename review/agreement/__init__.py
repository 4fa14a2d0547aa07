"""Agreement of a run's judges with experts, and variation between repeated judgements.

Used by others: ``run_agreement.compute_agreement`` and ``cached_agreement``, ``answers``."""
