"""Calibration exercise of the demo: for each language a toy judge, rated answers frozen as a gold set, and a draft.

The draft is a better prompt for the toy judge. Questions, answers and ratings are generated: 80 invented funds with
three questions each, answered by a system with known faults. Nothing is judged here, so the toy judge need not run."""

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from django.conf import settings

from evaluation.criteria.rubrics import draft
from evaluation.datasets.importing import import_question_set
from evaluation.formats.reading import read_questions
from evaluation.judges.shipped import BASELINE, save_judge
from evaluation.judging.rubric import shipped_rubric
from evaluation.models import Endpoint, Project, User
from evaluation.runs.answer_files import import_answer_file
from review.calibration.versions import freeze
from review.models import GoldSet
from review.ratings.import_files import import_ratings
from review.ratings.importing import FileSampling

# An example of the checkout; an installed package has none, and its demo has no toy judge.
TOY_JUDGE = settings.BASE_DIR / "examples" / "toy_judge.py"
TOY_ORIGIN = "http://127.0.0.1:8011"
MODEL = "toy-word-counter-1"
# The name says what to start, because failures name the endpoint.
ENDPOINT = "toy judge (started by make demo)"
SEED = 20261127
# Levels by the quality of an answer, and how often it occurs among twelve.
QUALITIES = {"right": (5, 4), "extra": (4, 2), "half": (3, 2), "wrong": (1, 2), "unknown": (1, 1), "outdated": (2, 1)}


@dataclass(frozen=True, slots=True)
class Wording:
    """Texts of the exercise in one language. ``facts`` are category, question and answer with two figures."""

    houses: tuple[str, ...]
    funds: tuple[str, ...]
    facts: tuple[tuple[str, str, str], ...]
    extra: str
    outdated: str
    unknown: str
    padding: str
    instruction: str
    note: str


WORDINGS = {
    "en": Wording(
        houses=("Larkmere", "Halden", "Orrin", "Tessaly", "Corvane", "Marrow", "Brightoak", "Ellsworth"),
        funds=("Equity", "Bond", "Dividend", "Energy", "Health", "Rail", "Small Cap", "Treasury", "Water", "Timber"),
        facts=(
            (
                "costs",
                "What does the {fund} fund cost a year, and when was it launched?",
                "It costs 0.{a}% a year and was launched in 20{b}.",
            ),
            (
                "holdings",
                "How many companies does the {fund} fund hold, and in how many countries?",
                "It holds {a} companies in {b} countries.",
            ),
            (
                "distributions",
                "When does the {fund} fund pay distributions, and from which amount on?",
                "It pays on day {a} of each quarter, from {b} dollars on.",
            ),
        ),
        extra=" It has also beaten its index every single year.",
        outdated=" These figures are from an old prospectus and are no longer valid.",
        unknown="The documents do not say.",
        padding=" The fund's documents explain this in detail, and anyone who considers an investment should read them"
        " carefully before making a decision.",
        instruction="- For correctness, compare with the expected answer, figure by figure. Length is no merit.\n",
        note="The judge rewards long answers",
    ),
    "ko": Wording(
        houses=("라크미어", "할덴", "오린", "테살리", "코베인", "매로", "브라이트오크", "엘스워스"),
        funds=("주식", "채권", "배당", "에너지", "헬스케어", "철도", "중소형주", "국채", "물", "산림"),
        facts=(
            (
                "비용",
                "{fund} 펀드의 연간 보수는 얼마이고, 언제 설정되었나요?",
                "연간 보수는 0.{a}%이고, 20{b}년에 설정되었습니다.",
            ),
            (
                "보유 종목",
                "{fund} 펀드는 몇 개 기업을 보유하고, 몇 개 나라에 투자하나요?",
                "{a}개 기업을 보유하고, {b}개 나라에 투자합니다.",
            ),
            (
                "분배금",
                "{fund} 펀드의 분배금은 언제, 얼마부터 지급되나요?",
                "매 분기 {a}일째에, {b}달러부터 지급됩니다.",
            ),
        ),
        extra=" 또한 해마다 한 번도 빠짐없이 지수를 앞섰습니다.",
        outdated=" 다만 이 수치는 옛 투자설명서의 것으로 더 이상 유효하지 않습니다.",
        unknown="문서에 나와 있지 않습니다.",
        padding=" 자세한 내용은 펀드 문서에 설명되어 있으며, 투자를 생각하는 분은 누구나 결정을 내리기 전에 문서를"
        " 처음부터 끝까지 꼼꼼히 읽어 보셔야 하고, 궁금한 점은 판매사에 미리 물어보시는 것이 좋습니다.",
        instruction="- 정확성은 수치 하나하나를 기대 답변과 비교해 판단합니다. 답변의 길이는 장점이 아닙니다.\n",
        note="판정관이 긴 답변을 좋게 봅니다",
    ),
}


