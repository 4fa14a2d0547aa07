"""Words and patterns of refusals, as data.

English clauses become a string with one letter per word, the word's kind, over which the patterns are written: "the
report does not say" is ``-D-Na``. Korean is matched without spaces, because they are often omitted and the predicate
stands last."""

from __future__ import annotations

# English verbs: base form and -s have the letter, -ed its capital.
EN_VERBS = {
    "s": "mention state specify indicate describe address explain discuss clarify elaborate define touch "
    "pertain relate",
    "a": "say tell answer name identify reveal conclude settle resolve",
    "k": "know find locate determine see judge infer derive deduce establish calculate compute estimate verify "
    "confirm ascertain help assist comment advise speculate guess respond retrieve decide evaluate assess "
    "pinpoint extract pull trace interpret predict recall work draw",
    "h": "contain include list cover have record hold match go deal appear feature return quantify outline extend",
    "u": "support allow permit enable",
    "g": "give provide offer show supply share disclose make",
    "l": "lack omit",
}
EN_WORDS = {
    "S": "clear evident apparent obvious explicit said told answerable",
    "K": "known found seen inferred drawn",
    "j": "sure certain aware able familiar possible knowing",
    "H": "available part among present",
    "G": "given shown made",
    "h": "has goes",
    "N": "not no never neither nor nowhere won't wouldn't haven't hasn't hadn't fails fail failed shouldn't",
    "X": "cannot can't couldn't unable",
    "p": "do does did",
    "t": "stress emphasise emphasize overstate recommend agree wait need require apply expire distinguish",
    "y": "doesn't didn't",
    "z": "don't",
    "0": "nothing none",
    "b": "isn't aren't wasn't weren't",
    "B": "is are was were be been being remains remain remained seems it's that's they're",
    "M": "i i'm i've i'd i'll me my assistant bot chatbot ai",
    "U": "we we've we're us our",
    "Y": "you your you're you've question questions query request requested",
    "D": "document documents documentation passage passages context excerpt excerpts extract material "
    "materials text texts source sources pdf pdfs report reports article articles brochure leaflet "
    "section sections page pages chunk chunks snippet snippets dataset datasheet minutes transcript "
    "interview wiki runbook runbooks attachment attachments filing catalogue catalog bulletin memo memos "
    "note notes faq corpus paragraph paragraphs specifications specification papers abstract abstracts "
    "archive circular summary agenda release essay story invoice invoices entry entries notice notices "
    "line lines slide slides",
    "P": "policy policies contract agreement lease plan terms law statute regulation author authors certificate",
    "T": "it they this these those them",
    "I": "information info detail details reference references indication guidance clue clues explanation "
    "specifics statement conclusion verdict content",
    "W": "evidence",
    "J": "data ability figure figures result results basis means idea way access number definition instructions",
    "Z": "date price age amount reason cause rate fee location deadline period length",
    "w": "whether who what which how why",
    "o": "to",
    "f": "only",
    "e": "enough sufficient",
    "d": "manual handbook guide guideline guidelines file files database base knowledge website letter letters "
    "email emails wording table tables index search repository log logs sheet",
    "i": "insufficient inadequate",
    "x": "missing absent unavailable silent blank empty truncated vague incomplete inaccessible irrelevant "
    "unrelated ambiguous redacted inconclusive illegible",
    "n": "unclear unknown unspecified unanswerable uncertain undisclosed unstated undetermined undefined "
    "unanswered unaddressed unmentioned undocumented",
    "q": "hard difficult impossible",
    "r": "relevant matching related such",
    "c": "in from within by with based among on using",
    "E": "there there's",
    "m": "must may might should will would shall",
    "C": "can could",
    "O": "he she court witness patient committee nobody respondents customers people police applicants auditors jury",
    "v": "outside beyond",
    "Q": "scope topics remit expertise range area",
}
# ``~`` is up to as many words as the digit after it says, except relative pronouns (R); ``&`` any negation.
EN_REFUSALS = (
    "[MU]~5&[^Rw]{0,4}?[akKj]", "M~4&[^Rw]{0,3}?g", "[MU]~4&[^Ro]{0,4}?[IJ]", "M~4&[^Ro]{0,5}?D", "[MU]hN-?h",
    "[MU]~3[hkHK]&[^Ro]{0,4}?[IJDcshk]", "[MU]~2l~4[IJD]", "M~5f~5[ak]", "M~2[0l]", "[DI]~8&[^R]{0,3}?[sahgI]",
    "J[-p]?[Nyz]-?[sagh]", "[PT][-mp]?[Nyz]~2[sa]", "P~6[Nyz][sa]", "[DPT]~6[gsa]0", "[DT]~8h0",
    "[DT]~8[gsah][MU]?N(?!o)~2[IJsahZD]", "P~4gN?~2[0s]", "[DT]~3[gsa]N(?!o)", "^[N0]~5D~6[sahgSAHGr]", "^N[gsa]",
    "^0~2K", "[IY]~6(?:b|B-?&)-?E", "@~8(?:[yzX]|[pC]N)-?(?!-?[tou]|ho)", "M~2(?:X|CN)-?(?!-?t)", "D~8l",
    "[DIJW]~4Bi", "[DIJW]~4(?:b|B&)-?e", "W~3(?:[yzX]|pN)", "&[^R]{0,3}e-{0,2}[IJDsW]", "[Ny0]~8u-?a",
    "(?:b|B&|NB|&-?oB)-{0,2}S", "(?:b|B&)-?c~3[DMT]", "&-?hc~3[DT]", "E(?:B&|&|b)[^RoB]{0,3}?[Isa]",
    "^[N0][^RoBc]{0,3}[IsaJ](?:~6(?:B~3[KHGSA]|[cKH])|$)", "^N~6BS", "^N-?[SAHGKj]", "^[IJDYa][^RB]{0,2}?N-?[HGKSA]",
    "[IY]~8(?:b|B&|NB|N-B|&B?oB)-{0,2}[HGKA]", "[DT]~2NB-?[AK]", "B-{0,2}n", "^n$", "[DIJZYP][^RNyb0]{0,8}B-{0,2}x",
    "(?:^|EB?|[MU]~3|D~5h)i-?[IJDW]", "Y~3(?:b|B&)ro", "q(?:--)?-?o[akA]", "^(?:[DT]-?)?(?:b|B?N|X)~2jo[akg]",
    "v~5[QDM]", "^I-?x", "^C?[N0][^RwC]{0,3}?[ak](?!Y)", "^[N0][-c]?T~3[sah]", "^-?[N0]-?r~6(?:[DIJ]|K|-$)",
    "^B~2Njo[akg]", "[Ny]h~2c-{0,3}D", "D-?[HG](?:0|N~2[IJr])", "[Ny0]~2uMo[ak]", "Y-?&h~2[DIJ]",
    "E&-?oB[^RoB]{0,3}?[IJsa]", "qog-{0,2}I",
)  # fmt: skip
# If the clause or an earlier one names a source or the assistant.
EN_OF_SOURCES = (
    "(?:b|B&|NB|N-B|&B?oB)-{0,2}[HGAK]", "E(?:B&|&|b)[^RoB]{0,3}?[JhDW]", "EB?0", "B-{0,2}x", "^N~6B[HGK]",
    "^[gsah]N~2I",
)  # fmt: skip
# The subject is a source named earlier.
EN_CONTINUED = ("^(?:p?N|y|z)-?[sahg]", "^l", "^[gsah][N0]", "^0")
EN_IDIOMS = (
    r"^\W*(?:n/a|none|null|no idea|unknown)\W*$|came up empty|\bno (?:idea|clue|telling|saying|word (?:of|on|about)|"
    r"way (?:of|to (?:tell|know)))|at a loss|draw(?:ing|n)? a blank|nothing (?:came|comes|turned|turns) up|"
    r"\b(?:i|we) (?:haven't|have not|didn't|did not) come across|"
    r"no light on|leaves? [^,]{0,40}\bopen\b|\b(?:nobody|no one|one) (?:can|could)(?:not|'t)? (?:tell|say|know)|"
    r"rather not|decline to|refuse to answer|leave th(?:is|at) (?:open|unanswered)|"
    r"\b(?:would|be) (?:only )?(?:be )?(?:pure )?(?:guess(?:ing)?|speculati(?:on|ng))|something (?:i|we|that|the)\b|"
    r"\b(?:would|'d|i) need (?:more|the|to see|access)"
)
# Conditions, definitions and denied denials.
EN_UNASSERTED = (
    r"^\W*(?:if|when|unless|where|until|once|even if|only if)\b|\b(?:wrong|incorrect|mistaken|false|untrue|not true|"
    r"isn't true|not the case|isn't the case|no secret|no doubt|not only|means (?:that|the|an?)|tells you)\b"
)
EN_ADVICE = r"\b(?:please|contact|consult|ask(?:ed|ing|s)?|check|see|try|refer|visit|reach|call|recommend|suggest)\b"
EN_TELLING = r"\bi (?:found|know|think|believe|can (?:say|tell|provide|give))\b|\bas of my\b"
EN_COURTESY = r"\b(?:sorry|apolog\w+|afraid|thank\w*|team|department|help|support|regret)\b"
# Of sources and of the search; figures in them are not answers.
EN_COVERAGE = (
    r"\b(?:only|covers?|discuss\w*|about|deals?|ends?|stops?|searched|looked|checked|checking|reviewed|reading|"
    r"concern\w*)\b"
)
EN_CONDITION = r"^\W*(?:if|when|unless|where|until|once|whether)\b"
EN_CONTRAST = r"^\W*(?:but|yet|however|nevertheless|still|instead|that said)\b"
EN_CONCESSION = r"^\W*(?:although|though|while|whereas|even though|since|because|as)\b"
EN_FINITE = (
    r"\b(?:is|are|was|were|has|have|had|can|could|will|would|may|might|must|should|does|do|did)\b|"
    r"^\W*(?:(?:but|and|so|yet|however|instead)\W+)*(?:it|they|he|she|we|you)\b"
)
EN_CLAUSE_END = (
    r",(?!\d)|[;:](?!\d)|\s-\s|"
    r"\b(?=(?:but|because|since|although|though|whereas|while|if|unless|when|yet)\b)|"
    r"\b(?=so (?:that )?(?:i|it|they|the|we|you|an?|its|no)\b)"
)
EN_LEAD = (
    r"^\W*(?:(?:but|and|so|yet|because|since|although|though|while|whereas|as|however|unfortunately|regrettably|sadly|"
    r"sorry|answer|hmm|therefore)\b\W*)+"
)

