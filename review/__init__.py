"""Review queues, ratings, agreement, corrected scores, reports and calibration. Uses ``evaluation``."""
