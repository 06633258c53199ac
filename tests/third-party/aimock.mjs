// The haft binary against aimock, a mock of the model APIs that others wrote, on all four of them, also with its faults on.
// usage: node aimock.mjs FOLDER HAFT     FOLDER is where npm has installed @copilotkit/aimock
import { execFile } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const [folder, haft] = process.argv.slice(2);

// aimock rolls its faults with this; the same numbers every time.
let state = 1;
Math.random = () => {
  state = (state * 48271) % 2147483647;
  return state / 2147483647;
};

const require = createRequire(resolve(folder, "package.json"));
const { LLMock } = await import(require.resolve("@copilotkit/aimock").replace(/\.cjs$/, ".js"));

const APIS = {
  "openai-chat": { version: "/v1", path: "/v1/chat/completions" },
  "openai-responses": { version: "/v1", path: "/v1/responses" },
  anthropic: { version: "", path: "/v1/messages" },
  gemini: { version: "", path: "/v1beta/models/test-model:streamGenerateContent" },
};
const NOTE = "The secret number is 4711.";

/** Runs haft in a home and project of its own; gives its exit code and events. */
function run(mock, api, prompt, retry) {
  const root = mkdtempSync(join(tmpdir(), "haft-aimock-"));
  const [home, project] = [join(root, "home"), join(root, "project")];
  mkdirSync(home);
  mkdirSync(project);
  writeFileSync(join(project, "note.txt"), NOTE + "\n");
  writeFileSync(
    join(home, "config.toml"),
    `model = "mock/test-model"
[providers.mock]
api = "${api}"
base_url = "${mock.url}${APIS[api].version}"
[models."mock/test-model"]
context_window = 200000
max_output_tokens = 8192
[retry]
base_delay_ms = 1
max_delay_ms = 5
${retry}
`,
  );
  const env = { PATH: process.env.PATH, HOME: home, HAFT_HOME: home };
  const args = ["run", "--output-format", "stream-json", "--permission-mode", "yolo", prompt];
  return new Promise((done) => {
    execFile(haft, args, { cwd: project, env, timeout: 60_000 }, (error, stdout, stderr) => {
      const events = stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line));
      const of = (type) => events.filter((event) => event.type === type);
      rmSync(root, { recursive: true, force: true });
      done({ code: error ? error.code : 0, events, of, result: events.at(-1), stderr });
    });
  });
}

let failed = 0;
function check(what, held, ran) {
  console.log(`${held ? "ok    " : "FAILED"} ${what}`);
  if (!held) {
    failed += 1;
    console.log(`       exit code ${ran.code}; ${JSON.stringify(ran.result)}\n       ${ran.stderr.trim()}`);
  }
}

async function withMock(chaos, use, cut = {}) {
  const mock = new LLMock({ port: 0 });
  const call = { name: "read_file", arguments: JSON.stringify({ path: "note.txt" }), id: "call_note_1" };
  mock.addFixture({ match: { predicate: (request) => request.messages.some((message) => message.role === "tool") },
    response: { content: "It says 4711." } });
  mock.addFixture({ match: { predicate: (request) => JSON.stringify(request.messages).includes("read the note") },
    response: { toolCalls: [call] }, ...cut });
  mock.addFixture({ match: { predicate: () => true }, response: { content: "Hello from the mock. Grüße, 世界." } });
  if (chaos) mock.setChaos(chaos);
  await mock.start();
  try {
    return await use(mock);
  } finally {
    await mock.stop();
  }
}

for (const api of Object.keys(APIS)) {
  const plain = await withMock(null, (mock) => run(mock, api, "Say hello.", ""));
  check(`${api}: an answer`, plain.code === 0 && plain.result.text === "Hello from the mock. Grüße, 世界.", plain);

  const asked = await withMock(null, async (mock) => {
    const ran = await run(mock, api, "Please read the note.", "");
    return { ...ran, told: JSON.stringify(mock.getRequests().at(-1)?.body ?? "") };
  });
  const results = asked.of("tool_result");
  check(`${api}: a tool round`,
    asked.code === 0 && asked.result.text === "It says 4711." && results.length === 1 && asked.told.includes("4711"), asked);

  // Four faults, each in a fifth of the requests.
  const often = { dropRate: 0.2, malformedRate: 0.2, rateLimitRate: 0.1, disconnectRate: 0.2 };
  const stormy = await withMock(often, (mock) => run(mock, api, "Please read the note.", "attempts = 30"));
  check(`${api}: a tool round in bad weather, ${stormy.of("retry").length} retries`,
    stormy.code === 0 && stormy.result.text === "It says 4711." && stormy.of("tool_result").length === 1, stormy);

  // The stream with the call breaks off, every time.
  const cut = await withMock(null, (mock) => run(mock, api, "Please read the note.", "attempts = 3"), { truncateAfterChunks: 1 });
  check(`${api}: a stream cut every time, ${cut.of("retry").length} retries`,
    cut.code !== 0 && cut.result?.outcome === "failed" && cut.of("tool_result").length === 0, cut);

  for (const [fault, chaos] of Object.entries({
    "errors only": { dropRate: 1 },
    "broken JSON only": { malformedRate: 1 },
    "disconnects only": { disconnectRate: 1 },
  })) {
    const lost = await withMock(chaos, (mock) => run(mock, api, "Please read the note.", "attempts = 3"));
    const retries = lost.of("retry").length;
    check(`${api}: ${fault}, exit code ${lost.code} after ${retries} retries`,
      [1, 2].includes(lost.code) && lost.result?.outcome === "failed" && retries >= 2 && lost.of("tool_result").length === 0, lost);
  }
}
process.exit(failed === 0 ? 0 : 1);