# --- Korean: nouns ---

_SOURCE = (
    "문서|자료|문단|단락|본문|지문|발췌[문본]?|컨텍스트|문맥|텍스트|보고서|매뉴얼|설명서|안내서|안내문|핸드북|규정집?|규칙|지침|약관|규약|"
    "계약서|기사|글|회의록|데이터|시트|지식|베이스|출처|결과|파일|목록|표|sop|faq|pdf|공[지고문시]|공고문|고시문|사이트|홈페이지|로그|송장|"
    "법령|조례|페이지|원문|논문|기록|노트|가이드|명세서|문헌|메일|메모|첨부|근거|문구|책자|사진|요약[지본]|초록|제원표|위키|색인|판례|증권|일보"
)
_IN = (
    "(?:어디를봐도|[을를]봐도|만봐[도서]|에|에는|에도|에서|에서는|에서도|상|상에|상에는|안에|내에|내에서|"
    "중에|중에는|들에|속에|까지는|로는|으로는|만으로는|만으로|만)"
)
_INFORMATION = (
    "(?<!개인)(?<!고객)(?:정보|언급|답변?|단서|내용|자료|데이터|설명|근거|정답|"
    "기재|서술|결과|명시|이?얘기|이야기|말|출처|문서)"
)
_THING = "규정|조항|항목|기준|것|바|사항|수치|기록|정의|문구|값|통계|기사|절차|페이지|곳"
_ABOUT = (
    "관련|관한|관해|대한|대해|다루|다룬|묻는|맞는|일치하|해당|질문|문의|요청|뒷받침|부합|만한|필요한|드릴|답할|답변할|알려진|밝혀진|"
    "확인된|찾으시는"
)
_TELL = (
    "(?:답변?|대답|말씀|설명|안내|확인|판단|단정|추[정측론]|파악|식별|계산|산출|확답|결론|도출|응답|예측|특정|유추|가늠|짐작|장담|확언|"
    "검증|진단|단언|판독|산정|해석|평가|비교|도움|조언|자문|추천|분석|확정|판별|회신|의견|확신|예단|예상)"
)
_STATED = (
    "보고|기입|언급|명시|기재|기술|서술|제시|수록|규정|특정|소개|정의|표기|기록|게재|거론|논의|안내|설명|적시|반영|구체화|공시|"
    "나와|적혀|쓰여|실려|드러나|나타나|다뤄져|올라와|밝혀져"
)
_HELD = (
    "포함|제공|공개|확인|검색|조회|발견|식별|파악|등록|업로드|첨부|색인|존재|학습|등장|주어|알려|밝혀|보이|나오|실리|남|담겨|들어|준비|"
    "다뤄|다루어|밝히|다루|담|싣|알려주|말해주|전하|말하"
)

