// A client of Claude's Agent SDK for TypeScript, written from the documentation of the npm package, drives haft.
//
// usage: agent_sdk.mjs FOLDER HAFT SCRIPTED_MODEL     FOLDER holds node_modules with @anthropic-ai/claude-agent-sdk

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const [folder, haft, model] = process.argv.slice(2);
const require = createRequire(join(folder, 'package.json'));
const sdk = await import(pathToFileURL(require.resolve('@anthropic-ai/claude-agent-sdk')));
const { z } = await import(pathToFileURL(require.resolve('zod')));
const here = dirname(fileURLToPath(import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'haft-agent-sdk-'));
const claude = join(work, 'claude');
symlinkSync(haft, claude);
let failed = 0, count = 0;

function check(what, held, seen) {
  console.log(`${held ? 'ok    ' : 'FAILED'} ${what}`);
  if (!held) {
    failed += 1;
    console.log(`       ${JSON.stringify(seen)?.slice(0, 2000)}`);
  }
}

const server = spawn(model, [join(here, 'agent_sdk.yaml')], { stdio: ['ignore', 'pipe', 'ignore'] });
const base = await new Promise((resolve) => {
  let text = '';
  server.stdout.on('data', (piece) => {
    text += piece;
    const found = /anthropic=(\S+)\s/.exec(text);
    if (found) resolve(found[1]);
  });
});

/** A project with a home of its own, and the options that lead there. */
function options(more) {
  count += 1;
  const [home, cwd] = ['home', 'project'].map((name) => join(work, `${count}`, name));
  for (const path of [home, cwd]) mkdirSync(path, { recursive: true });
  const models = ['claude-sonnet-4-5', 'second-model'].map((name) => `[models."anthropic/${name}"]\nprice = { input = 3.0, output = 15.0 }\n`);
  writeFileSync(join(home, 'config.toml'), `model = "anthropic/claude-sonnet-4-5"\n[providers.anthropic]\nbase_url = "${base}"\n${models.join('')}`);
  const env = { PATH: process.env.PATH, HOME: home, HAFT_HOME: home, ANTHROPIC_API_KEY: 'sk-mock' };
  return { cwd, env, pathToClaudeCodeExecutable: claude, stderr: (text) => lastWords.push(text), ...more };
}

let lastWords = [];

/** Every message of a query. */
async function all(prompt, chosen) {
  lastWords = [];
  const messages = [];
  for await (const message of sdk.query({ prompt, options: chosen })) messages.push(message);
  return messages;
}

const texts = (messages) => messages.filter((m) => m.type === 'assistant').flatMap((m) => m.message.content).filter((block) => block.type === 'text').map((block) => block.text);
const result = (messages) => messages.find((message) => message.type === 'result');

