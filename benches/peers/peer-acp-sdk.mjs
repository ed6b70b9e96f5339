// @agentclientprotocol/sdk

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

export async function* open(cli, signal) {
  const agent = spawn(cli, ["acp"], { stdio: ["pipe", "pipe", "ignore"] });
  const exited = new Promise((resolve) => agent.on("exit", resolve));
  const texts = [];
  let wake = () => {}, ended = false;
  const client = acp.client({ name: "bench" }).onNotification(acp.methods.client.session.update, ({ params }) => {
    texts.push(params.update.sessionUpdate === "agent_message_chunk" ? params.update.content.text : null);
    wake();
  });
  const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
  const turn = client.connectWith(stream, async (agent) => {
    await agent.request(acp.methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
    const cwd = process.cwd();
    const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd, mcpServers: [] });
    signal?.addEventListener("abort", () => agent.notify(acp.methods.agent.session.cancel, { sessionId }));
    await agent.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "hello" }] });
  }).finally(() => { ended = true; wake(); });
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
