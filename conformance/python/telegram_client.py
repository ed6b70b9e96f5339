"""A bot of python-telegram-bot, which proves that the testkit's server speaks the Bot API.

It echoes texts with a button, changes its echo when the message or the button changes, and sends documents back. Each thing
that it receives is a line of JSON on standard output. The variables TELEGRAM_URL and TELEGRAM_TOKEN name the server.
"""

import json
import os

from telegram import BotCommand, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity
from telegram.constants import ChatAction
from telegram.error import BadRequest, RetryAfter
from telegram.ext import Application, CallbackQueryHandler, MessageHandler, filters

ECHOES = {}


def emit(**fields):
    print(json.dumps(fields), flush=True)


async def on_text(update, context):
    message = update.message
    emit(text=message.text, sender=message.from_user.first_name, thread=message.message_thread_id)
    await context.bot.send_chat_action(message.chat_id, ChatAction.TYPING)
    button = InlineKeyboardButton("Press", callback_data="pressed")
    try:
        echo = await message.reply_text(
            message.text,
            entities=[MessageEntity(MessageEntity.BOLD, 0, len(message.text.encode("utf-16-le")) // 2)],
            reply_markup=InlineKeyboardMarkup([[button]]),
        )
    except RetryAfter as error:
        emit(error="RetryAfter", seconds=int(str(error.retry_after)))
        return
    except BadRequest as error:
        emit(error="BadRequest", message=error.message)
        return
    ECHOES[message.message_id] = echo
    emit(echo=echo.message_id, bold=[entity.type for entity in echo.entities])


async def on_edit(update, _context):
    message = update.edited_message
    try:
        await ECHOES[message.message_id].edit_text(message.text)
        emit(edited=message.text)
        await ECHOES[message.message_id].edit_text(message.text)
    except BadRequest as error:
        emit(error="BadRequest", message=error.message)


async def on_press(update, _context):
    query = update.callback_query
    await query.answer("You pressed " + query.data)
    await query.edit_message_reply_markup(None)
    emit(press=query.data, by=query.from_user.first_name)


async def on_document(update, context):
    document = update.message.document
    file = await document.get_file()
    content = bytes(await file.download_as_bytearray())
    await update.message.reply_document(content.upper(), filename="upper-" + document.file_name, caption="done")
    await context.bot.delete_message(update.message.chat_id, update.message.message_id)
    emit(document=document.file_name, size=len(content))


async def on_error(_update, context):
    emit(error=type(context.error).__name__, message=str(context.error))


async def started(application):
    me = await application.bot.get_me()
    await application.bot.set_my_commands([BotCommand("echo", "Repeat a text")])
    webhook = await application.bot.get_webhook_info()
    emit(bot=me.username, commands=len(await application.bot.get_my_commands()), webhook=webhook.url)


def main():
    url = os.environ["TELEGRAM_URL"]
    application = (
        Application.builder()
        .token(os.environ["TELEGRAM_TOKEN"])
        .base_url(url + "/bot")
        .base_file_url(url + "/file/bot")
        .post_init(started)
        .build()
    )
    application.add_handler(MessageHandler(filters.UpdateType.EDITED_MESSAGE, on_edit))
    application.add_handler(MessageHandler(filters.Document.ALL, on_document))
    application.add_handler(MessageHandler(filters.TEXT, on_text))
    application.add_handler(CallbackQueryHandler(on_press))
    application.add_error_handler(on_error)
    application.run_polling(stop_signals=None)


if __name__ == "__main__":
    main()
