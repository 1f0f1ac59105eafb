"""Read what a user asked for in a prompt: the sentences that state a constraint, a preference or a request.

The rules look for words and forms, not for meaning, and rather take a sentence too many: a line that was not needed
costs its tokens, a constraint that is lost costs the work. What the user's client wrote into a prompt asks for nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Manner: TypeAlias = Literal["constraint", "request", "said"]
"""It holds for what comes; it is done once; it is all that is known of a prompt in which neither was found."""

MOST_ASKED: Final = 300
"""The most sentences that are taken from one prompt, constraints first."""
SHORT: Final = 160
"""A prompt of at most so many characters is one request as a whole: to cut it would save nothing."""
LONGEST: Final = 400
"""Characters of a sentence; a longer one is cut, and its address leads to the rest."""


class Asked(NamedTuple):
    """A sentence of a prompt on one line, and how it asks."""

    text: str
    manner: Manner


class _Words(NamedTuple):
    """Words of one language: what makes a constraint and a request anywhere, and a request at the beginning."""

    constraint: str
    request: str
    verbs: str = ""


_SPACED: Final[dict[str, _Words]] = {
    "en": _Words(
        "must mustn't never always don't dont do_not doesn't_have won't only ensure make_sure be_sure from_now_on prefer"
        " preferably rather keep avoid instead without at_least at_most no_more_than no_longer should shouldn't cannot"
        " can't shall required require requires important remember note_that stick_to leave strictly exclusively exactly"
        " careful limit unless except any_time whenever every_time by_default convention",
        "please pls plz can_you could_you would_you will_you can_we could_we should_we let's lets let_us i_want i_need"
        " i'd_like i_would_like we_want we_need we_should want_to need need_to help_me would_like try",
        "add adjust allow analyse analyze answer apply ask base build bump bring call change check clean close commit"
        " compare complete consider continue convert copy create cut debug define delete deploy describe disable do"
        " document download draft drop edit enable explain export extend extract figure fill find finish fix follow format"
        " generate get give go have handle implement import improve include increase inspect install integrate"
        " investigate join list load log look make measure merge migrate move open optimize output patch pick plan"
        " prepare print propose provide pull push put read rebase recheck redo reduce refactor release remove rename"
        " reorganize replace report respond restore return revert review rewrite rework run save search send set show"
        " simplify skip solve sort split squash start state stop suggest summarize switch take tell test think"
        " track translate try turn update upgrade upload use validate verify wait watch work wrap write",
    ),
    "de": _Words(
        "muss musst müssen müsst soll sollst sollen sollte sollten nie niemals immer nicht kein keine keinen keiner nur"
        " stets darf darfst dürfen ab_jetzt ab_sofort von_nun_an künftig stell_sicher stelle_sicher sicherstellen achte"
        " lieber bevorzuge behalte vermeide vermeiden ohne statt anstatt mindestens höchstens wichtig unbedingt genau",
        "bitte kannst_du könntest_du können_sie könnten_sie lass_uns ich_möchte ich_will ich_brauche ich_hätte wir_brauchen"
        " wir_wollen",
        "füge lege mach mache schreib schreibe benutze nutze nutz verwende lösche lösch entferne prüfe prüf teste test"
        " erstelle ändere ersetze zeig zeige erkläre erklär baue bau führe nimm gib schau schaue suche such räume"
        " korrigiere behebe repariere übersetze",
    ),
    "fr": _Words(
        "doit dois doivent devez il_faut jamais toujours ne_pas seulement uniquement désormais assure_toi assurez-vous"
        " préfère évite évitez sans plutôt au_moins au_plus n'utilise n'utilisez",
        "s'il_te_plaît s'il_vous_plaît peux-tu pouvez-vous je_veux je_voudrais j'aimerais merci_de",
        "ajoute ajoutez corrige corrigez crée créez écris écrivez utilise utilisez supprime supprimez change vérifie"
        " vérifiez explique expliquez garde gardez",
    ),
    "es": _Words(
        "debe debes deben deber nunca siempre solo sólo solamente a_partir_de_ahora asegúrate asegúrese prefiere"
        " prefiero evita evite sin en_lugar_de al_menos como_máximo no_uses no_toques no_cambies hay_que",
        "por_favor puedes podrías puede quiero quisiera necesito me_gustaría",
        "añade agrega arregla corrige crea escribe usa utiliza borra elimina cambia verifica revisa explica mantén",
    ),
    "pt": _Words(
        "deve deves devem nunca sempre somente apenas só a_partir_de_agora certifique-se prefira prefiro evite sem"
        " em_vez_de pelo_menos no_máximo não_use não_mude não_altere",
        "por_favor você_pode poderia quero gostaria preciso",
        "adicione corrija crie escreva use apague remova mude altere verifique explique mantenha",
    ),
    "id": _Words(
        "harus jangan selalu tidak_boleh hanya wajib pastikan mulai_sekarang tanpa sebaiknya hindari lebih_suka"
        " daripada minimal maksimal dilarang cukup utamakan",
        "tolong mohon bisakah bisa_kamu saya_ingin saya_mau saya_butuh saya_perlu aku_mau aku_ingin ayo mari",
        "buat buatkan tambahkan perbaiki hapus gunakan pakai ubah ganti jelaskan periksa cek tulis jalankan simpan",
    ),
    "ru": _Words(
        "должен должна должно должны нельзя никогда всегда только нужно надо необходимо обязательно отныне убедись"
        " убедитесь избегай избегайте без вместо минимум максимум не_меняй не_используй",
        "пожалуйста можешь можете хочу хотел давай давайте",
        "добавь добавьте исправь исправьте создай создайте напиши напишите используй используйте удали удалите измени"
        " проверь проверьте объясни покажи",
    ),
}
"""Words that are parted by spaces; ``_`` is a space inside a phrase.

