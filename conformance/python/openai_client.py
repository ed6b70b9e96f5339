"""Calls of the official OpenAI client.

Each line of standard input is a call: {"call": NAME, "request": {...}}. Each result is a line of JSON on standard output.
The environment variables OPENAI_BASE_URL and OPENAI_API_KEY name the server.
"""

import json
import sys

import openai


def emit(**fields):
    print(json.dumps(fields), flush=True)


def models(client, _request):
    emit(models=[model.id for model in client.models.list()])


def complete(client, request):
    emit(completion=client.chat.completions.create(**request).to_dict())


def stream(client, request):
    """Emits each chunk when it arrives."""
    with client.chat.completions.create(stream=True, **request) as chunks:
        for chunk in chunks:
            emit(chunk=chunk.to_dict())
    emit(end=True)


def leave(client, request):
    """Closes the stream after its first text."""
    with client.chat.completions.create(stream=True, **request) as chunks:
        for chunk in chunks:
            if chunk.choices and chunk.choices[0].delta.content:
                emit(chunk=chunk.to_dict())
                break
    emit(end=True)


CALLS = {call.__name__: call for call in (models, complete, stream, leave)}


def main():
    for line in sys.stdin:
        command = json.loads(line)
        try:
            # A repeated request would hide an error.
            client = openai.OpenAI(max_retries=0, **command.get("client", {}))
            CALLS[command["call"]](client, command.get("request", {}))
        except openai.APIError as error:
            status = getattr(error, "status_code", None)
            emit(error=type(error).__name__, status=status, code=error.code, param=error.param, message=error.message)


if __name__ == "__main__":
    main()
