"""claude-agent-sdk as a host would use it: `python claude_sdk.py TASK FORM CLI RUNS` prints one line of JSON."""

import asyncio
import json
import os
import re
import sys
import time

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, StreamEvent, query

TASK, _, CLI, RUNS = sys.argv[1:5]
RUNS = int(RUNS)
READY = "ready"
ROUNDS = 7

now = time.monotonic_ns


def cpu_us():
    return time.process_time_ns() / 1e3


def mib(field):
    with open("/proc/self/status") as status:
        return int(re.search(field + r":\s*(\d+)", status.read())[1]) / 1024


def exit_ns():
    with open(CLI + ".exit") as file:
        return int(file.read())


def median(values):
    return sorted(values)[len(values) // 2]


def is_cli(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe") == CLI
    except OSError:
        return False


async def gone():
    """Waits until no process of the CLI is left."""
    while any(is_cli(pid) for pid in os.listdir("/proc") if pid.isdigit()):
        await asyncio.sleep(0.001)


def options():
    return ClaudeAgentOptions(cli_path=CLI, include_partial_messages=True, max_buffer_size=1 << 30)


def text_of(message):
    """Returns the text of a delta; None for every other event."""
    if isinstance(message, StreamEvent):
        delta = message.event.get("delta") or {}
        if delta.get("type") == "text_delta":
            return delta["text"]
    return None


async def texts():
    async for message in query(prompt="hello", options=options()):
        yield text_of(message)


async def burst():
    base = mib("VmRSS")
    cpu, began, events = cpu_us(), now(), 0
    async for text in texts():
        events += text is not None
    return {
        "cpu_us": cpu_us() - cpu,
        "wall_ms": (now() - began) / 1e6,
        "events": events,
        "base_mib": base,
        "peak_mib": mib("VmHWM"),
    }


async def latency():
    cpu = cpu_us()

    async def read():
        ages = []
        async for text in texts():
            if text and len(text) >= 10:
                ages.append(now() - int(text))
        return ages

    runs = await asyncio.gather(*(read() for _ in range(RUNS)))
    # The first half of each run includes the start.
    ages = sorted(age for run in runs for age in run[len(run) // 2 :])
    return {
        "cpu_us": cpu_us() - cpu,
        "events": sum(map(len, runs)),
        "p50_us": ages[(len(ages) - 1) // 2] / 1e3,
        "p99_us": ages[(len(ages) - 1) * 99 // 100] / 1e3,
    }


async def start():
    firsts, dones, walls = [], [], []
    for _ in range(ROUNDS):
        began, first = now(), None
        async for _ in texts():
            first = first or now() - began
        end = now()
        firsts.append(first / 1e6)
        dones.append((end - exit_ns()) / 1e6)
        walls.append((end - began) / 1e6)
    cold = firsts.pop(0)
    return {"cold_ms": cold, "warm_ms": median(firsts), "done_ms": median(dones), "wall_ms": median(walls)}


async def stop():
    stops, ends = [], []
    for _ in range(ROUNDS):
        client = ClaudeSDKClient(options())
        await client.connect()
        await client.query("hello")
        async for message in client.receive_messages():
            if text_of(message) == READY or isinstance(message, ResultMessage):
                break
        began = now()
        await client.disconnect()
        stops.append((now() - began) / 1e6)
        await gone()
        ends.append((now() - began) / 1e6)
    return {"stop_ms": median(stops), "gone_ms": median(ends)}


async def hold():
    async for _ in texts():
        pass
    return {"hold_ms": (now() - exit_ns()) / 1e6}


async def live():
    began, left, all_ready = now(), [RUNS], asyncio.Event()

    async def stay():
        async for text in texts():
            if text == READY:
                left[0] -= 1
                if not left[0]:
                    all_ready.set()

    readers = [asyncio.ensure_future(stay()) for _ in range(RUNS)]
    await all_ready.wait()
    ready = (now() - began) / 1e6
    print("ready", flush=True)
    sys.stdin.read()
    for reader in readers:
        reader.cancel()
    return {"ready_ms": ready, "runs": RUNS}


print(json.dumps(asyncio.run(globals()[TASK]())), flush=True)