They are the languages of the prompts that this was made for, and the most frequent ones beside them: where no word is
known, a prompt is still there by its first sentence. A list of constraints, of requests, and of verbs that a sentence
may begin with, since there alone they are imperatives.
"""
_UNSPACED: Final[dict[str, _Words]] = {
    "zh": _Words(
        "必须 不要 不能 不得 不许 不可 不准 务必 总是 始终 永远 从现在起 从现在开始 以后 一律 一定 应该 应当 只能 只用 只要 仅 禁止 避免 别 "
        "确保 保持 尽量 优先 至少 最多 必須 不應 務必 從現在起 應該 確保 避免",
        "请 請 帮 幫 麻烦 麻煩 需要 希望 想要 能否 能不能 可以 可否 使用 改成 改为 加上 添加 删除 修改 修复 实现 写 吗 嗎",
    ),
    "ja": _Words(
        "必ず しないで ないでください 禁止 だけ のみ 常に 絶対 べき なければ 今後 これから 以後 避けて 優先 してはいけ ように 以内 以上 以下",
        "ください 下さい お願い してほしい して欲しい て欲しい たい 使って 直して 追加 修正 削除 作って 書いて ですか ますか",
    ),
    "ko": _Words(
        "반드시 절대 항상 하지_마 하지마 지_마세요 만_사용 금지 앞으로 이제부터 해야 확인 유지 최소 최대",
        "주세요 해줘 해_줘 부탁 원해 필요 할까 있나요 습니까",
    ),
}
"""Words of scripts without spaces between words, or with endings behind them: they count anywhere in a sentence."""


def _listed(words: str) -> list[str]:
    return [word.replace("_", " ") for word in words.split()]


def _single(manner: Literal["constraint", "request", "verbs"]) -> frozenset[str]:
    every = (word for words in _SPACED.values() for word in _listed(getattr(words, manner)))
    return frozenset(word for word in every if " " not in word)


def _phrases(manner: Literal["constraint", "request"]) -> tuple[str, ...]:
    every = (word for words in _SPACED.values() for word in _listed(getattr(words, manner)))
    return tuple(f" {word} " for word in every if " " in word)


_CONSTRAINTS, _REQUESTS, _VERBS = _single("constraint"), _single("request"), _single("verbs")
_CONSTRAINT_PHRASES, _REQUEST_PHRASES = _phrases("constraint"), _phrases("request")
_CONSTRAINT_PARTS: Final = tuple(w for words in _UNSPACED.values() for w in _listed(words.constraint))
_REQUEST_PARTS: Final = tuple(w for words in _UNSPACED.values() for w in _listed(words.request))
_OPENERS: Final = frozenset(
    "and also alright but finally first great hm hmm just next no now ok okay perfect please secondly so sure then well"
    " wait yeah yep yes und dann jetzt also ja nein okay".split()
)
"""Words before an imperative."""
_MOST_OPENERS: Final = 3
_STATING: Final = frozenset(
    "i i've i'm i'd i'll it it's this that that's they there there's we've we're we he she because since here's ich es"
    " das dies wir je c'est il yo esto eu isso saya ini itu я это мы".split()
)
"""Words that begin a statement: with a weak word alone (``I've only seen``) it holds for nothing that comes."""
_STRONG: Final = frozenset(
    "must mustn't never don't won't shall muss müssen nie niemals jamais nunca harus jangan нельзя никогда".split()
)
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")

# What the client of a user wrote

_CLIENT: Final = re.compile(
    r"\s*(?:\[Request interrupted by user|<session_context>|Operation stopped by hook:|Stop hook feedback:"
    r"|This is the Gemini CLI\. We are setting up the context"
    r"|Caveat: The messages below were generated by the user while running local commands"
    r"|This session is being continued from a previous conversation)"
)
"""The beginnings of prompts that are a client's from the first word to the last."""
_TAG: Final = re.compile(
    r"<(system-reminder|user-prompt-submit-hook|task-notification|(?:local-)?command-[a-z]{1,20}|bash-[a-z]{1,20}"
    r"|ide_[a-z_]{1,40}|environment_context|user_instructions|session_context|hook[a-z_-]{0,40}|new-diagnostics)>"
)
_INTERRUPTED: Final = re.compile(r"\[Request interrupted by user[^\]\n]{0,40}\]")

# Sentences

_FENCE: Final = re.compile(r"\s{0,8}(```|~~~)")
_ITEM: Final = re.compile(r"\s{0,40}(?:[-*+•]|\d{1,3}[.)]|\[[ xX]\])\s{1,8}(?=\S)(?:\[[ xX]\]\s)?")
_HEAD: Final = re.compile(r"\s{0,8}#{1,6}\s+")
_QUOTED: Final = re.compile(r"\s{0,8}>")
_END: Final = re.compile(r"[.!?…][\"')\]*_`»”’]{0,3}(?=\s)|[。！？][」』）”]?")
_ENDED: Final = (".", "!", "?", ":", ";", "。", "！", "？", "：")
_WRAPPED: Final = 50
"""Characters of a line that may be wrapped: the next one then goes on with its sentence if it begins in lower case."""


def requests_in(text: str) -> tuple[Asked, ...]:
    """Return what a prompt asks for, in the order of its text, each sentence once.

    A short prompt is one request. Of a longer one, a sentence counts that has a word of a constraint or of a request,
    that begins with an imperative, or that is a question; so does each item of a list. Where none does, the first
    sentence counts, with a sign that there is more. Code between fences and quoted lines count for nothing else. The time is linear in the text.
    """
    own = _own_words(text)
    if len(own) <= SHORT * 2 and len(whole := " ".join(own.split())) <= SHORT:
        return (Asked(whole, _manner(whole) or "said"),) if whole else ()
    found: dict[str, Manner] = {}
    first = ""
    for sentence, listed in _sentences(own):
        first = first or sentence
        manner = _manner(sentence) or ("request" if listed else None)
        if manner is not None:
            found.setdefault(_cut(sentence), manner)
    if not found:
        first = first or " ".join(own[: LONGEST * 4].split())
        return (Asked(f"{first[:LONGEST].rstrip('.')}…", "said"),) if first else ()
    if len(found) > MOST_ASKED:
        chosen = sorted(found, key=lambda sentence: found[sentence] != "constraint")[:MOST_ASKED]
        found = {sentence: found[sentence] for sentence in chosen}
    return tuple(Asked(sentence, manner) for sentence, manner in found.items())


def _own_words(text: str) -> str:
    """Return a prompt without what the user's client put into it; empty if the client wrote all of it."""
    if _CLIENT.match(text):
        return ""
    if "[Request interrupted" in text:
        text = _INTERRUPTED.sub("\n", text)
    if "<" not in text:
        return text.strip()
    kept: list[str] = []
    unclosed: set[str] = set()
    start = 0
    while (tag := _TAG.search(text, start)) is not None:
        close = f"</{tag[1]}>"
        end = -1 if close in unclosed else text.find(close, tag.end())
        if end < 0:
            unclosed.add(close)  # look for it once: many open tags would make this quadratic
            kept.append(text[start : tag.end()])
            start = tag.end()
        else:
            kept.append(text[start : tag.start()])
            start = end + len(close)
    return "\n".join([*kept, text[start:]]).strip()


def _sentences(text: str) -> Iterator[tuple[str, bool]]:
    """Yield sentences on one line each, and whether each begins an item of a list."""
    for line, listed in _lines(text):
        for sentence in _parted(line):
            if _WORD.search(sentence) is not None:
                yield " ".join(sentence.split()), listed
                listed = False  # noqa: PLW2901 - only its first sentence begins an item


def _parted(line: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(line):
        yield line[start : end.end()]
        start = end.end()
    yield line[start:]


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines outside of fences, wrapped ones joined; a fence that is never closed hides nothing."""
    lines = text.splitlines()
    closed = {mark[1]: number for number, line in enumerate(lines) if (mark := _FENCE.match(line)) is not None}
    waiting: list[str] = []
    fence, listed = "", False
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence or (mark is not None and number < closed[mark[1]]):
            opens = not fence and mark is not None
            fence = mark[1] if opens and mark is not None else "" if mark is not None and mark[1] == fence else fence
            line = ""  # noqa: PLW2901 - what is between fences is empty
        if _QUOTED.match(line):
            line = ""  # noqa: PLW2901 - and so are the words of others
        item = _ITEM.match(line)
        goes_on = waiting and item is None and line.lstrip()[:1].islower() and _may_go_on(waiting[-1])
        if not goes_on:
            if waiting:
                yield " ".join(waiting), listed
            waiting, listed = [], item is not None
        bare = line[item.end() :] if item is not None else _HEAD.sub("", line, count=1)
        if bare.strip():
            waiting.append(bare.strip())
    if waiting:
        yield " ".join(waiting), listed


def _may_go_on(line: str) -> bool:
    return len(line) >= _WRAPPED and not line.endswith(_ENDED)


def _manner(sentence: str) -> Manner | None:
    """Return how a sentence asks for something; None if nothing in it does."""
    words = [word.lower().replace("’", "'") for word in _WORD.findall(sentence)]
    there = set(words)
    line = f" {' '.join(words)} "
    wide = _WIDE.search(sentence) is not None
    if sentence.endswith(("?", "？")):
        return "request"
    if (
        not there.isdisjoint(_CONSTRAINTS)
        or any(phrase in line for phrase in _CONSTRAINT_PHRASES)
        or (wide and any(part in sentence for part in _CONSTRAINT_PARTS))
    ):
        return "request" if words and words[0] in _STATING and there.isdisjoint(_STRONG) else "constraint"
    if (
        not there.isdisjoint(_REQUESTS)
        or any(phrase in line for phrase in _REQUEST_PHRASES)
        or _begins_with_verb(words)
        or (wide and any(part in sentence for part in _REQUEST_PARTS))
    ):
        return "request"
    return None


def _begins_with_verb(words: list[str]) -> bool:
    for word in words[: _MOST_OPENERS + 1]:
        if word in _VERBS:
            return True
        if word not in _OPENERS:
            return False
    return False


def _cut(sentence: str) -> str:
    return sentence if len(sentence) <= LONGEST else f"{sentence[:LONGEST]}…"
