// A library for Node.js as a host would use it: `node measure.mjs PEER TASK FORM CLI RUNS` prints one line of JSON.
//
// A peer is a module `peer-PEER.mjs` that exports `open(cli, signal)`: an async iterable of the texts of deltas, with null for
// every other event. It ends with the run, or when `signal` is aborted.

import fs from "node:fs";

const [name, task, , cli, count] = process.argv.slice(2);
const runs = Number(count);
const { open } = await import(`./peer-${name}.mjs`);

const READY = "ready";
const ROUNDS = 7;

const now = () => process.hrtime.bigint();
const ms = (ns) => Number(ns) / 1e6;
const cpu = () => { const usage = process.cpuUsage(); return usage.user + usage.system; };
const mib = (field) => Number(fs.readFileSync("/proc/self/status", "utf8").match(`${field}:\\s*(\\d+)`)[1]) / 1024;
const exit = () => BigInt(fs.readFileSync(cli + ".exit", "utf8").trim());
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
const percentile = (sorted, percent) => sorted[Math.floor((sorted.length - 1) * percent / 100)];

// Waits until no process of the CLI is left.
async function gone() {
  const left = (pid) => { try { return fs.readlinkSync(`/proc/${pid}/exe`) === cli; } catch { return false; } };
  while (fs.readdirSync("/proc").some((pid) => /^\d/.test(pid) && left(pid))) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

async function burst() {
  const base_mib = mib("VmRSS");
  const [cpu_before, began] = [cpu(), now()];
  let events = 0, bytes = 0;
  for await (const text of open(cli)) {
    if (text !== null) { events += 1; bytes += text.length; }
  }
  return { cpu_us: cpu() - cpu_before, wall_ms: ms(now() - began), events, bytes, base_mib, peak_mib: mib("VmHWM") };
}

async function latency() {
  const cpu_before = cpu();
  const all = await Promise.all(Array.from({ length: runs }, async () => {
    const ages = [];
    for await (const text of open(cli)) {
      if (text !== null && text.length >= 10) ages.push(Number(now() - BigInt(text)));
    }
    return ages;
  }));
  // The first half of each run includes the start.
  const ages = all.flatMap((run) => run.slice(run.length / 2)).sort((a, b) => a - b);
  return {
    cpu_us: cpu() - cpu_before, events: all.flat().length,
    p50_us: percentile(ages, 50) / 1e3, p99_us: percentile(ages, 99) / 1e3,
  };
}

async function start() {
  const [firsts, dones, walls] = [[], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    const began = now();
    let first;
    for await (const _ of open(cli)) first ??= now() - began;
    const end = now();
    firsts.push(ms(first));
    dones.push(ms(end - exit()));
    walls.push(ms(end - began));
  }
  const cold_ms = firsts.shift();
  return { cold_ms, warm_ms: median(firsts), done_ms: median(dones), wall_ms: median(walls) };
}

async function stop() {
  const [stops, ends] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    const abort = new AbortController();
    let began;
    try {
      for await (const text of open(cli, abort.signal)) {
        if (text === READY) { began = now(); abort.abort(); }
      }
    } catch (error) {
      if (began === undefined) throw error;
    }
    stops.push(ms(now() - began));
    await gone();
    ends.push(ms(now() - began));
  }
  return { stop_ms: median(stops), gone_ms: median(ends) };
}

async function hold() {
  for await (const _ of open(cli));
  return { hold_ms: ms(now() - exit()) };
}

async function live() {
  const began = now();
  let left = runs;
  await new Promise((all) => {
    for (let run = 0; run < runs; run += 1) {
      (async () => {
        for await (const text of open(cli)) {
          if (text === READY && (left -= 1) === 0) all();
        }
      })();
    }
  });
  const ready_ms = ms(now() - began);
  console.log("ready");
  await new Promise((go) => process.stdin.once("data", go).once("end", go));
  return { ready_ms, runs };
}

const report = await { burst, latency, start, stop, hold, live }[task]();
console.log(JSON.stringify(report));
process.exit(0);
