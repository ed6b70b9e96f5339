// @agentclientprotocol/sdk

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

export async function* open(cli, signal) {
  const agent = spawn(cli, ["acp"], { stdio: ["pipe", "pipe", "ignore"] });
  const exited = new Promise((resolve) => agent.on("exit", resolve));
  const texts = [];
  let wake = () => {}, ended = false;
  const client = {
    async sessionUpdate({ update }) {
      texts.push(update.sessionUpdate === "agent_message_chunk" ? update.content.text : null);
      wake();
    },
    async requestPermission() { return { outcome: { outcome: "cancelled" } }; },
  };
  const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
  const connection = new acp.ClientSideConnection(() => client, stream);
  const turn = (async () => {
    await connection.initialize({ protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await connection.newSession({ cwd: process.cwd(), mcpServers: [] });
    signal?.addEventListener("abort", () => connection.cancel({ sessionId }));
    await connection.prompt({ sessionId, prompt: [{ type: "text", text: "hello" }] });
  })().finally(() => { ended = true; wake(); });
  for (let next = 0; ;) {
    while (next < texts.length) yield texts[next++];
    texts.length = next = 0;
    if (ended) break;
    await new Promise((resolve) => { wake = resolve; });
  }
  await turn;
  agent.stdin.end();
  await exited;
}
