"""Refusals and admissions of not knowing: the one list of phrases per language behind ``dont_know``, ``answer_class``
and ``negative_detection``.

A phrase pairs a subject (the documents, the information, the assistant) with a predicate (not found, stated, known,
available, told). It counts as a statement of the assistant: not in quotes, not under a condition, not about a third
person, not where it is denied itself ("it is wrong to say that the report does not mention it"), and not where the
answer goes on, or has begun, with a figure or fact of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from evaluation.metrics.normalise import fold, fold_with_lines, sentences

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Wording:
    """The patterns of one language, all searched in one clause of a folded text.

    ``refusals`` are the phrases. ``unasserted`` marks clauses that state nothing by themselves: conditions,
    concessions, reports of what others say. ``contrasts`` is how a clause ends, or how one
    begins, behind which something else is said. ``service`` marks clauses about the search, the question
    or where to turn, whose figures are no facts.
    """

    refusals: re.Pattern[str]
    unasserted: re.Pattern[str]
    contrasts: re.Pattern[str]
    service: re.Pattern[str]


def _any(phrases: Iterable[str], words: Mapping[str, str]) -> re.Pattern[str]:
    """One pattern of all phrases; ``<name>`` stands for a list of words."""

    def filled(phrase: str) -> str:
        return _NAME.sub(lambda match: f"(?:{filled(words[match[1]])})", phrase)

    return re.compile("|".join(map(filled, phrases)))


_NAME = re.compile(r"<([a-z]+)>")
_EN_WORDS = {
    "source": r"\b(?:document|documentation|passage|context|excerpt|extract|material|text|source|file|pdf|report|"
    r"manual|"
    r"handbook|guide|guideline|article|brochure|leaflet|section|chapter|page|table|chunk|snippet|search result|"
    r"result|"
    r"knowledge base|database|dataset|data|record|log|minutes|transcript|interview|docs?|wiki|ticket|listing|"
    r"spreadsheet|sheet|slide|presentation|chart|graph|figure|statement|scan|attachment|filing|catalogue|catalog|"
    r"bulletin|briefing|essay|book|story|review|post|thread|agenda|protocol|summary|abstract|interview|"
    r"release note|note|letter|email|memo|faq|"
    r"website|corpus|paragraph|entry|reference|information|content|description|specification|datasheet|material)s?\b",
    "deed": r"\b(?:policy|policies|contract|agreement|lease|plan|terms|law|statute|regulation|invoice|paper|"
    r"author|story|"
    r"summary|label|form|certificate|it|they)s?\b",
    "info": r"\b(?:information|info|data|answer|detail|mention|figure|reference|evidence|record|indication|"
    r"context|knowledge|"
    r"result|idea|clue|description|explanation|document|documentation|source|passage|entry|entries|article|"
    r"guidance|match|"
    r"statement|basis|trace|insight|fact|word|material|way|means|visibility|access|details you \w+|hit|hint|sign|"
    r"coverage|specifics|figure|number|instruction|passage)s?\b",
    "gap": r"(?: (?!that\b|which\b|who\b)[\w'\"-]+){0,6}?",
    "adverb": r"(?: \w+ly| even| actually| quite| just| also| yet| anywhere| explicitly| currently| really|"
    r" simply| still)?",
    "not": r"(?:(?:do|does|did|has|have|had)(?: not|n't)|never|fails? to|failed to)(?: (?:appear|seem) to)?",
    "isnot": r"(?:is|are|was|were)(?: not|n't| nowhere| never)|(?:has|have)(?: not|n't) been|(?:does|do)(?: not|n't) "
    r"(?:appear|seem)(?: to be)?",
    "cannot": r"can't|cannot|can not|couldn't|could not|unable to|not able to|impossible to|not possible to",
    "writes": r"(?:mention|state|specify|specifie|say|explain|describe|discuss|indicate|define|reveal|disclose|"
    r"tell|clarify|"
    r"elaborate|answer|identify|identifie|detail|go into|goes into|get into|touch on|touch upon|spell out|"
    r"make clear|refer to|speak to|"
    r"talk about|deal with|help|resolve|shed (?:any )?light|say a word|bring up|comment on|allude to|establish|"
    r"settle)(?:e?s)?\b",
    "holds": r"(?:contain|include|give|cover|provide|address|name|list|offer|present|show|have|hold|supply|report|"
    r"feature|"
    r"note|record|extend to|ha|make)(?:e?s)?\b",
    "told": r"(?:mentioned|stated|specified|disclosed|described|discussed|documented|indicated|explained|"
    r"clarified|spelled out|"
    r"named|defined|noted|recorded|reported|given|evident|apparent|offered|supplied|spelt out|laid out|set out|"
    r"detailed)\b",
    "there": r"(?:present|available|included|provided|found|listed|shown|contained|covered|clear|known|addressed|"
    r"supplied|"
    r"referenced|published|there|in|part of|answered|stored|retrieved|accessible|within|among|on file|at hand|"
    r"to hand|here|visible|legible|loaded|uploaded|indexed)\b(?! (?:until|before|after|to)\b)",
    "settled": r"(?:determined|judged|answered|inferred|derived|worked out|established|calculated|ascertained|"
    r"deduced|"
    r"concluded|identified|computed|gleaned|told|assessed|drawn|known|estimated|resolved|settled|made out|"
    r"read off|decided|evaluated)\b",
    "tells": r"(?:know|say|tell|determine|answer|verify|identify|judge|calculate|compute|derive|infer|establish|"
    r"state|advise|"
    r"assist|speculate|disclose|respond|conclude|comment|estimate|work out|make out|assess|discuss|guess|vouch|"
    r"help|look up|comply|fulfil\w*|elaborate|predict|recall|tell|explain|clarify|read|pinpoint|cite|go into|"
    r"weigh in|"
    r""
    r"be (?:sure|certain|of help)|reveal|speak to|pull|confirm|find (?:any|an?|the|that|this|it|what|out|where|"
    r"who|when|how|"
    r"<info>|<source>)|see|locate|(?:give|provide|offer|share|retrieve|access|make)<gap> (?:you|that|this|it|"
    r"advice|opinion|"
    r"recommendation|prediction|judg|number|date|<info>|<source>))",
    "me": r"\b(?:i|we|(?:this|the|an) (?:ai )?(?:assistant|chatbot|bot|model|system))\b(?:'ve| am|'m| are|'re|"
    r" have| was| were)?",
    "clausestart": r"^\W*(?:(?:sorry|unfortunately|regrettably|sadly|hmm|well|apologies|answer)\W+)?",
}
_EN = Wording(
    refusals=_any(
        (
            # the documents do not say
            r"<source><gap> (?:<not>)<adverb> (?:<writes>|<holds>)|(?:<source>|"
            r"<deed>)<adverb> (?:<not>)<adverb> <writes>",
            r"(?<!\bhe)(?<!\bshe)(?<!\bwho) (?:doesn't|does not|don't|do not|never|fails? to)<adverb> (?:mention|"
            r"say|state|specify|indicate|"
            r"explain|reveal|disclose|clarify|define|describe|discuss|specifie|clarifie)(?:e?s)?\b(?! (?:that|to|"
            r"yes|no)\b)",
            r"\b(?:it|they) (?:<not>) (?:list|name|give|show)\b|(?:<not>) (?:appear|seem) that .*<source>",
            r"<source><gap> (?:<holds>|<writes>) (?:no|nothing|none|neither)\b|<source><gap> (?:lack|omit)s?\b",
            r"<source><gap> (?:(?:is|are) silent|(?:<not>) (?:go|reach|extend))\b|"
            r"<source>.*\b(?:without (?:naming|giving|saying|stating|specifying|mentioning)|"
            r"stops? short of|leaves?(?: \w+){1,4} (?:open|un\w+ed|unclear))\b",
            r"\b(?:none|nothing|neither|no|not one)\b(?: (?:of|in|on|from|here|there|the|these|your|my|\w+ed))* ?"
            r"(?:<source>)?<gap> (?:<writes>|<holds>|relevant|about|touches|suggests?)",
            r"<source><gap> (?:(?:is|are|remains?|stays?) (?:silent|vague|unclear|ambiguous|mum|no help)|ignores?|"
            r"skips?|gloss\w* over)\b",
            r"<source>.*\b(?:rather than|instead of|not) (?:your|the one|what you|the (?:topic|product|plan|"
            r"year) you)\b",
            # the information is not there
            r"(?:<info>|\b(?:topic|question|subject|point|term)s?\b)<gap> (?:<isnot>)<adverb> (?:<told>|<there>)|"
            r"<info> not <there>",
            r"(?:<isnot>)<adverb> (?:mentioned|stated|specified|disclosed|indicated|documented|discussed|"
            r"spelled out)\b",
            r"(?:<isnot>)<adverb> (?:<told>|<there>)\b.*(?:<source>|<deed>)|\bunclear\b.*<source>|"
            r"<source>.*\bit (?:<isnot>)<adverb> <told>",
            r"<info><gap> (?:is|are|was|were|remains?) (?:missing|unavailable|unknown|unclear|absent|lacking|"
            r"insufficient|"
            r"not enough|not sufficient|too (?:vague|limited|sparse))\b",
            r"\b(?:can't|cannot|can not|impossible to) be<adverb> <settled>|(?:<cannot>) be<adverb> \w+ .*<source>",
            r"<info><gap> (?:<cannot>) be\b|\bquestion<gap> (?:<cannot>) be\b|\bunanswerable\b",
            r"\b(?:there(?: is|'s| are| was| were)|see|sees|found|find|with|have|has|got|contains?|"
            r"gives?) (?:just |simply )?"
            r"(?:no|nothing|zero)(?: \w+){0,2}? ?(?:<info>|\b(?:in|about|on|from|for)\b.*(?:<source>|\b(?:it|this|"
            r"that)$))",
            r"\b(?:isn't|is not|aren't|not|wasn't|without) (?:enough|sufficient|adequate)<gap> <info>|"
            r"\binsufficient <info>",
            r"\b(?:no|without any) (?:way|means) (?:to tell|of telling|to know|of knowing)\b|\bcame up empty\b|"
            r"\bout of scope\b|"
            r"\b(?:unrelated|irrelevant|not (?:relevant|related)) to\b.*question|(?:<isnot>)<adverb> known\W*$|"
            r"(?:<isnot>) (?:part of|among|within|in) (?:the|my|any|your|these|those)\b.*(?:<source>|scope)|"
            r"\b(?:search\w*|quer\w+|lookup|look)\b.*\b(?:turned up|return\w*|yield\w*|produced|gave|found|"
            r"brought up)<gap> "
            r"(?:nothing|no|none|empty)\b|\bnothing (?:relevant |useful |matching )?(?:came up|turned up|"
            r"matche[sd]|was found|found|fits)\b|"
            r"\btoo (?:little|few|sparse|vague|limited)<gap> (?:<info>|to (?:say|tell|answer|judge|determine|go on))|"
            r"\b(?:more|further|additional)<gap> <info><gap> (?:is|are|would be) (?:needed|required|necessary)\b|"
            r"<info><gap> (?:is|are|was|were|has been|have been) (?:left )?(?:blank|redacted|illegible|cut off|"
            r"truncated|cropped|omitted|unreadable)\b|"
            r"\b(?:question|matter|point|issue|that|this|it) remains? (?:open|unanswered|unclear|unknown|"
            r"unresolved|a mystery)\b|"
            r"\b(?:would|could) (?:only )?be (?:a guess|guessing|guesswork|(?:pure |mere )?speculation|"
            r"speculative|speculating)\b|"
            r"\b(?:one|you|nobody|no one) (?:can't|cannot|can)<adverb> (?:tell|know|say|determine|infer|"
            r"work out)\b.*(?:<source>|\bfrom (?:this|that|it|here)\b)|\bnowhere to be found\b",
            r"\b(?:outside|beyond)(?: of)? (?:the|my|our|this|what)<gap> (?:scope|topics|range|reach|knowledge|"
            r"remit|coverage|"
            r"<source>)",
            # the assistant does not know or does not tell
            r"<me><adverb> (?:do not|don't|did not|didn't)<adverb> (?:know|recall|(?:see|find|have|hold|"
            r"possess)\b.*(?:<info>|"
            r"\b(?:ability|permission|enough|anything|that|it)\b))",
            r"<me><adverb> (?:not|unable)<adverb>(?: entirely| too)? (?:sure|certain|aware|able|in a position|"
            r"familiar|allowed|"
            r"permitted|authori[sz]ed|qualified|at liberty|comfortable|to <tells>)",
            r"<me><adverb> (?:can't|cannot|can not|couldn't|could not|unable to|won't|will not|may not|"
            r"won't be able to|not "
            r"able to|would be guessing)<adverb>(?: <tells>|(?: (?:give|provide|offer|share))?\W*$)|\b(?:(?:n't|"
            r"not) possible|impossible) (?:for me )?to <tells>",
            r"<me>(?: can| am|'m)? (?:only|limited|restricted|designed|set up)<gap> (?:answer|help|assist|discuss|"
            r"cover|handle|able)\w*|"
            r"<me>(?:'d| would)? (?:have|had|was|were)?(?: not|n't| never| only) (?:been )?(?:given|provided|"
            r"shown|supplied|trained|told|seen)\b|"
            r"<me> only have\b|<me>(?: can| could)?<adverb> (?:find|found|see|saw|locate) (?:no|nothing|none)\b|"
            r"<me>(?:'ll| will)? have to pass\b|<me>(?: do not|don't| won't| will not| would not|"
            r" wouldn't) (?:want to|like to|wish to)? ?(?:guess|speculate|mislead|make)\w*|"
            r"\b(?:not|n't) (?:have )?(?:a|the (?:faintest|slightest|foggiest)) ?(?:clue|"
            r"idea)?\b(?=.*\W*$)(?<=clue|idea)|\bhaven't (?:a|the) (?:\w+ )?(?:clue|idea)\b|"
            r"\bno clue\b|\bbeats me\b|\bstumped\b|\bwish i (?:could|knew)\b|<me>(?: got)? (?:nothing|"
            r"no (?:\w+ ){0,2}?<info>)",
            r"<me>.* and<adverb> (?:couldn't|could not|can't|cannot|didn't|did not|don't) <tells>|"
            r"\bneither confirm nor deny\b|"
            r"\bnot (?:\w+ )?(?:<info>|something|anything)(?: that)? (?:i|we) (?:can|could|may|am)\b|"
            r"<me><adverb> (?:hold|keep|possess) no\b|"
            r"<me>(?: \w+)? (?:lack|find no|found no|see no|saw no|(?:must|have to|will) (?:decline|refuse|"
            r"refrain)|decline|"
            r"would rather not|prefer not)|\bi'd (?:rather|prefer) not\b|(?:isn't|is not|not) something (?:i|we|"
            r"(?:the |my )?<source>)\b|"
            r"\bwhich (?:i|we) (?:do not|don't) have\b|\bnot (?:allow|permit|let) me to\b|\bdon't (?:allow|permit|"
            r"let) me to\b|"
            r"\b(?:i|we)(?:'d| would)? need (?:more|further|additional)\b",
            # elliptical
            r"^\W*(?:n/a|none|null|unknown)\W*$",
            r"<clausestart>(?:not (?:sure|certain|<told>|<there>)|don't know|no idea|"
            r"no (?:\w+ ){0,2}?<info>(?=\W*$| (?:on|about|for|regarding|concerning|as to|in|(?:from|of|"
            r"to)\b.*<source>|(?:(?:is|are|was|were|can be|could be) )?(?:<told>|<there>|<settled>|appears?|"
            r"exists?)))|unable to <tells>|no such (?:\w+ )?<info>|"
            r"(?:<cannot>) (?:be )?(?:<tells>|<settled>)|(?:nothing|none) (?:was |were )?(?:found|relevant|given|"
            r"stated|mentioned)|hard to (?:say|tell|know)|it(?:'s| is) (?:un|not )(?:clear|certain)|it(?:'s|"
            r" is) hard to|undetermined|unclear|unspecified|not applicable|0 results|zero results|"
            r"<info><gap> (?:unavailable|missing|unknown))\b",
        ),
        _EN_WORDS,
    ),
    unasserted=re.compile(
        r"^\W*(?:if|when|whenever|unless|until|in case|while|whilst|although|though|even though|even if|where)\b"
        r"|\b(?:wrong|incorrect|untrue|false|not true|misleading|mistake\w*|myth)\b.{0,20}\b(?:say|claim|that|"
        r"think|suggest)\b"
        r"|\bit is not (?:that|as if)\b|\b(?:says?|said|replie[sd]|answered|claims?|claimed|stated|told|"
        r"reported) (?:\w+ )?that\b"
    ),
    contrasts=re.compile(r"\b(?:but|however|yet|nevertheless|nonetheless|that said)\b"),
    service=re.compile(
        r"\b(?:please|contact|consult|ask(?:ing)?|check(?:ed|ing)?|search(?:ed|ing)?|look(?:ed|ing)? (?:at|"
        r"through|for|in)|"
        r"review(?:ed|ing)?|you (?:may|might|could|can|should|want)|call|reach out|try|let me|i can|i could|happy to|"
        r"(?:would|could|can) you|(?:should|may|might|would) (?:know|have|be able|show|help|tell)|retriev\w+|"
        r"questions?|sorry|need(?:ed)?|thanks?|thank you|hello|hi|understand|team|hotline|department|desk|your|"
        r"i(?:'ve| have)? (?:read|went|saw|see|have|received|was given)|"
        r"apolog\w+|refer to|get in touch|recommend|suggest|only|covers?|stops?|ends?)\b"
    ),
)
_KO_WORDS = {
    # endings of a statement: not adnominal (없는 상품), conditional (없으면) or quoted (없다고)
    "ends": r"[습읍]니|는?다(?=\W|$)|[어아](?![도지진야])|요|음|네|군|거든|으[니므며]|기 때문|고|지만|는데|을 것|"
    r"[았었겠](?:습니|다(?=\W|$)|어|네|고|지만|"
    r"는데|으[나며니므]|음|거든)",
    "none": r"(?:전혀 |따로 |별도로 |아직 |현재 |아예 |하나도 |일절 )?없(?:<ends>)",
    "not": r"지(?:는|가|도)? (?:않|못)(?:<ends>|[해하했합])",
    "hard": r"어렵|어려[우운울웠워]|힘[들듭드든]|쉽지 ?않|곤란|불가|안 [되돼됩된]",
    "source": r"문서|자료|문단|단락|본문|지문|발췌문?|컨텍스트|문맥|텍스트|보고서|매뉴얼|설명서|안내서|핸드북|"
    r"규정집|지침|약관|계약서|"
    r"기사|글|회의록|데이터|지식 ?베이스|출처|검색 결과|파일|목록|표|책자|sop|faq|pdf|공지|공고|사이트|홈페이지|"
    r"로그|송장|법령|조항|"
    r"규정|정책|페이지|원문|공시|논문|기록|내용|학습",
    "info": r"정보|언급|답|답변|단서|내용|자료|데이터|설명|근거|정답|해답|문구|기재|서술|기술|대목|검색 결과|출처|"
    r"지식|명시",
    "thing": r"문서|규정|항목|부분|기록|사항|것|바|조항|수치|값|통계|기사|구절|문단|단락|질문|결과|기준|문장",
    "about": r"관련|관한|관해|대한|대해|해당|문의하신|질문하신|요청하신|찾으시는|궁금해하시는|말씀하신|답할|답변할|"
    r"말씀드릴|참고할|아는|"
    r"알려진|확인된|언급된|파악된|맞는|일치하는|연관된",
    "tell": r"답|답변|대답|말씀|설명|안내|확인|판단|단정|추정|추측|파악|식별|계산|산출|확답|결론|도출|응답|예측|"
    r"특정|유추|추론|가늠|짐작|"
    r"장담|확언|검증|도움|진단|단언|판독|산정|응대|해석|평가|구분|구별|집계|비교|규명|대조|분석",
    "write": r"언급|기재|명시|기술|서술|수록|표기|기록|제시|게재|거론|업로드|학습|기입|규정|정의|설명|소개|안내|"
    r"포함|공개|제공|등재|표시",
    "text": r"언급|기재|명시|기술|서술|수록|표기|기록|제시|게재|거론|업로드|기입|설명|소개|등재|표시",
    "stand": r"적혀|나와|쓰여|써|실려|담겨|들어|드러나|나타나|다뤄져|다루어져|올라와|밝혀져",
    "done": r"(?:[을를은는이가도] )?(?:정확히 |명확히 |바로 )?(?:하|해 ?드리|드리|내리|되|해)?",
}
_KO = Wording(
    refusals=_any(
        (
            # the assistant does not know or does not tell
            r"모르겠(?:습|어|네|다(?=\W|$)|는데)|모릅니|모르네|잘 ?몰라|확실히는 ?모|(?<![가-힣])알 ?(?:수|길|도리|"
            r"방법)[가이는은도]? ?<none>",
            r"알지 ?못(?:합|해요|하(?:므|고 ?있습|기))|(?:확실|정확)(?:하지|치)(?:는|가)? ?않(?:<ends>)|"
            r"판단 ?근거가 ?(?:없|부족|불충분)",
            r"(?:<tell>)(?:[을를은는이가도] )?[가-힣 ]{0,5}(?:할|드릴|내릴|줄|될|볼) ?수[가는도]? ?<none>",
            r"(?:찾을|찾아볼|찾아낼|알아낼|알려 ?드릴|알려 ?줄|가려낼|밝힐|읽어 ?낼|뽑아낼|구할|얻을|짚어 ?낼|응할|"
            r"들어 ?드릴) ?수[가는도]? ?<none>",
            r"(?:<tell>)<done>기[가는도에]{0,2} ?(?:<hard>)|(?:알|찾|말하|알려 ?드리|"
            r"도와 ?드리|알아내)기[가는도에]{0,2} ?(?:<hard>)",
            r"(?:<tell>)[이가은는을를]? ?(?:<hard>)|(?:찾|찾아내|얻|알아내|<tell>하|<tell>드리)지는? ?못(?:했|하였|"
            r"합|해|하(?!면))",
            r"(?:자문|조언|추천|정보|의견|진단|처방|답|도움|안내|말씀)[을를은는]? ?(?:제공|드리|"
            r"해)[가-힣 ]{0,6}(?:수 ?<none>|<hard>|지 ?[않못])",
            r"(?:확인|파악|식별|특정)(?:이|은)? ?되<not>|(?:답변|답|응답|판단)[을를은는]? ?(?:보류|유보|삼가|"
            r"생성하<not>)|미해결",
            r"추측(?:해서|하여)? ?말씀드리지 ?않|(?:<source>|<info>)[을를은는도]? ?(?:가지고|갖고|보유하고|"
            r"확보하고) ?있<not>",
            r"(?:질문|문제|문의).*(?:풀|해결할|도와드릴) ?수[가는도]? ?<none>|(?:확인|답변|접근|열람)할 ?(?:방법|"
            r"권한)이 ?<none>",
            r"(?:확인되지 ?않는|알 ?수 ?없는|언급되지 ?않은|나오지 ?않는|찾을 ?수 ?없는|(?:공개|제공|답변|말씀|"
            r"기)[가-힣 ]{0,6}(?:수 ?없는|어려운|"
            r"힘든)) ?(?:내용|부분|사항|정보|질문)(?:입니|이[에라고]|예요)",
            r"(?:<source>|<info>)[가-힣 ]{0,4}(?:접근|열람|조회)할 ?수[가는도]? ?<none>|"
            r"답변?[가-힣 ]{0,4}수 ?있는 ?(?:범위|질문|사항|내용|문제|"
            r"것|일|부분)[가이은는]? ?아[니닙]",
            r"못 ?찾(?:았|겠)|판단이 ?서지 ?않|기억나지 ?않(?:<ends>)|(?:답|답변|말씀|안내|설명|추측|추정|단정|"
            r"지어내|언급)[가-힣]{0,2}(?:을|를)? ?"
            r"(?:하|드리|내|해 ?드리)?지(?:는|도)? ?(?:않겠|못(?:하는 ?점|해 ?죄송|함을))|(?:답변|응답|요청|공개|"
            r"제공)[을를은는]? ?(?:거부|거절|사양|"
            r"자제)(?:합|하겠|해야|할 ?수밖)",
            r"(?:질문|문의|주제|업무|내용|사항|요청)[가-힣]{0,4}(?:에|에만|만) ?(?:만 ?)?(?:답변|안내|도와|대답|"
            r"응대|지원)[가-힣 ]{0,4}(?:수 ?있습|드립|"
            r"드리고 ?있|합니)",
            r"(?:능력|지식|업무|담당|전문|자료|정보|문서|답변)[가-힣]*의? ?(?:밖|바깥|영역[이가]? ?아[니닙]|"
            r"범위[이가]? ?아[니닙])|(?:접근|열람|조회|"
            r"답변)[가-힣 ]{0,3}권한[이은]? ?<none>",
            r"(?:추가|더 ?많은|더 ?자세한|상세한|구체적인) ?(?:정보|자료|맥락|설명|"
            r"내용)[가이는은도]? ?(?:더 ?)?(?:있어야|필요(?:합|해|하))|(?:정보|자료|"
            r"문서)[을를]? ?더 ?(?:주셔|알려|제공)",
            r"지원하지 ?않는 ?(?:질문|주제|내용|범위)|(?:<source>|질문|주제)[가-힣 ]{0,14}(?:무관|상관[이은]? ?없|"
            r"관련[이은]? ?없|관계[이가]? ?없)(?:합|"
            r"습|어|하|다)",
            # the documents do not say
            r"(?:<source>)[가-힣 ]{0,6}침묵|(?:<source>)[이가을를은는도]? ?(?:전달|제공)?받지 ?못|불(?:분명|확실|"
            r"명확|명)(?:합니|해요|하(?:므|여|고|"
            r"네)|입니)|미상(?:입니|이)",
            r"(?:알려지지|알려져 ?있지|명확하지|분명하지|뚜렷하지)(?:는|가)? ?않(?:<ends>)|(?:반영|입력|등록|첨부|"
            r"저장|수집|색인)되어 ?있<not>|담겨 ?있<not>",
            r"(?:항목|칸|난|값|부분|페이지|쪽|자료|표|문서)[이가은는]? ?(?:비어|공란|잘려|누락|빠져|지워져|"
            r"가려져) ?(?:있|으로|나)|(?:이유|내용|답|설명|수치|이름|날짜|"
            r"시기)[가-힣]*[이가은는] ?빠져 ?있|(?:<source>).*빠져 ?있|(?:답|정답|근거|단서)[가-힣 ]{0,14}(?:만한|"
            r"될) ?[가-힣 ]{0,10}?<none>",
            r"안 ?(?:보이|보여|보입|실려|적혀|다루|다뤄|나타)|한 ?(?:줄|마디|곳|군데)도 ?<none>|(?:언급|"
            r"설명)조차 ?(?:<none>|하지|되지)|나와 ?있는 ?(?:곳|"
            r"문서|부분)[이은]? ?<none>",
            r"(?:어떠한|어떤|아무런|아무|그 ?어떤) ?(?:<info>|<thing>)[도이가]? .*(?:<none>|않|못)",
            r"(?:<text>)(?:이|은)? ?(?:되어|돼) ?있<not>|(?:<stand>) ?있<not>|안 ?(?:나와|나옵|나오|적혀|쓰여|실려)",
            r"(?:언급|기재|명시|기술|서술|수록|표기|기록|제시|거론)되<not>|(?:업로드|학습)되지 ?않",
            r"(?:<source>)(?:[가-힣]{0,3}[은는이가도서]| 모두| 어디에도) .*(?:(?:<write>)하(?:고 ?있)?|"
            r"다루(?:고 ?있)?|밝히(?:고 ?있)?|"
            r"(?:담|싣)고 ?있|말하(?:고 ?있)?|"
            r"알려 ?주)<not>",
            r"(?:<source>)[가-힣]{0,3}[에서][는도서]? .*(?:(?:<write>)되|나오|나타나|드러나|보이|실리|"
            r"밝히(?:고 ?있)?|다루(?:고 ?있)?|"
            r"(?:<write>)(?:되어 ?있|돼 ?있|하(?:고 ?있)?))<not>",
            r"(?:<source>)[가-힣]{0,3}에[는도서]{0,2} ?(?:<none>|(?:없는|존재하지 ?않는) ?[가-힣 ]+(?:입니|이[에라]|"
            r"라 ))",
            # the information is not there
            r"^\W*(?:모름|없음|알 ?수 ?없음|[가-힣 ]{0,8}없음|[가-힣 ]{0,8}(?:<tell>|열람|제공) ?(?:불가능?|안 ?됨)|"
            r"(?:정보|자료|근거|데이터) ?부족|"
            r"미기재|미확인|불명|미상)\W*$|(?:<info>).*(?:누락되|빠져 ?있|결여되)(?:어|었|습니)",
            r"(?:자료|문서|데이터|컨텍스트|문맥|본문|지문|발췌문?|검색 ?결과)[가-힣]{0,2}에(?:는|서는|도|"
            r"서)? .*[이가은는도] ?<none>",
            r"(?:<info>)[이가은는도]? ?<none>|(?:<about>) ?(?:[^ ]+ ){0,3}?(?:<thing>)[이가은는도]? ?<none>",
            r"(?:<info>|<thing>)[이가은는도을를]? ?(?:제공|포함|공개|확인|검색|조회|발견|존재|기재|수록)(?:하|되|"
            r"하고 ?있|되어 ?있)<not>",
            r"(?:정보|근거|자료|데이터|내용|맥락|단서|증거|문맥)[가이는은도]? ?(?:너무 )?(?:충분(?:하지|치) ?않|"
            r"부족(?!하?다)|불충분|모자라)",
            r"범위 ?(?:밖|외|에 ?(?:없|들지|속하지)|[를을]? ?(?:벗어|넘어))|(?:다루는|지원하는|답변) ?(?:대상|"
            r"범위)[이가]? ?아[니닙]|권한이 ?<none>",
        ),
        _KO_WORDS,
    ),
    unasserted=re.compile(
        r"(?:사람|목격자|환자|담당자|직원|고객|회사|이사|대표|연구진|연구팀|저자|전문가|경찰|정부|당국|교수|의사|"
        r"기자|관계자|변호사|상담사|관리자|"
        r"판매자|구매자|신청자|신청인|가입자|보험사|은행|회원|이용자|사용자|임차인|임대인|세입자|미성년자|응답자|"
        r"소비자|법원|심사관|피보험자|학생|"
        r"아무도|누구도|그들?|그녀|자)(?:들)?[은는이가도] (?!.*[는은인할을던]지)|에 ?(?:따르면|의하면)"
        r"|[않없]다는 ?(?:말|것|점|주장|지적|설명|뜻|의미)|[않없]는 ?것이 ?아니"
        r"|(?:이상|차이|결함|손상|징후|증상|피해|문제점?|흔적|오류|부작용|위험|변화|관련성|효과|균열|"
        r"누수)[은는이가도]? .{0,8}(?:확인|발견|보고|파악|관찰|식별)되지"
    ),
    contrasts=re.compile(
        r"(?:지만|[는은]데|으나|[았었했되]으?나|니다만|[세네]요만|더라도|다만)\W*$|^\W*(?:하지만|그러나|다만|그렇지만)"
    ),
    service=re.compile(
        r"문의|연락|상담|검색|확인(?:하|해|했|을|한 )|방문|참고하|참조|전화|질문|궁금|요청|죄송|유감|안타깝|양해|"
        r"살펴보|검토했|찾아보|"
        r"도와|권(?:합|해|장)|바랍니다|주세요|주십시오|하세요|십시오|까요\??$|시길|살펴|읽어 ?보|뒤져|훑어|조회|"
        r"안녕|감사|고객센터|안내받|도움받|알아보|담당|전문가|의사|약사|변호사|"
        r"만 ?(?:있|나오|나와|나옵|다루|담|포함|수록)"
    ),
)
_HANGUL = re.compile("[가-힣]")
_QUOTED = re.compile(r"\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)")
_CLAUSE_END = re.compile(
    r",(?!\d)|[;:]|\s-\s|\b(?=(?:but|because|since|so|although|though|whereas|while|if|unless|when)\b)"
    r"|(?<=지만)\s|(?<=[는은]데)\s|(?<=으나)\s|(?<=[이으]며)\s|(?<=므로)\s|(?<=하고)\s|(?<=[했았었]고)\s|"
    r"(?<=니다만)\s|(?<=못해)\s"
)
_FIGURE = re.compile(r"\d")
FEW_SENTENCES = 2  # sentences: of longer answers only the first statement is looked at


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause of a folded text: where its phrase of refusal stands, if it asserts one, and whether it is a service."""

    text: str
    sentence: int
    phrase: Span | None
    asserted: bool
    wording: Wording

    @property
    def is_service(self) -> bool:
        return self.wording.service.search(self.text) is not None


