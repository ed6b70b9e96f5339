// ai-sdk-provider-claude-code with the AI SDK

import { createClaudeCode } from "ai-sdk-provider-claude-code";
import { streamText } from "ai";

export async function* open(cli, abortSignal) {
  const provider = createClaudeCode({ defaultSettings: { pathToClaudeCodeExecutable: cli } });
  const { fullStream } = streamText({ model: provider("opus"), prompt: "hello", abortSignal, onError() {} });
  for await (const part of fullStream) {
    if (part.type === "start" || part.type === "start-step") continue; // before the CLI starts
    yield part.type === "text-delta" ? (part.text ?? part.delta) : null;
  }
}
