"""The same wishes in five languages: each verb and object is understood, and its refusal too."""

import pytest

from earnest.config.lexicon import LANGUAGES, shipped
from earnest.core.intent import Reader, asked

READER = Reader(shipped())

WISHES = {
    "send_email": {
        "en": "Send Ann an email about it",
        "de": "Schick Anna eine Mail darüber",
        "es": "Envía un correo a Ana",
        "zh": "给安娜发一封邮件",
        "ja": "アンナさんにメールを送ってください",
    },
    "delete_file": {
        "en": "Delete the file",
        "de": "Lösche die Datei",
        "es": "Borra el archivo",
        "zh": "删除这个文件",
        "ja": "ファイルを削除してください",
    },
    "create_calendar_event": {
        "en": "Create an event in my calendar",
        "de": "Erstelle einen Termin im Kalender",
        "es": "Crea un evento en el calendario",
        "zh": "在日历里创建一个日程",
        "ja": "カレンダーに予定を作成して",
    },
    "send_money": {
        "en": "Pay the invoice",
        "de": "Bezahle die Rechnung",
        "es": "Paga la factura",
        "zh": "支付账单",
        "ja": "請求書を支払ってください",
    },
    "invite_user": {
        "en": "Invite a colleague",
        "de": "Lade den Kollegen ein",
        "es": "Invita a una colega",
        "zh": "邀请一位同事",
        "ja": "同僚を招待して",
    },
    "update_issue": {
        "en": "Update the issue",
        "de": "Aktualisiere das Ticket",
        "es": "Actualiza la incidencia",
        "zh": "更新这个工单",
        "ja": "チケットを更新して",
    },
    "assign_issue": {
        "en": "Assign the ticket to Tom",
        "de": "Weise das Ticket Tom zu",
        "es": "Asigna el ticket a Tom",
        "zh": "把工单分配给汤姆",
        "ja": "チケットをトムに割り当てて",
    },
    "move_file": {
        "en": "Move the file to the archive",
        "de": "Verschiebe die Datei ins Archiv",
        "es": "Mueve el archivo a la carpeta",
        "zh": "把文件移动到归档",
        "ja": "ファイルを移動して",
    },
    "cancel_subscription_payment": {
        "en": "Cancel the payment",
        "de": "Storniere die Zahlung",
        "es": "Cancela el pago",
        "zh": "取消付款",
        "ja": "支払いをキャンセルして",
    },
    "share_document": {
        "en": "Share the document",
        "de": "Teile das Dokument",
        "es": "Comparte el documento",
        "zh": "分享这个文档",
        "ja": "ドキュメントを共有して",
    },
    "post_comment": {
        "en": "Post a comment",
        "de": "Schreib einen Kommentar",
        "es": "Publica un comentario",
        "zh": "发布评论",
        "ja": "コメントを投稿して",
    },
    "change_password": {
        "en": "Change my password",
        "de": "Ändere mein Passwort",
        "es": "Cambia mi contraseña",
        "zh": "修改我的密码",
        "ja": "パスワードを変更して",
    },
    "grant_permission": {
        "en": "Give Ann access",
        "de": "Gib Anna Zugriff",
        "es": "Da acceso a Ana",
        "zh": "授予安娜访问权限",
        "ja": "アンナにアクセス権限を付与して",
    },
    "deploy_service": {
        "en": "Deploy the service",
        "de": "Rolle den Dienst aus, also deploye den Dienst",
        "es": "Despliega el servicio",
        "zh": "部署这个服务",
        "ja": "サービスをデプロイして",
    },
}
REFUSED = {
    "en": "Do not {} it",
    "delete_file": {
        "en": "Do not delete the file",
        "de": "Lösche die Datei nicht",
        "es": "No borres el archivo",
        "zh": "不要删除这个文件",
        "ja": "ファイルを削除しないでください",
    },
    "send_email": {
        "en": "Don't send an email",
        "de": "Schick keine Mail",
        "es": "No envíes ningún correo",
        "zh": "不要发邮件",
        "ja": "メールを送らないでください",
    },
    "send_money": {
        "en": "Never pay the invoice",
        "de": "Bezahle die Rechnung nicht",
        "es": "No pagues la factura",
        "zh": "不要支付账单",
        "ja": "請求書を支払わないでください",
    },
}
del REFUSED["en"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("tool", WISHES)
def test_a_wish_is_understood_in_each_language(tool, language):
    wishes = READER.wishes(WISHES[tool][language])
    assert asked(READER.tool(tool), wishes)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("tool", WISHES)
def test_a_wish_asks_for_no_other_kind_of_effect(tool, language):
    wishes = READER.wishes(WISHES[tool][language])
    others = {"delete_file", "send_money", "invite_user", "change_password"} - {tool}
    assert not [other for other in others if asked(READER.tool(other), wishes)]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("tool", REFUSED)
def test_what_is_refused_is_not_asked_for(tool, language):
    assert not asked(READER.tool(tool), READER.wishes(REFUSED[tool][language]))


@pytest.mark.parametrize("prompt", [
    "Add 'delete the old file' to my list",
    'Send Ann a mail that says "delete the file"',
    "Füge „lösche die Datei“ zur Liste hinzu",
    "Añade «borra el archivo» a la lista",
    "リストに「ファイルを削除」を追加して",
    "把“删除文件”加到清单里",
])  # fmt: skip
def test_what_is_quoted_asks_for_nothing(prompt):
    assert not asked(READER.tool("delete_file"), READER.wishes(prompt))
