"""The words by which a sentence asks for something, in the languages of the prompts that were read for it.

The languages are those of the recorded prompts, and the most frequent others. A prompt without a known word still
counts with its first sentence, so a missing language loses lines, and no prompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class RequestWords(NamedTuple):
    """Words of one language, with spaces between them; ``_`` is a space inside a phrase.

    There are words that make a constraint, and words that make a request, anywhere in a sentence; and verbs that make a
    request only at its beginning, where they are imperatives.
    """

    constraint: str
    request: str
    verbs: str = ""


SPACED: Final[dict[str, RequestWords]] = {
    "en": RequestWords(
        "must mustn't never always don't dont do_not won't only ensure make_sure be_sure from_now_on prefer"
        " preferably rather keep avoid instead without at_least at_most no_more_than no_longer should shouldn't cannot"
        " can't shall required require requires important remember note_that stick_to leave strictly exclusively"
        " exactly careful limit unless except any_time whenever every_time by_default convention"
        " you_have_to it_has_to under_no_circumstances hands_off stay_away refrain"
        " forbidden prohibited mandatory not_allowed limited_to at_the_most my_preference feel_free bear_in_mind"
        " keep_in_mind beware hold_off correction scratch_that forget_what changed_my_mind everywhere deadline",
        "please pls plz can_you could_you would_you will_you can_we could_we should_we let's lets let_us i_want i_need"
        " i'd_like i_would_like we_want we_need we_should want_to need need_to expect expected help_me would_like try"
        " needs has_to have_to may_not thanks thx",
        "add adjust allow analyse analyze answer apply ask base build bump bring call change check clean close commit"
        " compare complete consider continue convert copy create cut debug define delete deploy describe disable do"
        " document download draft drop edit enable explain export extend extract figure fill find finish fix follow"
        " format generate get give go have handle implement import improve include increase inspect install integrate"
        " investigate join list load log look make measure merge migrate move open optimize output patch pick plan"
        " prepare print propose provide pull push put read rebase recheck redo reduce refactor release remove rename"
        " reorganize replace reply report respond restore return revert review rework rewrite run save say search send"
        " set show simplify skip solve sort split squash start state stop suggest summarize switch take tell test think"
        " track translate try turn update upgrade upload use validate verify wait watch work wrap write"
        " bear beware begin bring choose collect default double-check ensure execute forget hold ignore include"
        " insert inspect iterate mark mention mind name notify omit pause pin ping preserve refer refrain reject repeat"
        " respect restart resume retry stay stick support swap tag throw treat trim warn",
    ),
    "de": RequestWords(
        "muss musst müssen müsst soll sollst sollen sollte sollten nie niemals immer nicht kein keine keinen keiner nur"
        " stets darf darfst dürfen ab_jetzt ab_sofort von_nun_an künftig stell_sicher stelle_sicher sicherstellen achte"
        " lieber bevorzuge behalte vermeide vermeiden ohne statt anstatt mindestens höchstens wichtig unbedingt genau"
        " nirgends keinesfalls auf_keinen_fall finger_weg die_finger_von verzichte halte_dich halten_sie"
        " beachte beachten verboten",
        "bitte kannst_du könntest_du können_sie könnten_sie lass_uns ich_möchte ich_will ich_brauche ich_hätte"
        " wir_brauchen wir_wollen",
        "füge lege mach mache schreib schreibe benutze nutze nutz verwende lösche lösch entferne prüfe prüf teste test"
        " erstelle ändere ersetze zeig zeige erkläre erklär baue bau führe nimm gib schau schaue suche such räume"
        " korrigiere behebe repariere übersetze"
        " aktualisiere antworte antworten beginne benenne denk denke ergänze fang fass fasse frag frage halt halte"
        " implementiere kopiere kümmere lass lasse lies lösch melde öffne sag sage setz setze sorge starte stell stelle"
        " stopp stoppe trag trage vergiss verschiebe verzichte warte",
    ),
    "fr": RequestWords(
        "doit dois doivent devez il_faut jamais toujours ne_pas seulement uniquement désormais assure_toi assurez-vous"
        " préfère évite évitez sans plutôt au_moins au_plus n'utilise n'utilisez"
        " aucun aucune interdit obligatoire n'oublie n'oubliez n'ajoute n'ajoutez ne_touche ne_touchez ne_modifie"
        " ne_modifiez ne_change ne_changez ne_supprime ne_supprimez il_ne_faut",
        "s'il_te_plaît s'il_vous_plaît peux-tu pouvez-vous je_veux je_voudrais j'aimerais merci_de",
        "ajoute ajoutez corrige corrigez crée créez écris écrivez utilise utilisez supprime supprimez change vérifie"
        " vérifiez explique expliquez garde gardez"
        " arrête cherche commence demande demandez dis exécute exécutez fais faites lance lancez laisse lis lisez mets"
        " mettez montre montrez ouvre remplace remplacez renomme réponds répondez teste testez",
    ),
    "es": RequestWords(
        "debe debes deben deber nunca siempre solo sólo solamente a_partir_de_ahora asegúrate asegúrese prefiere"
        " prefiero evita evite sin en_lugar_de al_menos como_máximo no_uses no_toques no_cambies hay_que"
        " tienes_que tiene_que ninguna ninguno ningún prohibido obligatorio",
        "por_favor puedes podrías puede quiero quisiera necesito me_gustaría",
        "añade agrega arregla corrige crea escribe usa utiliza borra elimina cambia verifica revisa explica mantén"
        " abre busca comienza deja di ejecuta ejecute haz haga lee lea muestra pide pon ponga pregunta prueba reemplaza"
        " renombra responde responda",
    ),
    "pt": RequestWords(
        "deve deves devem nunca sempre somente apenas só a_partir_de_agora certifique-se prefira prefiro evite sem"
        " em_vez_de pelo_menos no_máximo não_use não_mude não_altere"
        " não_toque nenhum nenhuma tem_que proibido obrigatório",
        "por_favor você_pode poderia quero gostaria preciso",
        "adicione corrija crie escreva use apague remova mude altere verifique explique mantenha"
        " abra coloque comece deixe diga execute faça leia mostre pare pergunte procure renomeie responda rode"
        " substitua teste",
    ),
    "id": RequestWords(
        "harus jangan selalu tidak_boleh hanya wajib pastikan mulai_sekarang tanpa sebaiknya hindari lebih_suka"
        " daripada minimal maksimal dilarang cukup utamakan"
        " tidak_perlu tidak_usah tak_boleh",
        "tolong mohon bisakah bisa_kamu saya_ingin saya_mau saya_butuh saya_perlu aku_mau aku_ingin ayo mari",
        "buat buatkan tambahkan perbaiki hapus gunakan pakai ubah ganti jelaskan periksa cek tulis jalankan simpan"
        " baca cari hentikan jawab kirim lakukan mulai tunjukkan uji",
    ),
    "ru": RequestWords(
        "должен должна должно должны нельзя никогда всегда только нужно надо необходимо обязательно отныне убедись"
        " убедитесь избегай избегайте без вместо минимум максимум не_меняй не_используй"
        " не_трогай никаких никакие нигде запрещено",
        "пожалуйста можешь можете хочу хотел давай давайте",
        "добавь добавьте исправь исправьте создай создайте напиши напишите используй используйте удали удалите измени"
        " проверь проверьте объясни покажи"
        " замени запусти запустите найди начни останови ответь отвечай отвечайте открой переименуй прочитай скажи"
        " сделай сделайте спроси",
    ),
}
"""Languages that put spaces between words."""
UNSPACED: Final[dict[str, RequestWords]] = {
    "zh": RequestWords(
        "必须 不要 不能 不得 不许 不可 不准 务必 总是 始终 永远 从现在起 从现在开始 以后"
        " 一律 一定 应该 应当 只能 只用 只要 仅 禁止 避免 别"
        " 确保 保持 尽量 优先 至少 最多 必須 不應 務必 從現在起 應該 確保 避免",
        "请 請 帮 幫 麻烦 麻煩 需要 希望 想要 能否 能不能 可以 可否 使用"
        " 改成 改为 加上 添加 删除 修改 修复 实现 写 吗 嗎"
        " 先 用中文 用英文 用英语 用日语",
    ),
    "ja": RequestWords(
        "必ず しないで ないでください 禁止 だけ のみ 常に 絶対 べき なければ"
        " 今後 これから 以後 避けて 優先 してはいけ ように 以内 以上 以下",
        "ください 下さい お願い してほしい して欲しい て欲しい たい 使って 直して"
        " 追加 修正 削除 作って 書いて ですか ますか"
        " て。 で。 てから",
    ),
    "ko": RequestWords(
        "반드시 절대 항상 하지_마 하지마 지_마세요 만_사용 금지 앞으로 이제부터 해야 확인 유지 최소 최대",
        "주세요 해줘 해_줘 부탁 원해 필요 할까 있나요 습니까 하세요 마세요 먼저 해.",
    ),
}
"""Scripts without spaces between words, or with endings behind them: these words count anywhere in a sentence."""
OPENERS: Final = (
    "actually afterwards and also alright but finally first great hm hmm just lastly later meanwhile next no now "
    "ok okay perfect please second secondly so sure then third well wait yeah yep yes und dann jetzt ja nein"
)
"""Words before an imperative."""
STATING: Final = (
    "i i've i'm i'd i'll it it's this that that's they there there's we've we're we he she because since here's ich es"
    " das dies wir je c'est il yo esto eu isso saya ini itu я это мы"
)
"""Words that begin a statement. With only a weak word in it (``I've only seen``), it is no constraint."""
WEAK: Final = (
    "instead rather only exactly without important limit unless except cannot can't leave remember keep careful require"
    " requires required whenever everywhere deadline correction"
)
"""Words of constraints that statements often have, too: alone they count only in a short sentence or an imperative."""
STRONG: Final = (
    "must mustn't never don't won't shall muss müssen nie niemals jamais nunca harus jangan нельзя никогда"
    " prefer preferably lieber bevorzuge préfère prefiero prefiro"
)
"""Words that make even a statement a constraint."""


def listed_words(words: str) -> list[str]:
    """Return the words and phrases of a list."""
    return [word.replace("_", " ") for word in words.split()]


def single(lists: Iterable[str]) -> frozenset[str]:
    """Return the single words of lists, without the phrases."""
    return frozenset(word for words in lists for word in listed_words(words) if " " not in word)


def phrases(lists: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the phrases of lists by their first words, each between two spaces."""
    found: dict[str, tuple[str, ...]] = {}
    for words in lists:
        for phrase in listed_words(words):
            first, space, _ = phrase.partition(" ")
            if space:
                found[first] = (*found.get(first, ()), f" {phrase} ")
    return found
