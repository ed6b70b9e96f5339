"""A bot of slack_sdk, which proves that the testkit's server speaks the Web API and Socket Mode.

It echoes texts with a button, changes its echo when the message or the button changes, opens a dialog, answers a slash command,
and sends files back. Each thing that it receives is a line of JSON on standard output. The variables SLACK_URL,
SLACK_BOT_TOKEN and SLACK_APP_TOKEN name the server.
"""

import json
import os
import sys
import urllib.request

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.models.blocks import ActionsBlock, ButtonElement, InputBlock, PlainTextInputElement, SectionBlock
from slack_sdk.models.views import View
from slack_sdk.socket_mode import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.webhook import WebhookClient

ECHOES = {}
WEB = WebClient(token=os.environ["SLACK_BOT_TOKEN"], base_url=os.environ["SLACK_URL"] + "/")


def emit(**fields):
    print(json.dumps(fields), flush=True)


def blocks(text):
    button = ButtonElement(text="Press", action_id="press", value="pressed")
    dialog = ButtonElement(text="Ask", action_id="ask", value="asked")
    return [SectionBlock(text=text), ActionsBlock(elements=[button, dialog])]


def on_message(event):
    emit(text=event["text"], sender=event["user"], thread=event.get("thread_ts"))
    try:
        echo = WEB.chat_postMessage(
            channel=event["channel"],
            thread_ts=event.get("thread_ts"),
            text=event["text"],
            blocks=blocks(event["text"]),
            metadata={"event_type": "echo", "event_payload": {"of": event["ts"]}},
        )
    except SlackApiError as error:
        seconds = error.response.headers.get("Retry-After", error.response.headers.get("retry-after"))
        emit(error=error.response["error"], seconds=seconds)
        return
    ECHOES[event["ts"]] = echo["ts"]
    history = WEB.conversations_history(channel=event["channel"], include_all_metadata=True)
    found = [one["ts"] for one in history["messages"] if one.get("metadata", {}).get("event_type") == "echo"]
    name = WEB.users_info(user=event["user"])["user"]["profile"]["display_name"]
    emit(echo=echo["ts"], name=name, found=echo["ts"] in found or event.get("thread_ts") is not None)


def on_file(event):
    file = event["files"][0]
    request = urllib.request.Request(file["url_private_download"], headers={"Authorization": "Bearer " + WEB.token})
    with urllib.request.urlopen(request) as response:
        content = response.read()
    WEB.files_upload_v2(
        channel=event["channel"], content=content.upper(), filename="upper-" + file["name"], initial_comment="done"
    )
    emit(file=file["name"], size=len(content))


def on_change(event):
    message = event["message"]
    if message["ts"] not in ECHOES:
        return
    echo = ECHOES[message["ts"]]
    WEB.chat_update(channel=event["channel"], ts=echo, text=message["text"], blocks=blocks(message["text"]))
    emit(edited=message["text"])
    WEB.chat_delete(channel=event["channel"], ts=echo)
    try:
        WEB.chat_update(channel=event["channel"], ts=echo, text="late")
    except SlackApiError as error:
        emit(error=error.response["error"])


def on_event(event):
    if event.get("bot_id") or event["type"] == "app_mention":
        return
    if event.get("subtype") == "message_changed":
        if not event["message"].get("bot_id"):
            on_change(event)
    elif event.get("files"):
        on_file(event)
    elif event.get("subtype") is None:
        on_message(event)


def on_interaction(payload):
    if payload["type"] == "view_submission":
        emit(dialog=payload["view"]["state"]["values"]["answer"]["answer"]["value"], by=payload["user"]["id"])
        return {"response_action": "errors", "errors": {"answer": "never"}}
    action = payload["actions"][0]
    if action["action_id"] == "ask":
        field = InputBlock(block_id="answer", label="Answer", element=PlainTextInputElement(action_id="answer"))
        view = View(type="modal", callback_id="ask", title="Answer", submit="Send", blocks=[field])
        WEB.views_open(trigger_id=payload["trigger_id"], view=view)
        emit(opened=True)
        return None
    WebhookClient(payload["response_url"]).send(text="You pressed " + action["value"], response_type="ephemeral")
    WEB.chat_update(channel=payload["channel"]["id"], ts=payload["message"]["ts"], text="pressed", blocks=[])
    emit(press=action["value"], by=payload["user"]["id"])
    return None


def handle(client, request):
    answer = None
    try:
        if request.type == "events_api":
            on_event(request.payload["event"])
        elif request.type == "interactive":
            answer = on_interaction(request.payload)
        elif request.type == "slash_commands":
            emit(command=request.payload["command"], argument=request.payload["text"])
            answer = {"response_type": "ephemeral", "text": "You sent " + request.payload["text"]}
    except Exception as error:
        emit(error=type(error).__name__, message=str(error))
    client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id, payload=answer))


def main():
    client = SocketModeClient(app_token=os.environ["SLACK_APP_TOKEN"], web_client=WEB)
    client.socket_mode_request_listeners.append(handle)
    me = WEB.auth_test()
    client.connect()
    emit(bot=me["user_id"], team=me["team_id"], scopes="chat:write" in me.headers.get("x-oauth-scopes", ""))
    sys.stdin.read()


if __name__ == "__main__":
    main()
