// What the scripted agents do: scenarios in the words of `teamster fake`, and scripts of single lines where deltas need a pace.

import path from 'node:path';

type Step = Record<string, unknown>;

const run = (command: string, output: string, more: Step = {}): Step => ({ run: { command, output, ...more } });
const tool = (name: string, input: Step, output = '', more: Step = {}): Step => ({ tool: { name, input, output, ...more } });

export const MARKDOWN = `The tests fail because \`parse_header\` drops the last byte. Here is **what happens**, step by step.

## Cause

1. The reader fills a buffer of 4 KiB.
2. A header may end exactly at its end. Then:
   - the length is compared with \`<\` instead of \`<=\`;
   - the last byte stays in the socket.

> A header that ends at the buffer's end is rare, so the fault was there for *three years*.

\`\`\`rust
/// Returns the end of the header, if the buffer has it.
fn header_end(buffer: &[u8]) -> Option<usize> {
    let end = memchr::memmem::find(buffer, b"\\r\\n\\r\\n")?;
    (end + 4 <= buffer.len()).then_some(end + 4) // was: <
}
\`\`\`

| case | before | after |
|:--|--:|--:|
| header ends inside | 12 µs | 12 µs |
| header ends at the end | *hangs* | 12 µs |
| no header | 3 µs | 3 µs |

- [x] fix the comparison
- [ ] add a test for a header of exactly 4,096 bytes

See [RFC 9112, section 2.2](https://www.rfc-editor.org/rfc/rfc9112#section-2.2).`;

/** Everything here comes from an agent or a stranger, and none of it may run or load anything. */
export const ATTACKS = [
  '<script>window.hacked = 1</script>', '<img src=x onerror="window.hacked = 1">', '<svg onload="window.hacked = 1">',
  '[click](javascript:window.hacked=1)', '![x](http://127.0.0.1:9/leak.png)', '<a href="javascript:window.hacked=1">x</a>',
  '<iframe srcdoc="<script>parent.hacked=1</script>"></iframe>', '"><script>window.hacked=1</script>',
  '`<img src=x onerror=window.hacked=1>`', '[x]: javascript:alert(1)\n\n[x]', '<style>*{display:none}</style>',
  '\u202ereversed', 'data:text/html;base64,PHNjcmlwdD4=',
].join('\n\n');

const longOutput = [...Array(12_000).keys()].map((line) => `line ${line} of the output`).join('\n');

const before = 'fn header_end(buffer: &[u8]) -> Option<usize> {\n    let end = find(buffer)?;\n    (end + 4 < buffer.len()).then_some(end + 4)\n}\n';
const after = 'fn header_end(buffer: &[u8]) -> Option<usize> {\n    let end = find(buffer)?;\n    (end + 4 <= buffer.len()).then_some(end + 4)\n}\n';

const todo = (done: number): Step =>
  tool('TodoWrite', {
    todos: ['Read the failing test', 'Find the cause', 'Fix it', 'Run all tests'].map((content, index) => ({
      content, activeForm: content, status: index < done ? 'completed' : index === done ? 'in_progress' : 'pending',
    })),
  });

