// @anthropic-ai/claude-agent-sdk

import { query } from "@anthropic-ai/claude-agent-sdk";

export async function* open(cli, signal) {
  const abortController = new AbortController();
  signal?.addEventListener("abort", () => abortController.abort());
  const options = { pathToClaudeCodeExecutable: cli, includePartialMessages: true, abortController };
  for await (const message of query({ prompt: "hello", options })) {
    const delta = message.type === "stream_event" ? message.event.delta : undefined;
    yield delta?.type === "text_delta" ? delta.text : null;
  }
}
