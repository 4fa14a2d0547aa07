"""The phrases of refusal per language, as data: classes of words, and patterns that put classes in an order.

A pattern is a row of elements: ``CLASS`` stands for any word of that class, ``..`` for a few words between, ``^`` for
the start of a clause (behind "sorry" and the like), ``$`` for its end; all else is written as it is. English allows an
adverb, Korean a particle between two elements. Words of a class are separated by commas; ``CLASS`` in a class stands
for the words of that class. ``refusals.py`` compiles them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrases:
    """One language.

    ``refusals`` are the patterns. ``unasserted`` marks clauses that assert nothing themselves: conditions, concessions,
    reports of others, denied denials. ``contrasts`` are how a clause ends, or how one begins, before a fact.
    ``service`` marks clauses about the search, the question or where to turn, whose figures are no facts.
    """

    classes: Mapping[str, str]
    refusals: tuple[str, ...]
    unasserted: tuple[str, ...]
    contrasts: tuple[str, ...]
    service: tuple[str, ...]


EN = Phrases(
    classes={
        # who or what does not tell
        "SOURCE": "document, documents, documentation, doc, docs, passage, passages, context, excerpt, excerpts, "
        "extract, extracts, material, materials, text, texts, source, sources, file, files, pdf, pdfs, report, "
        "reports, manual, manuals, handbook, guide, guides, guideline, guidelines, article, articles, brochure, "
        "brochures, leaflet, section, sections, chapter, chapters, page, pages, table, tables, chunk, chunks, snippet, "
        "snippets, result, results, knowledge base, knowledge article, database, dataset, data, data sheet, datasheet, "
        "record, records, log, logs, minutes, transcript, transcripts, interview, wiki, runbook, runbooks, "
        "listing, spreadsheet, sheet, slide, slides, presentation, chart, graph, scan, attachment, "
        "attachments, filing, filings, catalogue, catalog, bulletin, briefing, essay, book, story, post, thread, "
        "agenda, summary, abstract, note, notes, letter, letters, email, emails, memo, memos, faq, faqs, website, "
        "site, corpus, paragraph, paragraphs, entry, entries, information, info, content, contents, description, "
        "specification, paper, papers, study notes, archive, upload, uploads, screenshot, image, images, wording, "
        "resources, references, literature, index, evidence, help center, help centre, papers, repository, readme, "
        "announcement, newsletter, press release, instructions, specification, documents provided, whitepaper, "
        "appendix, annex, schedule, quote, form, label, invoice, invoices, statement, statements, procedure",
        "DEED": "policy, policies, contract, contracts, agreement, lease, plan, terms, terms of service, law, statute, "
        "regulation, regulations, author, authors, certificate, rules, license, licence, it, they, these, those, "
        "neither, none of them, this, that one",
        "INFO": "information, info, data, answer, answers, detail, details, mention, figure, figures, reference, "
        "references, evidence, record, records, indication, context, knowledge, result, results, clue, clues, "
        "description, explanation, document, documents, documentation, source, sources, passage, passages, article, "
        "articles, guidance, match, matches, statement, basis, trace, insight, fact, facts, hit, hits, hint, sign, "
        "coverage of, specifics, number, numbers, instruction, instructions, content, material, word, entry, entries, "
        "value, values, visibility, discussion, definition, text, specification, grounds, support, breakdown",
        "ASKED": "topic, question, questions, subject, point, term, request, query, that, this, these, those, it, "
        "date, name, amount, price, reason, cause, number, fee, rate, limit, deadline, value, address, location, "
        "error code, part number, requested, you asked about, you are asking about, you mentioned, you need, you "
        "want, asked for, period, length, duration, size, identity, procedure, what, who, when, where, why, how, "
        "which, whether, INFO",
        "ME": "i, i'm, i've, i am, i have, i was, i'd, i'll, i do, we, we're, we've, we are, we have, we were, "
        "this assistant, the assistant, this chatbot, this bot, this model, this system, this service, "
        "as an ai, as an assistant, me",
        # negations
        "DO": "do, does, did, has, have, had",
        "NOT": "DO not, don't, doesn't, didn't, hasn't, haven't, hadn't, never, fails to, fail to, failed to, "
        "neither, nor, nor DO, do not seem to, does not seem to, doesn't seem to, don't seem to, does not appear to, "
        "doesn't appear to, do not appear to, don't appear to, did not even, do not even, can't, cannot, nowhere",
        "BE": "is, are, was, were, been, be, being",
        "BE_NOT": "BE not, isn't, aren't, wasn't, weren't, is nowhere, are nowhere, is never, are never, was never, "
        "has not been, have not been, hasn't been, haven't been, doesn't appear to be, does not appear to be, "
        "do not appear to be, don't appear to be, doesn't seem to be, does not seem to be, don't seem to be, "
        "could not be, couldn't be, cannot be, can't be, can not be, not, does not appear, doesn't appear, "
        "do not appear, don't appear, it not",
        "CAN_NOT": "can't, cannot, can not, couldn't, could not, unable to, not able to, wasn't able to, weren't able to, isn't able to, aren't able to, won't be able to, will not, "
        "won't, may not, wouldn't be able to, am not in a position to, not in a position to, 'm not in a position to, "
        "not at liberty to, not qualified to, not authorised to, not authorized to, not allowed to, not permitted to, "
        "not equipped to, not comfortable, not going to, not possible to, not possible for me to, impossible to, "
        "impossible for me to, would not, wouldn't, struggle to, not designed to, not feasible to, incapable of",
        "NO": "no, nothing, none, not any, neither, zero, little",
        # predicates
        "SAY": "mention, mentions, state, states, specify, specifies, say, says, explain, explains, describe, "
        "describes, discuss, discusses, indicate, indicates, define, defines, reveal, reveals, disclose, discloses, "
        "tell, tells, clarify, clarifies, elaborate, elaborates, answer, answers, identify, identifies, detail, go "
        "into, goes into, get into, gets into, touch on, touches on, touch upon, spell out, spells out, make clear, "
        "makes clear, refer to, refers to, speak to, speaks to, talk about, talks about, deal with, deals with, "
        "resolve, resolves, shed light, shed any light, bring up, comment on, allude to, establish, settle, settles, "
        "address, addresses, suggest, suggests, quantify, pinpoint, state, appear to mention, go that far, go back "
        "that far, extend, extends, reach that far, cover that, confirm, confirms",
        "HOLD": "contain, contains, include, includes, give, gives, cover, covers, provide, provides, name, names, "
        "list, lists, offer, offers, present, presents, show, shows, have, has, hold, holds, supply, supplies, report, "
        "reports, feature, features, note, notes, record, records, make, makes, carry, return, returns, returned, "
        "support an answer, support any answer, help, helps, had, contained, gave, appear to contain, appear to include, turned up, yield, "
        "yielded, allow, permit, let, set out, go",
        "TOLD": "mentioned, stated, specified, disclosed, described, discussed, documented, indicated, explained, "
        "clarified, addressed, spelled out, spelt out, defined, noted, evident, apparent, laid out, set out, detailed, "
        "discernible, referenced, touched on, referred to",
        "THERE": "present, available, included, provided, found, listed, shown, contained, covered, clear, known, "
        "addressed, supplied, published, there, part of, answered, answerable, retrieved, accessible, within, "
        "among, on file, at hand, to hand, here, visible, legible, loaded, uploaded, indexed, named, recorded, "
        "reported, given, offered, located, in, confirmed, sufficient, enough, adequate, identified, TOLD",
        "SETTLED": "determined, judged, answered, inferred, derived, worked out, established, calculated, ascertained, "
        "deduced, concluded, identified, computed, gleaned, told, assessed, drawn, known, estimated, resolved, "
        "settled, made out, read off, decided, evaluated, confirmed, verified, located, found, pinned down, said, "
        "provided, given, extracted, substantiated, clarified",
        "TELL": "know, say, tell, determine, answer, verify, identify, judge, calculate, compute, derive, infer, "
        "establish, advise, assist, speculate, disclose, respond, conclude, comment, estimate, work out, make out, "
        "assess, guess, vouch, help, comply, fulfil, fulfill, elaborate, predict, explain, clarify, pinpoint, cite, "
        "go into, weigh in, be sure, be certain, reveal, speak to, confirm, find, locate, see, look up, look that up, "
        "discuss, give you, give a, give an, give any, give legal, give medical, give financial, provide, offer, "
        "share, state, retrieve, access, pull, ascertain, draw, reach, deduce, evaluate, name, settle, "
        "supply, diagnose, engage, address, discern, decide, be of help, read, reliably, quote, interpret, list, "
        "make a, make any, form, process",
        "LOST": "missing, unavailable, unknown, unclear, absent, lacking, insufficient, inconclusive, incomplete, "
        "ambiguous, undetermined, unspecified, unstated, not enough, vague, too vague, too limited, too sparse, inadequate, "
        "not sufficient, uncertain, left out, cut off, truncated, illegible, nowhere, undisclosed, a mystery, "
        "indeterminable, inaccessible, silent, unanswered, omitted",
        "SCOPE": "scope, topics, topic, remit, expertise, range, knowledge, area, subject matter, competence, "
        "capabilities, capability, domain, purview, bounds, materials, documents, what i, what the",
        "IN": "in, from, within, by, among, on, anywhere in, anywhere, with, given, based on, using, under, at",
        "ADJ": "relevant, clear, specific, explicit, such, direct, further, additional, useful, matching, available, "
        "reliable, supporting, sufficient, enough, other, concrete, definitive, definite, single, corresponding, "
        "related, pertinent, precise, exact, detailed, conclusive, applicable, suitable, usable, more, contextual, "
        "background, product, official, public, internal, reference, actual, search, helpful, verifiable, adequate",
        "PART": "of, in, from, the, these, those, your, my, our, them, provided, retrieved, supplied, given, there, "
        "here, two, three, four, both, all, available, uploaded, attached, listed, either, other, search",
    },
    refusals=(
        # the documents do not tell
        "SOURCE .. NOT SAY", "SOURCE .. NOT HOLD", "DEED NOT SAY", "DEED NOT HOLD any INFO",
        "my knowledge .. NOT SAY", "SOURCE .. HOLD NO", "SOURCE .. HOLD us NO", "SOURCE .. HOLD me NO", "SOURCE .. SAY NO",
        "it HOLD no", "it SAY nothing", "they HOLD no", "they SAY nothing", "it NOT give", "it NOT list",
        "it NOT name", "they NOT list", "they NOT give", "they NOT cover", "they NOT name", "DEED gives none",
        "DEED makes no mention", "DEED makes no reference", "DEED make no mention", "DEED make no reference",
        "SOURCE lacks", "SOURCE lack", "SOURCE omits", "SOURCE omit", "excerpt lacks", "SOURCE .. makes it difficult",
        "SOURCE .. makes it hard", "SOURCE .. makes it impossible", "SOURCE .. BE silent", "SOURCE .. remains silent",
        "SOURCE remain silent", "DEED BE silent", "SOURCE .. stops short", "SOURCE .. without TOLD",
        "SOURCE .. without naming", "SOURCE .. without giving", "SOURCE .. without saying", "SOURCE .. without stating",
        "SOURCE .. without specifying", "SOURCE .. without mentioning", "SOURCE .. leaves .. open",
        "SOURCE .. leave .. open", "SOURCE .. leaves .. unclear", "SOURCE .. says little", "SOURCE .. rather than your",
        "SOURCE .. BE unrelated to", "SOURCE .. unrelated to your", "SOURCE .. not related to", "SOURCE .. BE LOST",
        "none PART .. SAY", "none PART .. HOLD", "none PART .. BE about", "none PART .. BE relevant", "nothing PART .. SAY",
        "nothing PART SOURCE .. SAY", "nothing PART SOURCE .. HOLD", "nothing PART SOURCE .. supports", "nothing PART .. SOURCE .. SAY",
        "nothing PART .. SOURCE .. HOLD", "no SOURCE .. SAY", "no SOURCE .. HOLD", "no SOURCE .. BE THERE",
        "neither .. SAY", "neither SOURCE .. HOLD", "neither PART .. SOURCE .. HOLD", "not one of .. SAY",
        "not a single SOURCE", "nothing relevant", "nothing about", "nothing .. was found", "nothing .. could be found",
        # the information is not there
        "ASKED .. BE_NOT TOLD", "ASKED .. BE_NOT THERE IN .. SOURCE", "ASKED .. BE_NOT THERE IN SOURCE", "INFO .. BE_NOT THERE", "ASKED .. BE LOST",
        "INFO .. BE LOST", "BE_NOT TOLD IN .. SOURCE", "BE_NOT TOLD IN SOURCE", "BE_NOT TOLD anywhere", "BE_NOT THERE IN .. SOURCE", "BE_NOT THERE IN SOURCE", "isn't TOLD",
        "is not TOLD", "are not TOLD", "aren't TOLD", "was not TOLD", "wasn't TOLD", "remains LOST", "remain LOST",
        "SOURCE .. it BE_NOT TOLD", "BE_NOT part of the SOURCE", "wasn't part of", "it BE_NOT clear", "unclear from",
        "unclear whether", "unclear which", "unclear how", "unclear what", "unclear who", "not evident", "INFO LOST",
        "does not appear .. SOURCE", "doesn't appear .. SOURCE", "do not appear .. SOURCE", "don't appear .. SOURCE",
        "NOT appear in any", "does not appear anywhere", "doesn't appear anywhere", "there BE no INFO",
        "there BE no ADJ INFO", "there's no INFO", "there's no ADJ INFO", "there BE nothing", "there's nothing",
        "there BE_NOT enough", "there BE_NOT any INFO", "there BE_NOT any ADJ INFO", "there BE_NOT sufficient",
        "not enough INFO", "not enough ADJ INFO", "insufficient INFO", "insufficient .. INFO", "no INFO .. BE THERE",
        "no ADJ INFO .. BE THERE", "no INFO .. can be", "no answer", "no INFO .. could be", "no ADJ INFO .. could be",
        "SOURCE .. no mention of", "no mention of .. SOURCE", "no such INFO", "INFO .. could not be SETTLED",
        "absent from the SOURCE", "missing from the SOURCE", "not covered by .. SOURCE", "details .. BE LOST",
        "not among the", "nowhere in the SOURCE", "nowhere in .. SOURCE",
        # it cannot be known
        "can not be SETTLED", "can't be SETTLED", "cannot be SETTLED", "could not be SETTLED", "couldn't be SETTLED",
        "impossible to TELL", "not possible to TELL", "not possible for me to TELL", "isn't possible to TELL",
        "hard to say", "hard to tell", "hard to know", "hard to judge", "hard to determine", "hard for me to TELL",
        "difficult to say", "difficult to tell", "difficult to judge", "difficult to determine", "difficult for me",
        "no way to TELL", "no way of", "no means of", "no basis for", "no basis to", "question .. BE_NOT answerable", "question .. BE_NOT related to", "question .. unrelated to",
        "question not answerable", "not answerable", "unanswerable", "would be speculation", "would be guessing",
        "would be a guess", "pure speculation", "would be speculative", "anyone's guess", "have to leave .. open",
        "have to leave .. unanswered", "must leave .. open", "must leave .. unanswered", "rest on speculation",
        # the assistant does not know
        "ME NOT know", "ME NOT really know", "ME NOT have", "ME not sure", "ME not certain", "ME not aware of",
        "ME not familiar with", "ME unsure", "ME uncertain", "ME .. no idea", "ME .. no clue", "ME have no",
        "ME .. have nothing", "ME have got nothing", "ME got nothing", "ME got no", "ME lack", "ME lacking",
        "ME .. found no", "ME .. found nothing", "ME .. find no", "ME .. find nothing", "ME .. see no", "ME .. see nothing", "ME .. locate no", "ME find nothing", "ME see no", "ME see nothing",
        "ME saw no", "ME saw nothing", "ME .. came up empty", "ME drew a blank", "ME at a loss", "ME stumped",
        "ME NOT see", "ME NOT find", "ME NOT found", "ME NOT come across", "ME NOT been given", "ME not been given",
        "ME not given", "ME wasn't given", "i wasn't given", "we weren't given", "ME NOT able to", "ME not trained",
        "ME .. CAN_NOT TELL", "ME .. CAN_NOT .. INFO", "ME CAN_NOT $", "ME .. not something", "beats me",
        "i wish i", "wish i could", "your guess is as good",
        # the assistant will not tell
        "ME must decline", "ME have to decline", "ME decline", "ME will have to decline", "ME refuse to",
        "ME must refuse", "ME have to pass", "ME not comfortable", "rather not", "prefer not to", "ME do not want to",
        "ME don't want to", "ME shouldn't make", "ME should not make", "ME should not guess", "ME shouldn't guess",
        "ME won't guess", "ME will not guess", "ME will not speculate", "ME won't speculate", "ME not going to guess",
        "ME not supposed to", "ME not authorised", "ME not authorized", "ME not allowed", "ME not permitted",
        "ME not qualified", "neither confirm nor deny", "not able to help", "ME can only answer", "ME can only help",
        "ME can only assist", "ME can only discuss", "ME only have", "ME only able to", "ME limited to", "ME restricted to",
        "ME only answer", "ME only cover", "ME need more", "ME need additional", "ME need further", "ME would need",
        "not something ME", "isn't something ME", "ME NOT think .. SOURCE SAY", "ME NOT believe .. SOURCE SAY", "is not something ME", "isn't something the SOURCE", "isn't something these SOURCE",
        "which ME don't have", "which ME do not have",
        "outside .. SCOPE", "outside what", "beyond .. SCOPE", "beyond what", "out of scope", "out of my SCOPE",
        "not within .. SCOPE",
        # elliptical answers
        "^ but NOT SAY", "^ NOT SAY", "^ unknown $", "^ none $", "^ null $", "^ unclear", "^ undetermined", "^ unspecified", "^ n/a $",
        "^ not applicable $", "^ no idea", "^ no clue", "^ don't know", "^ dunno", "^ not sure", "^ not certain", "^ not TOLD",
        "^ not THERE", "^ not enough", "^ not answerable", "^ insufficient INFO", "^ insufficient .. INFO", "^ unable to TELL",
        "^ CAN_NOT TELL", "^ CAN_NOT be SETTLED", "^ couldn't find", "^ no INFO $", "^ no ADJ INFO $", "^ no INFO about",
        "^ no INFO on", "^ no INFO for", "^ no INFO in", "^ no INFO regarding", "^ no INFO to", "^ no ADJ INFO about",
        "^ no ADJ INFO on", "^ no ADJ INFO for", "^ no ADJ INFO in", "^ no ADJ INFO regarding", "^ nothing found",
        "^ nothing .. SOURCE", "^ INFO not THERE", "^ INFO LOST", "^ zero results", "^ 0 results", "^ no mention",
        "^ difficult to", "^ hard to", "^ impossible to TELL", "^ INFO .. BE LOST",
    ),
    unasserted=(
        "^ if", "^ when", "^ whenever", "^ unless", "^ until", "^ in case", "^ while", "^ whilst", "^ although",
        "^ though", "^ even though", "^ even if", "^ where", "^ to resolve", "wrong to", "wrong that", "incorrect to",
        "incorrect that", "not true that", "isn't true that", "untrue that", "false that", "misleading to", "mistake to",
        "a myth that", "not that", "not as if", "not the case that", "isn't the case that", "says that", "said that",
        "stated that", "replied", "replies", "answered that", "claims that", "claimed that", "reported that",
        "not correct that", "isn't correct that", "^ he", "^ she", "until", "evidence that", "^ because",
    ),
    contrasts=("but", "however", "yet", "nevertheless", "nonetheless", "that said", "still the answer"),
    service=(
        "please", "contact", "consult", "ask", "asking", "asked", "check", "checked", "checking", "search", "searched",
        "searching", "look", "looked", "looking", "review", "reviewed", "reviewing", "you may", "you might", "you could",
        "you can", "you should", "you want", "call", "reach out", "try", "let me", "i can", "i could", "happy to",
        "would you", "could you", "can you", "should know", "may know", "might know", "would know", "should have",
        "may have", "might have", "should be able", "should show", "would show", "retrieved", "retrieval", "question",
        "questions", "sorry", "need", "needed", "thanks", "thank you", "hello", "hi", "understand", "team", "hotline",
        "department", "desk", "your", "i read", "i went", "i saw", "i see", "i received", "i have", "i've", "we have",
        "apologies", "apologise", "apologize", "refer to", "get in touch", "recommend", "suggest", "only", "cover",
        "covers", "stops", "ends", "regret", "as far as", "based on", "unfortunately", "mentions", "discusses",
        "describes", "deals with", "focuses", "talks about", "would be able", "conflict", "explains",
    ),
)
KO = Phrases(
    classes={
        # who or what does not tell
        "SOURCE": "문서, 자료, 문단, 단락, 본문, 지문, 발췌문, 발췌, 발췌본, 컨텍스트, 문맥, 텍스트, 보고서, 매뉴얼, 설명서, "
        "안내서, 핸드북, 규정집, 지침, 약관, 계약서, 기사, 이 글, 글에, 회의록, 데이터, 지식베이스, 지식 베이스, 출처, 검색 결과, "
        "파일, 목록, 표에, sop, faq, pdf, 공지, 공고, 사이트, 홈페이지, 로그, 송장, 법령, 조항, 규정, 규칙, 정책, 페이지, 원문, "
        "공시, 논문, 기록, 학습, 노트, 가이드, 가이드라인, 이용약관, 명세서, 안내문, 공문, 문헌, 이메일, 메일, 메모, 리뷰, "
        "첨부, 게시글, 게시물, 근거, 문구, 제시된 내용, 내용에, 내용만, 스니펫, 브로슈어, 팸플릿, 인터뷰, 책에, 책자, 사규, 조례, "
        "설명자료, 대본, 녹취록, 사진, 이미지, 도표, 그래프, 시트, 정보에, 정보만, 내규, 별표, 부록, 사양서, 제안서, 증권",
        "ITEM": "내용, 정보, 질문, 코드, 상품, 항목, 사항, 부분, 주제",
        "DOC": "문서, 자료, 문단, 단락, 본문, 지문, 발췌문, 발췌, 발췌본, 컨텍스트, 문맥, 텍스트, 보고서, 매뉴얼, 설명서, 안내서, 핸드북, "
        "기사, 글, 회의록, 데이터, 지식베이스, 지식 베이스, 출처, 검색 결과, faq, pdf, 공지, 홈페이지, 노트, 가이드, 안내문, 문헌, 근거",
        "INFO": "정보, 언급, 답, 답변, 단서, 내용, 자료, 데이터, 설명, 근거, 정답, 해답, 문구, 기재, 서술, 기술, 대목, 검색 결과, "
        "결과, 출처, 지식, 명시, 얘기, 이야기, 말, 언급되는 내용",
        "THING": "문서, 규정, 항목, 부분, 기록, 사항, 것, 바, 조항, 수치, 값, 통계, 기사, 구절, 문단, 단락, 질문, 결과, 기준, "
        "문장, 사실, 자료, 정보, 내용, 언급, 설명, 답변, 수 있는 정보",
        "ABOUT": "관련, 관련된, 관한, 관해, 관해서는, 대한, 대해, 대해서는, 대하여, 해당, 문의하신, 질문하신, 요청하신, 찾으시는, "
        "궁금해하시는, 말씀하신, 답할, 답변할, 말씀드릴, 참고할, 아는, 알려진, 확인된, 언급된, 파악된, 맞는, 일치하는, 연관된, "
        "드릴 수 있는, 묻는, 뒷받침하는, 뒷받침할, 알려 주는, 알려주는, 물으신, 부합하는, 답이 될, 답이 될 만한, 답변에 필요한, "
        "확인할 수 있는, 관련하여, 관련해, 관련해서는, 적합한, 설명하는, 다루는, 다룬",
        "TELL": "답, 답변, 대답, 말씀, 설명, 안내, 확인, 판단, 단정, 추정, 추측, 파악, 식별, 계산, 산출, 확답, 결론, 도출, 응답, "
        "예측, 특정, 유추, 추론, 가늠, 짐작, 장담, 확언, 검증, 도움, 진단, 단언, 판독, 산정, 응대, 해석, 평가, 구분, 구별, 집계, "
        "비교, 규명, 대조, 분석, 확정, 회신, 제시, 언급, 자문, 조언, 추천, 의견, 처방, 제공, 답을 제공, 정보를 제공, 입증, 명시, "
        "공유, 전달, 알림, 추산, 판별, 도와, 의견을, 견해, 정의, 설명을",
        "CAN": "할, 드릴, 내릴, 줄, 될, 볼, 해 드릴, 해드릴, 해 줄, 해볼, 해 볼, 지을, 하실, 받을, 할 만한, 얻을, 낼",
        "LOOK": "찾을, 찾아볼, 찾아낼, 찾아 드릴, 알아낼, 알려 드릴, 알려드릴, 알려 줄, 알려줄, 가려낼, 밝힐, 읽어 낼, 읽어낼, "
        "뽑아낼, 구할, 얻을, 짚어 낼, 응할, 들어 드릴, 들어드릴, 답할, 풀, 도와드릴, 도와 드릴, 해결할, 알아볼, 엿볼, 집어낼, "
        "드러낼, 해결해 드릴, 처리해 드릴, 발견할, 말할, 헤아릴",
        "WRITE": "TEXT, 포함, 제공, 규정, 특정, 구체화, 열거, 공지",
        "TEXT": "언급, 기록, 정의, 기재, 명시, 기술, 서술, 수록, 표기, 제시, 게재, 거론, 기입, 설명, 소개, 등재, 안내, 적시, 논의, 업로드, 학습",
        "STAND": "적혀, 나와, 쓰여, 써, 실려, 담겨, 들어, 드러나, 나타나, 다뤄져, 다루어져, 올라와, 밝혀져, 남아, 포함돼, 존재하고",
        "SHOW": "나오, 나타나, 드러나, 보이, 실리, 다루, 다루고 있, 다뤄지, 밝히, 밝히고 있, 담고 있, 싣고 있, 말하, 말하고 있, 말해 주, "
        "말해주, 알려 주, 알려주, 알려주고 있, 전하, 들어 있, 들어있, 담겨 있, 가리키, 짚, 적, 적고 있, 존재하, 남아 있, "
        "WRITE하, WRITE하고 있, WRITE되, WRITE되어 있, WRITE돼 있, WRITE해 주, 찾아지, 검색되, 조회되, 확인되",
        # whose not knowing is a fact of the answer
        "PEOPLE": "사람은, 사람이, 목격자는, 목격자가, 환자는, 환자가, 담당자는, 담당자가, 직원은, 직원이, 고객은, 고객이, 회사는, "
        "이사는, 대표는, 대표이사는, 연구진은, 연구팀은, 전문가들은, 경찰은, 정부는, 당국은, 의사는, 기자는, 관계자는, 변호사는, "
        "판매자는, 구매자는, 신청자는, 가입자는, 보험사는, 은행은, 회원은, 이용자는, 사용자는, 임차인은, 임대인은, 세입자는, 응답자는, "
        "응답자의, 소비자는, 법원은, 피보험자는, 학생은, 감사인은, 조사관은, 심사역은, 조사단은, 수사관은, 검사는, 아무도, 누구도, 그는, "
        "그녀는, 그들은, 참가자는, 피해자는, 위원회는, 심판은, 엔지니어는, 기술자는, 소방서는, 원고는, 피고는, 증인은, 운전자는",
        "PAST": "았, 었, 했, 였, 됐, 냈, 갔, 렸, 났, 왔, 졌",
        "FINDING": "이상, 차이, 결함, 손상, 징후, 증상, 피해, 문제, 문제점, 흔적, 오류, 부작용, 위험, 변화, 관련성, 효과, 균열, 누수, 골절, "
        "이상 소견, 종양, 감염, 상관관계, 유의한 차이, 하자, 위반, 불량, 취약점, 침입, 출혈",
        # predicates, with the endings of an assertion: not adnominal, conditional or quoted
        "ADVERB": "전혀, 따로, 별도로, 아직, 현재, 아예, 하나도, 일절",
        "JI": "지, 지는, 지가, 지도, 질, 진",
        "STOP": "않END, 못END",
        "NONE": "없END, ADVERB 없END, 존재하지 않END",
        "NOT": "JI STOP",
        "HARD": "어렵, 어려울, 어려운 점, 어려우, 어려워, 어려움이 있, 힘들, 힘듭니, 힘드, 힘든 점, 쉽지 않, 곤란, 불가, 안 됩, 안 돼, "
        "안 되, 적절하지 않, 적절치 않, 무리",
        "LACK": "부족END, 부족하여, 부족해, 부족합, 부족하므, 부족하고, 불충분, 충분하지 않, 충분치 않, 모자라, 모자랍, 미흡, 미비, 빈약",
    },
    refusals=(
        # the assistant does not know
        "모르겠END", "모릅니", "모르네", "모르는 내용입", "모르는 부분입", "잘 몰라", "확실히는 모", "알 수 NONE", "알 길 NONE",
        "알 도리 NONE", "알 방법 NONE", "확인할 방법 NONE", "알지 못합", "알지 못해", "알지 못하므", "알지 못하기", "알지 못하고 있습",
        "확실하NOT", "확실치 않END", "정확하NOT", "정확치 않END", "기억나NOT", "판단이 서NOT", "감이 오NOT", "확신할 수 NONE", "확신하기 HARD",
        "확신이 서NOT", "자신 있게 말씀드리기 HARD", "LOOK 수 NONE", "TELL CAN 수 NONE", "TELL 드리기 HARD", "TELL 하기 HARD",
        "TELL 해 드리기 HARD", "TELL 해드리기 HARD", "TELL 내리기 HARD", "TELL 되기 HARD", "TELL 기 HARD", "TELL 드리기에 HARD",
        "TELL 하기에 HARD", "TELL HARD", "TELL .. 제공하기 HARD", "TELL .. 제공할 수 NONE", "알기 HARD", "찾기 HARD", "말하기 HARD", "결론짓기 HARD", "단정짓기 HARD", "단정 짓기 HARD", "결론을 짓기 HARD", "제가 .. 수 NONE", "저는 .. 수 NONE", "저로서는 .. 수 NONE", "저희로서는 .. 수 NONE",
        "알려 드리기 HARD", "알려드리기 HARD", "도와드리기 HARD", "도와 드리기 HARD", "알아내기 HARD", "답하기 HARD", "밝히기 HARD",
        "INFO 확보하지 못", "INFO 구하지 못", "INFO 입수하지 못", "찾지 못했", "찾지 못하였", "찾지 못합", "찾지 못해", "찾지는 못했", "찾지 못하고 있", "찾아내지 못", "못 찾았", "못 찾겠", "얻지 못했", "알아내지 못했",
        "TELL 하지 못했", "TELL 하지 못합", "TELL 하지 못해", "TELL 드리지 못", "TELL 해 드리지 못", "TELL 해드리지 못", "TELL 하지 못하였", "TELL 되NOT",
        "TELL 보류", "TELL 유보", "TELL 삼가", "답변 생성하NOT", "응답 생성하NOT", "미해결", "알려 드리지 못", "알려드리지 못",
        # the assistant will not tell
        "말씀드리지 않", "추측하지 않겠", "추정하지 않겠", "TELL 드리지 않", "TELL 하지 않겠", "TELL 해 드리지 않", "TELL 해드리지 않", "답변 거부합", "답변 거절",
        "답변 사양", "답변 자제", "요청 거절", "요청 거부합", "요청 응할 수 NONE", "지어낼 수 NONE", "지어내지 않", "에만 답변할 수 있습", "에만 답변 드", "에만 답변드",
        "만 안내해 드릴 수 있습", "에 대해서만 답", "에 대해서만 안내", "에만 답할 수 있", "만 답변 가능", "만 답변드릴 수 있", "만 답변할 수 있", "만 도와드릴 수 있",
        "업무 밖", "권한 밖", "능력 밖", "지식 밖", "자료 밖", "영역 밖", "범위 밖", "범위 외", "범위 벗어", "범위 넘어", "범위 아니", "범위 아닙", "범위에 들지 않",
        "범위에 속하지 않", "범위에 없", "범위에 포함되지 않", "대상 아니", "대상 아닙", "영역 아니", "영역 아닙", "권한 NONE", "권한이 주어지지 않",
        "지원하지 않는 질문", "지원하지 않는 주제", "다루지 않는 주제", "다루지 않는 질문", "다루지 않는 내용", "접근할 수 NONE", "열람할 수 NONE", "접근 권한",
        "제가 답변드릴 수 있는 부분이 아", "답변할 수 있는 질문이 아", "추가 정보 필요합", "추가 정보 필요해", "추가 자료 필요합", "추가 정보 있어야", "더 많은 정보 필요", "더 자세한 정보 필요",
        "구체적인 정보 필요", "추가적인 정보 필요", "가지고 있NOT", "갖고 있NOT", "보유하고 있NOT", "확보하고 있NOT",
        # the documents do not tell
        "SOURCE .. SHOW NOT", "SOURCE .. STAND 있NOT", "TEXT 되어 있NOT", "TEXT 돼 있NOT", "TEXT 되NOT", "적혀 있NOT", "나와 있NOT", "쓰여 있NOT", "실려 있NOT",
        "담겨 있NOT", "다루고 있NOT", "밝히고 있NOT", "드러나 있NOT", "나타나 있NOT", "안 나와", "안 나옵", "안 나오", "안 적혀", "안 쓰여", "안 실려", "안 보이", "안 보여", "안 보입",
        "안 다루", "안 다뤄", "SOURCE .. 침묵", "SOURCE .. 빠져 있", "SOURCE .. 누락", "INFO 빠져 있", "INFO 누락되", "SOURCE .. 무관", "SOURCE .. 관련이 없",
        "SOURCE .. 관계가 없", "질문 .. 관련이 없", "질문 .. 무관합", "SOURCE .. 상관이 없", "SOURCE 받지 못", "SOURCE 전달받지 못", "SOURCE 제공받지 못", "비어 있습",
        "반영되어 있NOT", "등록되어 있NOT", "학습되지 않은 내용", "INFO 담겨 있NOT", "INFO 들어 있NOT",
        "한 줄도 NONE", "한마디도 NONE", "한 곳도 NONE", "언급조차", "어디에도 NONE", "아무 데도 NONE", "아무런 INFO NONE", "아무 INFO NONE", "어떤 INFO NONE", "어떠한 INFO NONE", "나와 있는 곳이 NONE",
        "SOURCE .. 만한 .. NONE", "에 없는 ITEM입", "에 없는 ITEM이", "에는 없는 ITEM입", "에 없는 ITEM 예요", "존재하지 않는 ITEM입", "존재하지 않는 ITEM이라",
        "SOURCE 에 NONE", "SOURCE 에는 NONE", "SOURCE 에서도 NONE", "SOURCE 에도 NONE", "DOC 에는 .. NONE", "DOC 에도 .. NONE", "DOC 에서는 .. NONE", "DOC 내에 .. NONE", "SOURCE 에 .. INFO NONE", "SOURCE 안에 .. NONE", "자료에 .. NONE",
        "문서에 .. NONE", "본문에 .. NONE", "지문에 .. NONE", "컨텍스트에 .. NONE",
        # the information is not there
        "INFO NONE", "ABOUT THING NONE", "ABOUT .. THING NONE", "INFO 제공되NOT", "INFO 포함되NOT", "INFO 포함되어 있NOT", "정보 공개되NOT", "INFO 검색되NOT", "INFO 조회되NOT",
        "INFO 발견되NOT", "INFO 존재하NOT", "INFO 보이NOT", "THING 보이NOT", "THING 포함되어 있NOT", "THING 검색되NOT", "THING 발견되NOT", "THING 존재하NOT", "THING 제공되NOT",
        "INFO 주어지NOT", "INFO LACK", "정보 너무 LACK", "맥락 LACK", "근거 LACK", "증거 LACK", "문맥 LACK", "단서 LACK", "판단 근거가 없", "알려지NOT", "알려져 있NOT", "명확하NOT", "분명하NOT",
        "뚜렷하NOT", "불분명", "불확실합", "불명확", "미상입", "미상이", "확인되지 않는 ITEM입", "확인되지 않은 ITEM입", "알 수 없는 ITEM입", "알 수 없는 ITEM이에", "찾을 수 없는 ITEM입",
        "답변드리기 어려운 내용입", "답변드리기 어려운 질문입", "답변하기 어려운 질문입", "공개할 수 없는 정보입", "제공할 수 없는 정보입", "답변할 수 없는 질문입", "답변드릴 수 없는 내용입",
        "확인할 수 없는 내용입", "확인할 수 없는 사항입", "확인이 어려운 내용입", "언급되지 않은 내용입", "나오지 않는 내용입",
        # elliptical answers
        "^ 모름 $", "^ 없음 $", "^ 알 수 없음 $", "^ .. 확인 불가 $", "^ .. TELL 불가 $", "^ .. TELL 불가능 $", "^ .. INFO 없음 $", "^ .. 안 됨 $", "^ .. INFO 부족 $", "^ 미기재 $", "^ 미확인 $", "^ 불명 $",
        "^ 미상 $", "^ 모르겠음", "^ .. 찾을 수 없음 $",
    ),
    unasserted=(
        "PEOPLE NO_QUESTION .. PAST", "PEOPLE NO_QUESTION .. 모르", "PEOPLE NO_QUESTION .. 모른", "에 따르면 .. PAST", "않다는 말", "않다는 것", "않다는 점", "않다는 주장", "않다는 지적", "않다는 설명", "않다는 뜻", "않다는 의미", "않다는 소문", "없다는 말", "없다는 것", "없다는 점",
        "없다는 주장", "없다는 지적", "없다는 뜻", "없다는 의미", "없다는 소문", "없다는 설명", "않는 것이 아니", "없는 것이 아니", "고 볼 수 없습", "FINDING .. 확인되", "FINDING .. 발견되", "FINDING .. 보고되",
        "FINDING .. 관찰되", "FINDING .. 파악되", "FINDING .. 식별되", "FINDING .. 발견하지", "FINDING .. 확인하지",
    ),
    contrasts=("지만 $", "는데 $", "은데 $", "으나 $", "니다만 $", "네요만 $", "더라도 $", "^ 하지만", "^ 그러나", "^ 다만", "^ 그렇지만", "되나 $", "였나 $", "았으나 $"),
    service=(
        "문의", "연락", "상담", "검색", "확인하", "확인해", "확인했", "확인을", "확인 부탁", "방문", "참고하", "참조", "전화", "질문", "궁금", "요청", "죄송", "유감", "안타깝", "양해", "살펴보", "살펴", "검토했", "검토하",
        "찾아보", "찾아봤", "도와", "권합", "권해", "권장", "바랍니다", "주세요", "주십시오", "하세요", "십시오", "까요", "시길", "읽어 보", "뒤져", "훑어", "조회", "안녕", "감사", "고객센터", "안내받", "도움받", "알아보",
        "담당", "전문가", "의사", "약사", "변호사", "만 있", "만 나오", "만 나와", "만 나옵", "만 다루", "만 담", "만 포함", "만 수록", "만 제시", "만 보이", "보시면", "드리고 싶", "알고 싶", "것입니다", "올려",
        "관한 것", "대한 것", "물으셨", "좋겠습니다",
    ),
)
