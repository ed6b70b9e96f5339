"""A conversation with an agent: python3 session.py 'What is here?' 'And what is missing?'
TEAMSTER_OPTIONS contains options of `teamster session`, such as '--agent codex --permission edit'."""
import json
import os
import subprocess
import sys

options = os.environ.get("TEAMSTER_OPTIONS", "").split()
session = subprocess.Popen(["teamster", "session", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

def send_command(**command):
    session.stdin.write(json.dumps(command) + "\n")
    session.stdin.flush()

def allowed(request):
    print(f"\n{request['toolName']} {json.dumps(request['input'])}: allow? [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip() == "y"

for number, prompt in enumerate(sys.argv[1:], 1):
    send_command(type="send", id=str(number), text=prompt)
    for line in session.stdout:  # ends early only if the session does
        event = json.loads(line)
        if event["type"] == "text":
            print(event["text"], end="", flush=True)
        elif event["type"] == "permission_request":
            send_command(type="answer", requestId=event["requestId"], decision="allow" if allowed(event) else "deny")
        elif event["type"] == "question":
            send_command(type="answer", requestId=event["requestId"], decision="deny", message="Decide yourself.")
        elif event["type"] == "error":
            print(f"error: {event['message']} [{event['code']}]", file=sys.stderr)
        if event["type"] == "done" or event["type"] == "error" and "line" in event:
            break
    print()
session.stdin.close()
sys.exit(session.wait())
