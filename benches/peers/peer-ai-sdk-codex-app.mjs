// ai-sdk-provider-codex-cli, its app-server model, with the AI SDK

import { createCodexAppServer } from "ai-sdk-provider-codex-cli";
import { streamText } from "ai";

export async function* open(cli, abortSignal) {
  const provider = createCodexAppServer({ defaultSettings: { codexPath: cli } });
  const { fullStream } = streamText({ model: provider("gpt-5.5"), prompt: "hello", abortSignal, onError() {} });
  for await (const part of fullStream) {
    if (part.type === "start" || part.type === "start-step") continue; // before the CLI starts
    yield part.type === "text-delta" ? (part.text ?? part.delta) : null;
  }
}