# --- Korean: predicates with the endings of an assertion, not adnominal, conditional or quoted ---

_ASSERTED = (
    r"(?:었|았|였)?+(?!는(?!다(?![고는면던며])|데$|군|구|것으로)|은(?!데$|것으로|것같|상태[입이]|듯|걸로)|을(?!것|듯|거)|던|으면|다[고는면던며]|거나|"
    r"면|더라도|[아어여]도|도록|게(?!되어|됐)|음[을은이과]|기로|이)"
)
_ITEM = (
    "(?=[는은운](?:내용|정보|질문|사항|부분|항목|코드|상품|주제|점|상황|실정|상태|영역|대상)"
    "(?:입니|이[에어라므며]|예요|인데|양해|사과|죄송|유감|이해))"
)
_NO = f"(?:없|존재하지않)(?:{_ASSERTED}|{_ITEM})"
_NOT = f"(?:않(?:{_ASSERTED}|{_ITEM})|못[했해합됩]|못하(?:{_ASSERTED}|{_ITEM}))"
_HARD = (
    r"(?:이|가|은|는|도|에|에는)?(?:어렵(?![고다][는면]|거나|더라|지않)|어려우(?!면)|어려워(?!보)|어려울[것듯]|"
    r"어려운(?:점|상황|상태[입이]|(?:내용|질문|부분)입)|어려움이있|힘들[습어겠것다]|힘듭|힘드[네니]|곤란|"
    r"불가(?!한|피|능한|능하면|하다[고는])|무리[입이]|쉽지않|조심스[럽러]|제한[되됩적]|안[되됩돼](?!면|는것)|적절[하치]지?않|삼가|보류|유보|실패[했하]|"
    r"거[부절][하합](?!더라도|거나|면|는|다[고는면])|사양)"
)
_BARELY = (
    "(?:전혀|따로|별도로|아직|현재|아예|하나도|더이상|한줄도|한건도|한곳도|한마디도|어디에도|거의|직접|정확히|명확히)?"
)
_ABLE = f"수(?:가|는|도|조차)?{_NO}"
_PASSIVE = "(?:이|가|은|는|도|조차|으로)?(?:되어|되고|되|돼|하고|하|해|지|져|혀|고)?(?:있|주)?지(?:는|도|가|를)?"
KO_REFUSALS = (
    # The assistant is the subject.
    rf"(?:알|찾을|찾아[볼낼]|찾아드릴|알아[낼볼]|알려(?:드릴|줄|드리실)|밝힐|밝혀낼|풀|답할|말할|응할|도와드릴|도와줄|(?<![청복요강])구할|짚어낼|가려낼|"
    rf"제공해드릴){_ABLE}",
    rf"(?:알|확인할|판단할|파악할|드릴)(?:길|방법|도리|재간)(?:이|은|도)?{_NO}",
    rf"{_TELL}(?:을|를|이|은|는|도)?{_BARELY}(?:제가|저희가)?(?:"
    rf"(?:할|될|드릴|해드릴|해줄|내릴|내려드릴|줄|볼|받을|지을|낼|해볼|제공할|제시할|생성할|드리실|하실|얻을){_ABLE}|"
    rf"(?:하는것|드리는것|하는데)?{_HARD}|"
    rf"(?:[하내되짓받얻주]|내리|드리|해드리|내려드리|제공하|제공해드리|생성하|제시하)?"
    rf"(?:기{_HARD}|지(?:를|는|도)?(?:못[했해합됩]|못할것같|못하(?:{_ASSERTED}|{_ITEM})|않(?:습|겠|고있|는다(?![고는면])))))",
    rf"(?:알|찾|밝히|말하|결론짓|단정짓|도와드리|알려드리|알려주|제공해드리|알아내|알아보|구하|찾아보)기{_HARD}",
    rf"(?:찾|제시해드리|제시하|찾아내|알아내|얻|구하|확보하|발견하|입수하|알려드리|도와드리|알|전달받|제공받)지(?:를|는|도)?(?:못[했해합]|못하{_ASSERTED})",
    r"(?:자료|문서|정보|링크|파일|시스템)에(?:는)?접근할수없(?!는|으면|다고)",
    rf"찾는데(?:는)?실패|못찾[았겠]|모르겠{_ASSERTED}|모릅니|모른다(?![고는면])|모르[네므며니]|모르지만|몰라(?!도)|모름$|"
    r"모르는(?:내용|부분|사항|질문)입",
    r"(?:확실|정확|분명|명확|뚜렷)(?:하|히드러나|하게나와있|하게드러나|히나와있)?[지치](?:가|는)?않(?![은는다])|"
    r"불분명(?!한|하다[고는]|하면)|불명확(?!한)|불확실합|미상입",
    r"(?:범위|영역|권한|업무|능력|자료|지식)(?:가|이|의|를|을|에)?(?:밖|벗어(?:나(?!면|는)|납|난(?=질문|내용|사항|요청|주제|문의))|넘어|아니|아닙|아닌것같|외입)",
    r"드릴수있는(?:정보|내용|답변?|질문|사항|범위|문제)(?:이|가)?아[니닙]|(?:에만|대해서만|만)(?:답변?|안내|도와)(?:할수있|드릴수있|가능|드리|합)",
    rf"권한(?:이|은|도)?{_NO}|(?:제가|저는|저희|실시간).{{0,20}}(?:접근|열람|조회)할{_ABLE}|(?:가지고|갖고|보유하고)있지(?:는|도)?{_NOT}",
    # The sources are the subject.
    rf"(?:{_STATED}){_PASSIVE}{_NOT}|^(?:확인|검색|조회){_PASSIVE}{_NOT}",
    r"안(?:나와|나옵|나오|적혀|쓰여|실려|보이|보여|보입|다루|다뤄)(?!는)|빠져있(?!는|으면|지)|비어있[습네어](?!도)|알려져있지않(?!은|다)",
    rf"(?:{_INFORMATION}|맥락|증거)(?:이|가|은|는)?(?:너무|매우|다소)?(?:부족(?!한|하다[고는며]|하면|분)|불충분(?!한)|"
    rf"충분[하치]지?않{_ASSERTED}|모자라|미흡|빈약)",
    # The phrase is the whole answer.
    r"^(?:답변|결론)?(?:없음|모름|(?:알|찾을|확인할|답할)수없음|미기재|미확인|불명|미상|.{0,12}(?:확인|답변?|판단|파악)불가|"
    r".{0,14}(?:정보|언급|내용|자료|답변|근거|기재)없음|정보부족)$",
)
# Predicates, and the nouns that the clause names before them.
KO_OF_SOURCES = (
    (
        rf"{_BARELY}(?<!수)(?<!수는)(?<!수가){_NO}|{_BARELY}(?:{_HELD}){_PASSIVE}{_NOT}",
        rf"(?:{_SOURCE}){_IN}.{{0,40}}$|(?:{_INFORMATION}|(?:{_ABOUT}).{{0,14}}(?:{_THING}))(?:이|가|은|는|도|조차|으로|자체가)?(?:제게|저에게|여기에)?$|"
        r"(?:그|이|당|하신)(?:부분|내용|사항|질문).{0,20}$",
    ),
    (
        rf"(?:밝히|다루|담|싣|알려주|말해주|전하|말하){_PASSIVE}{_NOT}|침묵|(?:비어|빠져|누락되어|잘려)있(?!으면|지|는)|무관합|"
        rf"관련(?:이|은)?{_NO}",
        rf"(?:{_SOURCE}|정보).{{0,40}}$",
    ),
)
# As subject of what they know or found; not of "whether they ...".
KO_PEOPLE = (
    r"(?:(?:사람|외부인|일반인|방문자|목격자|환자|담당자|직원|고객|회사|이사|연구진|연구팀|전문가|경찰|정부|당국|의사|기자|관계자|변호사|판매자|구매자|"
    r"신청[자인]|가입자|보험사|은행|회원|이용자|사용자|임차인|임대인|세입자|응답자|소비자|법원|학생|감사인|조사관|심사역|조사단|수사관|검사|참가자|"
    r"피해자|위원회|심판|엔지니어|기술자|원고|피고|증인|운전자|대리인|계약자|"
    r"주주|임직원|근로자|그녀?)(?:들|의 \S{1,8})?[은는이가]|"
    r"\d%[는가]|아무도|누구도)"
    r"(?= )(?!.{0,60}[는은인할을던]지)"
)
KO_PAST = "[았었했였됐냈갔렸났왔졌]|모른|모르|권한"
KO_UNASSERTED = (
    r"[없않못](?:었|았|했|하였)?다는(?:말|것|점|주장|지적|뜻|의미|소문|설명|사실|오해)|(?:않는|없는|못하는|안되는)(?:것|게)(?:은|이)?아니|고볼수없|"
    r"(?:이상|차이|결함|손상|징후|증상|흔적|오류|부작용|위험|변화|누수|골절|종양|하자|위반)(?:은|는|이|가).{0,8}"
    r"(?:확인|발견|보고|관찰|파악|식별)|뜻[입합]니|의미[입합]니|나타냅니"
)
KO_COVERAGE = r"만(?:있|나[오와옵]|다루|담|포함|수록|제시|보이|규정|남아)|뿐(?:이[라고어며]|입니)"
KO_ADVICE = (
    rf"문의|연락|상담|검색|전화|질문|여쭤|여쭈|물어|궁금|요청|물으|확인하[시였]|확인했|검토|살펴|고객센터|{KO_COVERAGE}|주세요|바랍니다|"
    r"십시오|까지여|죄송해"
)
KO_NEUTRAL = (
    rf"{KO_ADVICE}|확인해|방문|참고하|참조|죄송|유감|안타깝|양해|찾아[보봤]|도와|권합|권해|권장|하세요|까요|나요|시길|읽어|조회|안녕|"
    r"감사|안내받|알아보|담당|전문가|의사|약사|변호사|보시면|고싶|것입니다|올려|관한것|대한것|좋겠|답변|노력|(?<![면문과규경어숙])제가|저는|저희|저로서|해보|"
    r"누리집|보세요|자료|문서|지식|바탕|주어진|제공"
)
KO_CONTRAST_END = r"(?:지만|는데|은데|으나|니다만|네요만|더라도|되나|였나|하나)$"
KO_CONTRAST = r"^(?:하지만|그러나|다만|그렇지만|대신)"
KO_FINITE = r"(?:다|요|음|함|됨|고|며|지만|데|나|니|므로|서|여|까)$"
KO_CLAUSE_END = (
    r",(?!\d)|[;:](?!\d)|\s-\s|(?:(?<=지만)|(?<=[는은]데)|(?<=으나)|(?<=[이으하]며)|(?<=므로)|(?<=[하되않없있했았었]고)|"
    r"(?<=니다만)|(?<=[없못않]어)|(?<=않아)|(?<=못해)|(?<=[어아]서)|(?<=려워)|(?<=우니)|(?<=으니)|(?<=하여)|(?<=부족해)|"
    r"(?<=뿐)|(?<=[이라]라)|(?<=라서)|(?<=까지여서))\s(?!있)"
)