export function SCENARIOS(directory: string): Record<string, Step[][]> {
  const gate = (name: string): Step => ({ waitForFile: path.join(directory, name) });
  const question = {
    questions: [
      { question: 'Which database should the service use?', header: 'Database', multiSelect: false, options: [{ label: 'SQLite', description: 'One file, no server.' }, { label: 'PostgreSQL', description: 'For several machines.' }] },
      { question: 'Which tests should run?', header: 'Tests', multiSelect: true, options: [{ label: 'Unit' }, { label: 'Browser' }] },
    ],
  };
  return {
    echo: [[{ say: 'You said: {prompt}' }]],
    markdown: [[{ say: MARKDOWN }]],
    work: [[
      { think: 'The failing test is in the parser. I read the code that finds the end of the header first, then at the test.' },
      { say: 'I read the failing test first.' }, todo(1),
      run('cargo test header', 'running 3 tests\ntest header_inside ... \u001b[32mok\u001b[0m\ntest header_at_end ... \u001b[31mFAILED\u001b[0m\n', { exit: 101 }),
      tool('Read', { file_path: '/home/dev/project/src/header.rs' }, before), todo(2),
      tool('Edit', { file_path: '/home/dev/project/src/header.rs', old_string: before, new_string: after }, 'The file was updated.'),
      run('cargo test', 'test result: ok. 3 passed; 0 failed\n'), todo(4),
      { say: MARKDOWN },
    ]],
    readme: [[
      { think: 'The failing test is in the parser.' }, { say: 'I run the failing test first.' }, todo(1),
      run('cargo test header_at_end', 'running 1 test\ntest header_at_end ... FAILED\n'),
      tool('Read', { file_path: 'src/header.rs' }, before), todo(2),
      tool('Edit', { file_path: 'src/header.rs', old_string: before, new_string: after }, 'The file was updated.'),
      run('cargo test', 'test result: ok. 3 passed; 0 failed\n'), todo(4),
      { say: 'Fixed: the length was compared with `<` instead of `<=`, so **the last byte** of a header stayed in the socket.\n\n| case | before | after |\n|:--|--:|--:|\n| header ends inside | 12 µs | 12 µs |\n| header ends at the end | *hangs* | 12 µs |' },
    ]],
    planning: [[{ say: 'I start.' }, todo(1), gate('go-plan'), todo(4), { say: 'Done.' }]],
    ask: [[{ say: 'I need to run a command.' }, run('rm -rf target && cargo build --release', 'Finished\n', { ask: true }), { say: 'The build is done.' }]],
    askedit: [[tool('Edit', { file_path: '/home/dev/project/src/header.rs', old_string: before, new_string: after }, 'ok', { ask: true }), { say: 'Edited.' }]],
    question: [[{ say: 'Two questions first.' }, tool('AskUserQuestion', question, 'answered', { ask: true }), { say: 'Thank you.' }]],
    slow: [[{ say: 'First part.' }, gate('go-slow'), { say: 'Second part.' }]],
    hang: [[{ say: 'This takes long.' }, { waitMs: 600_000 }]],
    fail: [[{ say: 'I try.' }, { fail: { status: 400, message: 'The request is not valid: `max_tokens` must be positive.' } }]],
    crash: [[{ exit: 3 }]],
    huge: [[run('cat big.log', longOutput), run('base64 image', 'A'.repeat(200_000)), { say: 'That was long.' }]],
    attack: [[
      { think: ATTACKS }, { say: ATTACKS }, run(ATTACKS, ATTACKS), tool('Edit', { file_path: ATTACKS, old_string: ATTACKS, new_string: 'x' }, ATTACKS),
      tool('mcp__<img src=x onerror=window.hacked=1>__<script>window.hacked=1</script>', { '<b>x</b>': ATTACKS }, ATTACKS),
      run(ATTACKS, ATTACKS, { ask: true }), tool('AskUserQuestion', { questions: [{ question: ATTACKS, options: [{ label: ATTACKS, description: ATTACKS }] }] }, '', { ask: true }),
      { fail: { status: 400, message: ATTACKS } },
    ]],
    words: [[{ say: `${'x'.repeat(400)}\n\n| ${'column '.repeat(30)} | b |\n|---|---|\n| ${'y'.repeat(300)} | 1 |\n\n\`\`\`\n${'z'.repeat(500)}\n\`\`\`\n\nhttps://example.com/${'path/'.repeat(60)}\n\n**${'long-word-'.repeat(40)}**` }]],
    rtl: [[{ say: 'שלום! **הבדיקה** נכשלת כי `parse_header` מאבד את הבית האחרון.\n\n- פריט ראשון\n- פריט שני עם `code`\n\n> ציטוט קצר\n\nThe next paragraph is English.\n\nالاختبار يفشل لأن `header_end` يقارن الطول بشكل خاطئ.' }]],
  };
}

const SESSION = '078672f8-b675-400d-816b-6dfdee66f8d8';
const line = (value: Step): Step => ({ line: { session_id: SESSION, parent_tool_use_id: null, uuid: '59b8836a-aa5a-49be-9b33-ad51e6a2c71d', ...value } });
const stream = (event: Step): Step => line({ type: 'stream_event', event });
const usage = { input_tokens: 25, output_tokens: 40 };

/** Returns a script that answers each prompt with one message in deltas, with pauses and gates. */
function streamed(parts: (string | { gate: string } | { sleep: number })[], directory: string): Step[] {
  const text = parts.filter((part) => typeof part === 'string').join('');
  const steps = parts.map((part): Step => {
    if (typeof part === 'string') return stream({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: part } });
    return 'gate' in part ? { awaitFile: path.join(directory, part.gate) } : { sleepMs: part.sleep };
  });
  const message = { id: 'msg_stream', type: 'message', role: 'assistant', model: 'claude-opus-4-8', content: [], stop_reason: null, usage };
  return [
    { awaitLine: '"type":"user"' },
    line({ type: 'system', subtype: 'init', cwd: '/home/dev/project', tools: ['Bash'], mcp_servers: [], model: 'claude-opus-4-8', permissionMode: 'default', claude_code_version: '2.1.197' }),
    stream({ type: 'message_start', message }),
    stream({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    ...steps,
    line({ type: 'assistant', message: { ...message, content: [{ type: 'text', text }] } }),
    stream({ type: 'content_block_stop', index: 0 }),
    stream({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage }),
    stream({ type: 'message_stop' }),
    line({
      type: 'result', subtype: 'success', is_error: false, duration_ms: 510, num_turns: 1, result: text, stop_reason: 'end_turn',
      total_cost_usd: 0.003_55, usage, permission_denials: [],
    }),
    "readToEnd" as unknown as Step,
  ];
}

export const FIRST_HALF = 'The first half of the answer, which stands before the restart. ';
export const SECOND_HALF = 'And the second half of it, which comes after.';

export function STEPS(directory: string): Record<string, unknown[]> {
  const words = [...Array(300).keys()].flatMap((index) => [`word${index} `, ...(index % 3 === 0 ? [{ sleep: 12 }] : [])]);
  const selection = [...Array(120).keys()].flatMap((index) => [`delta${index} `, { sleep: 30 }]);
  return {
    halves: streamed([FIRST_HALF, { gate: 'go-half' }, SECOND_HALF], directory),
    stream: streamed(words, directory),
    selection: streamed(['A paragraph that a person selects.\n\n', { gate: 'go-select' }, ...selection], directory),
    code: streamed(['```js\n', { gate: 'go-code' }, 'let a = 1;\n', { sleep: 50 }, 'let b = 2;\n', { gate: 'go-code2' }, '```\n\nDone.'], directory),
  };
}
