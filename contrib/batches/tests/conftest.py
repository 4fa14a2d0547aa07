from tests.evaluation.runs.conftest import judge, judge_server

__all__ = ["judge", "judge_server"]