try {
  const simple = await all('What is 2 + 2?', options({ maxTurns: 1, systemPrompt: 'Be short.' }));
  check('query: a string', result(simple)?.result === '2 + 2 = 4' && simple[0].subtype === 'init' && result(simple).total_cost_usd > 0, simple);

  for (const [behavior, exists] of [['allow', true], ['deny', false]]) {
    const asked = [];
    const chosen = options({
      canUseTool: async (name, input) => {
        asked.push([name, input.file_path]);
        return behavior === 'allow' ? { behavior, updatedInput: input } : { behavior, message: 'no' };
      },
    });
    await all('WRITE-A', chosen);
    check(`canUseTool: ${behavior}`, JSON.stringify(asked) === JSON.stringify([['Write', join(chosen.cwd, 'a.txt')]]) && existsSync(join(chosen.cwd, 'a.txt')) === exists, asked);
  }

  for (const [more, exists] of [[{}, false], [{ allowedTools: ['Write'] }, true], [{ allowedTools: ['Write'], disallowedTools: ['Write'] }, false], [{ permissionMode: 'acceptEdits' }, true], [{ permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true }, true]]) {
    const chosen = options(more);
    await all('WRITE-A', chosen);
    check(`${JSON.stringify(more)}: ${exists ? 'written' : 'not written'}`, existsSync(join(chosen.cwd, 'a.txt')) === exists, lastWords);
  }

  const seen = [];
  const note = async (input) => {
    seen.push([input.hook_event_name, input.tool_name ?? null]);
    return {};
  };
  const noted = options({ allowedTools: ['Bash'], hooks: Object.fromEntries(['UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'Stop'].map((point) => [point, [{ hooks: [note] }]])) });
  await all('RUN-TOUCH', noted);
  const points = [['UserPromptSubmit', null], ['PreToolUse', 'Bash'], ['PostToolUse', 'Bash'], ['Stop', null]];
  check('hooks at four points', JSON.stringify(seen) === JSON.stringify(points) && existsSync(join(noted.cwd, 'touched')), seen);
  const denying = async () => ({ hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason: 'no' } });
  const denied = options({ allowedTools: ['Bash'], hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [denying] }] } });
  await all('RUN-TOUCH', denied);
  check('a hook denies', !existsSync(join(denied.cwd, 'touched')), lastWords);

  const add = sdk.tool('add', 'Add two numbers', { a: z.number(), b: z.number() }, async ({ a, b }) => ({ content: [{ type: 'text', text: `sum: ${a + b}` }] }));
  const adder = sdk.createSdkMcpServer({ name: 'adder', version: '1.0.0', tools: [add] });
  const added = await all('CALL-ADD', options({ mcpServers: { adder }, allowedTools: ['mcp__adder__add'] }));
  check('a server in the process of the client', texts(added).includes('The sum is 5.'), added);

  const partial = await all('What is 2 + 2?', options({ includePartialMessages: true }));
  check('partial messages', partial.some((m) => m.type === 'stream_event' && m.event.delta?.type === 'text_delta'), partial);

  const agents = { 'code-reviewer': { description: 'Reviews', prompt: 'You review.', tools: ['Read', 'Grep'], model: 'inherit' } };
  const reviewed = await all('Use the code-reviewer agent', options({ agents }));
  check('an agent of the client', texts(reviewed).includes('The agent has reported.') && reviewed[0].agents.includes('code-reviewer'), reviewed);

  // Several turns: the model is changed between them, and one is interrupted.
  const chosen = options({});
  let say;
  const queue = [];
  async function* input() {
    for (;;) {
      while (queue.length === 0) await new Promise((resolve) => (say = resolve));
      const next = queue.shift();
      if (next === null) return;
      yield { type: 'user', message: { role: 'user', content: next }, parent_tool_use_id: null, session_id: '' };
    }
  }
  const send = (text) => {
    queue.push(text);
    say?.();
  };
  const query = sdk.query({ prompt: input(), options: chosen });
  const results = [];
  send('What is 2 + 2?');
  for await (const message of query) {
    if (message.type === 'stream_event' || message.type !== 'result') continue;
    results.push(message.subtype === 'success' ? message.result : message.subtype);
    if (results.length === 1) {
      await query.setModel('anthropic/second-model');
      send('hello');
    } else if (results.length === 2) {
      await query.setModel();
      send('Count from 1 to 20');
      setTimeout(() => query.interrupt(), 1500);
    } else if (results.length === 3) {
      send('What is 2 + 2?');
    } else {
      send(null);
    }
  }
  const wanted = ['2 + 2 = 4', 'I am the second model.', 'error_during_execution', '2 + 2 = 4'];
  check('setModel, interrupt, and on', JSON.stringify(results) === JSON.stringify(wanted), results);

  const sessionId = '0b3f1c9e-4a89-4b7e-9c55-3f6d3a1e7f11';
  const home = options({ sessionId });
  const first = await all('What is 2 + 2?', home);
  const { sessionId: _, ...rest } = home;
  const second = await all('What is 2 + 2?', { ...rest, resume: sessionId, forkSession: true });
  check('a chosen id, resumed in a copy', result(first).session_id === sessionId && result(second).session_id !== sessionId && result(second).subtype === 'success', [first, second]);
} finally {
  server.kill();
  rmSync(work, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