@lru_cache(maxsize=1024)
def _clauses(text: str) -> tuple[_Clause, ...]:
    """The clauses of a folded text in order, what is quoted left blank."""
    text = _QUOTED.sub(lambda match: " " * len(match[0]), text) if _QUOTED.sub("", text).strip(" .!") else text
    found = []
    for number, (first, last) in enumerate(sentences(text)):
        start = first
        for end in (*(match.end() for match in _CLAUSE_END.finditer(text, first, last)), last):
            clause = text[start:end]
            if clause.strip():
                wording = _KO if _HANGUL.search(clause) else _EN
                asserted = wording.unasserted.search(clause) is None
                match = wording.refusals.search(clause) if asserted else None
                span = (start + match.start(), start + match.end()) if match else None
                found.append(_Clause(clause, number, span, asserted, wording))
            start = end
    return tuple(found)


def _states_a_fact(clauses: tuple[_Clause, ...]) -> bool:
    """Whether a clause without a refusal gives a figure, or takes a refusal back ("..., but it is Ottawa")."""
    before: _Clause | None = None
    for clause in clauses:
        if clause.phrase is None and not clause.is_service:
            pair = (before.text, clause.text) if before and before.phrase else ()
            if any(map(clause.wording.contrasts.search, pair)) or (_FIGURE.search(clause.text) and clause.asserted):
                return True
        before = clause
    return False


def phrases_of_refusal(answer: str) -> tuple[Span, ...]:
    """Where phrases of refusal stand in the original text, whether or not the answer goes on with a fact."""
    view = fold(answer)
    return tuple(view.span(*one.phrase) for one in _clauses(fold_with_lines(answer)) if one.phrase)


def find_refusal(answer: str, *, anywhere: bool = True) -> Span | None:
    """Where an answer refuses or admits not to know; ``None`` where it does not, or gives a figure or fact all the
    same. Not ``anywhere``: only where an answer would stand, which is the first statement of more than two
    sentences."""
    clauses = _clauses(fold_with_lines(answer))
    phrases = [clause for clause in clauses if clause.phrase]
    if not phrases or _states_a_fact(clauses):
        return None
    first = phrases[0]
    if not anywhere and len({clause.sentence for clause in clauses}) > FEW_SENTENCES:
        lead = next(clause.sentence for clause in clauses if clause.phrase or not clause.is_service)
        if first.sentence > lead:
            return None
    return fold(answer).span(*first.phrase) if first.phrase else None
