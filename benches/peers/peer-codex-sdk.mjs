// @openai/codex-sdk

import { Codex } from "@openai/codex-sdk";

export async function* open(cli, signal) {
  const thread = new Codex({ codexPathOverride: cli }).startThread({ skipGitRepoCheck: true });
  const { events } = await thread.runStreamed("hello", { signal });
  for await (const event of events) {
    yield event.type === "item.completed" && event.item.type === "agent_message" ? event.item.text : null;
  }
}
