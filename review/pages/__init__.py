"""What pages show, as frozen values: built from figures and rows, read by templates and by nothing else."""