@dataclass(frozen=True, slots=True)
class ExerciseAnswer:
    """A question of the exercise with the system's answer and the ratings of two experts."""

    question_id: str
    group: str
    category: str
    question: str
    expected: str
    answer: str
    ratings: tuple[int, int]


def exercise_answers(language: str) -> Iterator[ExerciseAnswer]:
    """Yield 240 answers, the same on every call.

    The experts' levels follow from the answer's quality. The second expert is a level off at one in eight answers."""
    wording, chance = WORDINGS[language], random.Random(SEED)
    frequencies = [frequency for _, frequency in QUALITIES.values()]
    funds = [f"{house} {kind}" for house in wording.houses for kind in wording.funds]
    for number, fund in enumerate(funds):
        for category, question, fact in wording.facts:
            a, b, other_a, other_b = chance.sample(range(11, 30), 4)
            (quality,) = chance.choices(list(QUALITIES), frequencies)
            expected, level = fact.format(a=a, b=b), QUALITIES[quality][0]
            answer = {
                "right": expected,
                "extra": expected + wording.extra,
                "half": fact.format(a=a, b=other_b),
                "wrong": fact.format(a=other_a, b=other_b),
                "unknown": wording.unknown,
                "outdated": expected + wording.outdated,
            }[quality]
            yield ExerciseAnswer(
                question_id=f"fund-{number:02}-{category}",
                group=f"fund-{number:02}",
                category=category,
                question=question.format(fund=fund),
                expected=expected,
                answer=answer + wording.padding * chance.choice([0, 0, 1]),
                ratings=(level, level + chance.choice([0] * 7 + [1 if level < 5 else -1])),
            )


def load_calibration(project: Project, by: User, language: str) -> GoldSet:
    """Create what is missing: question set, rated answers, gold set, toy judge and draft."""
    name = f"calibration-{language}"
    gold_set = GoldSet.objects.filter(project=project, name=name).first()
    if gold_set:
        return gold_set
    answers = list(exercise_answers(language))
    questions = [
        {
            "id": row.question_id,
            "question": row.question,
            "expected_answer": row.expected,
            "category": row.category,
            "group": row.group,
        }
        for row in answers
    ]
    question_file = read_questions(json.dumps({"language": language, "questions": questions}).encode(), f"{name}.json")
    question_set = import_question_set(project, name, question_file, by=by).question_set
    answer_rows = [{"question_id": row.question_id, "answer": row.answer} for row in answers]
    run = import_answer_file(question_set, "toy-rag", _json_lines(answer_rows), f"{name}.jsonl", by=by, name=name)
    ratings = [
        {
            "question_id": row.question_id,
            "metric": "correctness",
            "value": value,
            "rater": "human",
            "author": f"expert {expert}",
        }
        for row in answers
        for expert, value in zip("AB", row.ratings, strict=True)
    ]
    import_ratings(run, _json_lines(ratings), "ratings.jsonl", sampling=FileSampling.ALL, by=by)
    endpoint, _ = Endpoint.objects.get_or_create(name=ENDPOINT, defaults={"base_url": f"{TOY_ORIGIN}/v1"})
    save_judge(project, f"toy-judge-{language}", endpoint, model=MODEL, language=language)
    if not project.default_judge:
        # Otherwise the only judge would be the default.
        project.default_judge = BASELINE
        project.save(update_fields=["default_judge"])
    rubric = shipped_rubric("answer_quality", language)
    instruction = rubric.instruction.rstrip() + "\n" + WORDINGS[language].instruction
    draft(project, rubric.model_copy(update={"instruction": instruction}), by=by, note=WORDINGS[language].note)
    return freeze(run, name, by=by, seed=SEED)


def _json_lines(rows: Iterable[Mapping[str, object]]) -> bytes:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()
