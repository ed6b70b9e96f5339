// A conversation with an agent: node session.mjs 'What is here?' 'And what is missing?'
// TEAMSTER_OPTIONS contains options of `teamster session`, such as '--agent codex --permission edit'.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const options = (process.env.TEAMSTER_OPTIONS ?? "").split(" ").filter(Boolean);
const session = spawn("teamster", ["session", ...options], { stdio: ["pipe", "pipe", "inherit"] });
session.stdin.on("error", () => {}); // the session has ended, and reports the reason on stderr
const sendCommand = (command) => session.stdin.write(JSON.stringify(command) + "\n");
const typed = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const prompts = process.argv.slice(2).entries();

function next() {
  const { done, value } = prompts.next();
  if (done) session.stdin.end();
  else sendCommand({ type: "send", id: String(value[0] + 1), text: value[1] });
}

next();
for await (const line of createInterface({ input: session.stdout })) {
  const event = JSON.parse(line);
  if (event.type === "text") {
    process.stdout.write(event.text);
  } else if (event.type === "permission_request") {
    process.stdout.write(`\n${event.toolName} ${JSON.stringify(event.input)}: allow? [y/N] `);
    const decision = (await typed.next()).value?.trim() === "y" ? "allow" : "deny";
    sendCommand({ type: "answer", requestId: event.requestId, decision });
  } else if (event.type === "question") {
    sendCommand({ type: "answer", requestId: event.requestId, decision: "deny", message: "Decide yourself." });
  } else if (event.type === "error") {
    console.error(`error: ${event.message} [${event.code}]`);
  }
  if (event.type === "done" || (event.type === "error" && event.line)) {
    process.stdout.write("\n");
    next();
  }
}
process.exit(session.exitCode ?? (await new Promise((end) => session.once("exit", (code) => end(code ?? 1)))));
