// The page of `haft serve` in Chromium: every page by mouse and by keyboard, without scripts, narrow and wide, light and dark, and
// checked by axe-core.
//
// usage: node browser.mjs NODE_MODULES CHROMIUM HAFT SCRIPTED_MODEL [PICTURES]
//   PICTURES  a folder to write a picture of each page to
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [modules, executablePath, haft, model, pictures] = process.argv.slice(2);
const require = createRequire(join(modules, "x.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const here = dirname(fileURLToPath(import.meta.url));

let failures = 0;
function expect(holds, what, seen = "") {
    console.log(holds ? `ok     ${what}` : `FAILED ${what}: ${seen}`);
    if (!holds) failures += 1;
}

const root = mkdtempSync(join(tmpdir(), "haft-browser-"));
const [home, project] = [join(root, "home"), join(root, "sums")];
const env = { PATH: process.env.PATH, HOME: home, HAFT_HOME: home, LANG: "C.UTF-8" };
const children = [];

// The first line that a program prints, which goes on.
function started(program, args, more = {}) {
    const child = spawn(program, args, { cwd: project, env: { ...env, ...more }, stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    return new Promise((resolve, reject) => {
        let said = "";
        child.stdout.on("data", (data) => {
            said += data;
            if (said.includes("\n")) resolve(said.split("\n")[0]);
        });
        child.on("exit", (code) => reject(new Error(`${program} ended with ${code}`)));
    });
}

function ran(...args) {
    const { status, stdout, stderr } = spawnSync(haft, args, { cwd: project, env, encoding: "utf8", timeout: 60_000 });
    if (status !== 0) throw new Error(`haft ${args.join(" ")}: ${status} ${stdout} ${stderr}`);
    return stdout;
}

async function sample() {
    mkdirSync(home);
    mkdirSync(project);
    writeFileSync(join(project, "README.md"), "# sums\n\n`sh sum.sh` prints the sum of the numbers from 1 to 10.\n");
    writeFileSync(join(project, "sum.sh"), "sum=0\nfor n in $(seq 1 9); do\n    sum=$((sum + n))\ndone\necho $sum\n");
    const line = await started(model, [join(here, "browser.yaml")]);
    const base = line.match(/http:\/\/127\.0\.0\.1:\d+/)[0];
    writeFileSync(
        join(home, "config.toml"),
        `model = "mock/test"\n[providers.mock]\napi = "anthropic"\nbase_url = "${base}"\n[models."mock/test"]\n` +
            "context_window = 32000\nmax_output_tokens = 4096\n" +
            "[models.\"mock/test\".price]\ninput = 3.0\noutput = 15.0\ncached_input = 0.3\ncache_write = 3.75\n",
    );
    const chats = join(home, ".gemini", "tmp", "sum", "chats");
    mkdirSync(chats, { recursive: true });
    const fixture = join(here, "../../crates/extensions/imports/fixtures/gemini-cli-0.61/input.jsonl");
    writeFileSync(join(chats, "session-1.jsonl"), readFileSync(fixture));
    ran("trust");
    ran("run", "--permission-mode", "yolo", "The sum is wrong. Mend it.");
    // Other rules: the prefix breaks, and the page says why.
    writeFileSync(join(project, "AGENTS.md"), "Answer in one sentence.\n");
    ran("run", "--permission-mode", "yolo", "-c", "What does it do now?");
    const own = JSON.parse(ran("conversations", "list", "--json"))[0].id;
    // A conversation that is too long for one page.
    const messages = Array.from({ length: 2_000 }, (_, at) => ({ role: at % 2 ? "assistant" : "user", content: `message ${at}` }));
    writeFileSync(join(project, "long.json"), JSON.stringify({ messages }));
    ran("conversations", "import", join(project, "long.json"));
    rmSync(join(project, "long.json"));
    return own;
}

// Pages, and what each must show.
const pages = (id) => [
    ["conversations", "/", "From cache"],
    ["search", "/?q=wrong", "The sum is wrong"],
    ["dialogue", `/c/${id}`, "stopped one number too early"],
    ["timeline", `/c/${id}/timeline`, "Prefix broken"],
    ["request", `/c/${id}/r/7`, "Difference from the previous request"],
    ["run", "/run", "Runs of this page"],
    ["live", `/c/${id}/live`, "Newest messages"],
    ["editor", `/c/${id}/edit`, "Select messages"],
    ["next", `/c/${id}/next`, "Body as it would be sent"],
    ["what-if", `/c/${id}/what-if`, "cache-aware"],
    ["missing", "/c/nobody", "All conversations"],
];

// Pages of a conversation begin with the figures of the whole conversation.
const withFigures = ["dialogue", "timeline", "request", "live", "editor", "next", "what-if"];

async function looks(browser, url, id) {
    for (const width of [400, 1600])
        for (const colorScheme of ["light", "dark"]) {
            const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
            const page = await context.newPage();
            const wrong = [];
            page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
            page.on("pageerror", (error) => wrong.push(String(error)));
            await page.goto(url.href);
            for (const [name, path, text] of pages(id)) {
                const what = `${name}, ${width} px, ${colorScheme}`;
                await page.goto(new URL(path, url).href);
                const body = await page.textContent("body");
                const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
                await page.evaluate(axe);
                const { violations } = await page.evaluate(() => axe.run());
                const bad = violations.filter((one) => ["serious", "critical"].includes(one.impact));
                const told = bad.map((one) => `${one.id} ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
                const figures = await page.locator(".figures dd.value").count();
                expect(figures === (withFigures.includes(name) ? 4 : 0), `${what}: figures`, figures);
                expect(body.includes(text) && wide <= 0 && told.length === 0, what, `${wide} px too wide; ${told.join("\n")}; ${body.includes(text)}`);
                if (pictures) await page.screenshot({ path: join(pictures, `inspector-${name}-${width}-${colorScheme}.png`) });
            }
            // The page that is missing is an error for the console.
            const other = wrong.filter((text) => !text.includes("404"));
            expect(other.length === 0, `nothing wrong on the console, ${width} px, ${colorScheme}`, other.join("\n"));
            await context.close();
        }
}

async function withoutScripts(browser, url, id) {
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(url.href);
    for (const [name, path, text] of pages(id)) {
        await page.goto(new URL(path, url).href);
        expect((await page.content()).includes(text), `${name} without scripts`);
    }
    await context.close();
}

// What people read on a page, but for code and what was sent.
const texts = (page) =>
    page.evaluate(() => {
        const found = [];
        const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
        while (walker.nextNode())
            if (!walker.currentNode.parentElement.closest("pre, code, script, style, .tools")) found.push(walker.currentNode.data.trim().replace(/ ·( haft)?$/, ""));
        for (const name of ["title", "placeholder", "aria-label", "alt"])
            for (const element of document.querySelectorAll(`[${name}]`)) found.push(element.getAttribute(name));
        return found;
    });

const strings = (value) => (typeof value === "object" && value ? Object.values(value).flatMap(strings) : [String(value)]);
const flat = (text) => text.replace(/\s+/g, " ").trim();

// What a page says in both languages is a name or comes from the conversation: all else was left in English.
async function inChinese(browser, english, id) {
    const chinese = new URL(await started(haft, ["serve"], { LANG: "zh_CN.UTF-8" }));
    const names = ["haft", "mock/test", "anthropic", "gemini-cli", project, "plan", "ask", "accept-edits", "auto", "none", "no-reminders", "recorded", "front", "tail", "default", "cache-aware", "sum/chats/session-1.jsonl", "message 0", "openai-chat"];
    const kept = JSON.parse(ran("conversations", "export", id));
    const sent = ran("context", "show", "--full", "--next", id);
    const said = flat([JSON.stringify(kept), ...strings(kept), sent].join(" "));
    // A call is its name and its arguments; a result may be cut.
    const parts = (text) => flat(text).split(/(?:^→ |\b)\w+ (?=\{)/).map((part) => flat(part).replace(/…$/, ""));
    const words = new Set([...names, ...strings(kept)]);
    // A single word may stand anywhere in what was sent; an id is shown by its first digits.
    const isWord = (text) => words.has(text) || /^[0-9a-f]{8}$/.test(text) || said.includes(`\\"${text}\\"`);
    const isKept = (text) => names.includes(text) || (flat(text).includes(" ") ? parts(text).every((part) => said.includes(part)) : isWord(text));
    const [one, other] = [await browser.newPage(), await browser.newPage()];
    await one.goto(english.href);
    await other.goto(chinese.href);
    for (const [name, path] of [...pages(id), ["sessions", "/sessions"]]) {
        await one.goto(new URL(path, english).href);
        await other.goto(new URL(path, chinese).href);
        const before = new Set(await texts(one));
        const left = (await texts(other)).filter((text) => /[a-z]{3}/.test(text) && before.has(text) && !isKept(text));
        expect(left.length === 0, `${name} in Chinese`, left.join(" | "));
        expect(await other.evaluate(() => document.documentElement.lang === "zh-CN"), `${name} says that it is Chinese`);
        if (pictures) await other.screenshot({ path: join(pictures, `inspector-${name}-zh-CN.png`) });
    }
    await one.close();
    await other.close();
}

async function byMouse(page, url) {
    await page.goto(url.href);
    await page.getByRole("link", { name: "The sum is wrong" }).first().click();
    await page.getByRole("link", { name: "Timeline" }).click();
    await page.getByRole("link", { name: "Zoom in" }).click();
    await page.locator("svg a").nth(6).hover();
    expect((await page.locator("svg a title").nth(6).textContent()).includes("break: a rules file"), "a column says what it is");
    await page.locator("svg a").nth(6).locator("rect").first().click();
    await page.waitForURL(/\/r\/7$/);
    expect(true, "a request is reached by mouse");
    await page.getByText("Body as sent").click();
    expect(await page.locator("details[open] pre").last().isVisible(), "and its body opened");
}

// Presses Tab until the wanted element has the focus.
async function tabTo(page, wanted) {
    for (let presses = 0; presses < 120; presses += 1) {
        await page.keyboard.press("Tab");
        if (await page.evaluate(wanted)) return true;
    }
    return false;
}

async function byKeyboard(page, url) {
    await page.goto(url.href);
    expect(await tabTo(page, () => document.activeElement.id === "q"), "the search is reached by keyboard");
    await page.keyboard.type("wrong");
    await page.keyboard.press("Enter");
    await page.waitForURL(/q=wrong/);
    const to = (part) => `document.activeElement.matches('main a[href*="${part}"], nav a[href*="${part}"]')`;
    expect(await tabTo(page, to("/c/")), "a hit is reached by keyboard");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/c\//);
    expect(await tabTo(page, () => document.activeElement.matches("article .call:not([open]) > summary")), "a call is reached by keyboard");
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.activeElement.parentElement.open), "and opened");
    await page.goto(page.url());
    await tabTo(page, to("/timeline"));
    await page.keyboard.press("Enter");
    await page.waitForURL(/timeline/);
    expect(await tabTo(page, () => document.activeElement.matches("svg a")), "a column is reached by keyboard");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/r\/3$/);
    await page.goBack();
    expect(await tabTo(page, to("/r/1")), "a request is reached by keyboard");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/r\/1$/);
    await page.keyboard.press("ArrowRight");
    await page.waitForURL(/\/r\/2$/);
    await page.keyboard.press("ArrowLeft");
    await page.waitForURL(/\/r\/1$/);
    expect(true, "the arrow keys walk from request to request");
}

// An edit by keyboard: its price before, undo after.
async function edits(page, url, id) {
    await page.goto(new URL(`/c/${id}/edit`, url).href);
    const to = (selector) => `document.activeElement.matches('${selector}')`;
    const presses = async (name, text) => {
        expect(await tabTo(page, to(`button[value=${name}]`)), `the button ${name} is reached by keyboard`);
        await page.keyboard.press("Enter");
        await page.getByText(text).waitFor();
    };
    const dropped = await page.locator("tbody tr").filter({ hasText: "result list_files" }).locator("input").getAttribute("value");
    await tabTo(page, to(`input[value="${dropped}"]`));
    await page.keyboard.press("Space");
    // The buttons stand before the messages.
    for (let back = 0; back < 40 && !(await page.evaluate(to("button[value=drop]"))); back += 1) await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByText("The next request would have").waitFor();
    expect((await page.textContent("main")).includes("Drops 3 messages"), "an edit is quoted");
    if (pictures) await page.screenshot({ path: join(pictures, "inspector-quote.png"), clip: { x: 0, y: 0, width: 1000, height: 350 } });
    await presses("keep", "In force: 1 edit");
    await presses("undo", "Undoes 1 edit");
    await presses("keep", "In force: 0 edits");
    expect(true, "and undone");
}

// A run by keyboard, from its start to its end, with an approval; the page shows what happens without being loaded again.
async function runs(page, url) {
    await page.goto(url.href);
    await page.goto(new URL("/run", url).href);
    const presses = async (selector, what) => {
        expect(await tabTo(page, `document.activeElement.matches('${selector}')`), `${what} is reached by keyboard`);
    };
    await presses("#prompt", "the prompt");
    await page.keyboard.type("Write a greeting");
    await presses("#mode", "the mode");
    await page.keyboard.type("ask");
    await presses("button[value=start]", "the start");
    await page.keyboard.press("Enter");
    await page.getByText("Waiting for approval").first().waitFor();
    expect((await page.textContent(".approval pre")).includes("+Good morning!"), "an approval shows the whole change");
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run());
    const bad = violations.filter((one) => ["serious", "critical"].includes(one.impact)).map((one) => one.id);
    expect(bad.length === 0, "an approval is accessible", bad.join(" "));
    if (pictures) await page.screenshot({ path: join(pictures, "inspector-approval.png"), clip: { x: 0, y: 0, width: 1000, height: 640 } });
    await presses("button[value=allow]", "the answer");
    await page.keyboard.press("Enter");
    await page.locator(".badge", { hasText: "Completed" }).waitFor();
    expect(readFileSync(join(project, "greeting.txt"), "utf8") === "Good morning!\n", "what was allowed is done");
    await presses("#message", "the message");
    await page.keyboard.type("And another");
    await presses("button[value=send]", "the sending");
    await page.keyboard.press("Enter");
    await page.getByText("Good evening!").waitFor();
    await page.locator(".badge", { hasText: "Completed" }).waitFor();
    expect(true, "and the run goes on");
}

// A session that gemini-cli wrote: found in its folder, opened, imported, and walked through.
async function imported(page, url) {
    const picture = (name, height) =>
        pictures && page.screenshot({ path: join(pictures, `inspector-imported-${name}.png`), clip: { x: 0, y: 0, width: 1200, height } });
    const calm = async (what) => {
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => axe.run());
        const bad = violations.filter((one) => ["serious", "critical"].includes(one.impact));
        expect(bad.length === 0, `${what} is accessible`, bad.map((one) => one.id).join(" "));
    };
    await page.setViewportSize({ width: 1200, height: 1000 });
    await page.goto(new URL("/", url).href);
    await page.getByRole("link", { name: "Sessions of other agents" }).click();
    await calm("the list of sessions");
    await picture("list", 330);
    await page.getByRole("link", { name: /session-1/ }).click();
    await page.getByText("Fix the off-by-one").first().waitFor();
    await calm("a session");
    await picture("session", 640);
    await page.getByRole("button", { name: /^Import it/ }).click();
    await page.getByText("imported from gemini-cli").first().waitFor();
    expect((await page.locator("svg a").count()) === 4, "each reply of an imported session is a request");
    await calm("its timeline");
    await picture("timeline", 860);
    await page.locator("svg a").nth(2).click();
    await page.getByText("Difference from the previous request").waitFor();
    expect((await page.textContent("main")).includes("not recorded"), "what the recording lacks is said");
    await calm("a request of it");
    await picture("request", 900);
    await page.getByRole("link", { name: "What if" }).click();
    await page.getByText("cache-aware").first().waitFor();
    expect(true, "and replayed under other policies");
}

// A conversation of 1,000 requests: pages of 200 rows, and a picture whose columns can be told apart.
async function long(page, url) {
    const { id } = JSON.parse(ran("conversations", "list", "--all", "--json")).find((one) => one.messages === 2_000);
    await page.goto(new URL(`/c/${id}/timeline`, url).href);
    expect((await page.locator("tbody tr").count()) === 200, "a page has 200 requests");
    expect((await page.locator("svg a").count()) <= 160, "a column stands for several requests");
    await page.getByRole("link", { name: "Next →" }).first().click();
    await page.waitForURL(/from=200/);
    await page.getByRole("link", { name: "Zoom in" }).click();
    await page.waitForURL(/zoom=in/);
    await page.goto(new URL(`/c/${id}/timeline?zoom=in&from=200`, url).href);
    expect((await page.locator("svg a").first().getAttribute("href")).endsWith("/r/201"), "the picture shows the requests of the page");
    await page.goto(new URL(`/c/${id}/r/900`, url).href);
    expect((await page.textContent("main")).includes("message 1798"), "a request opens at its new segments");
    await page.goto(new URL(`/c/${id}/edit`, url).href);
    expect((await page.locator("tbody tr").count()) === 200, "the editor lists the newest 200 messages");
}

async function main() {
    const id = await sample();
    const url = new URL(await started(haft, ["serve"]));
    const browser = await chromium.launch({
        executablePath,
        args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    });
    try {
        await looks(browser, url, id);
        await withoutScripts(browser, url, id);
        await inChinese(browser, url, id);
        const page = await browser.newPage();
        page.setDefaultTimeout(15_000);
        await byMouse(page, url);
        await byKeyboard(page, url);
        await edits(page, url, id);
        await runs(page, url);
        await imported(page, url);
        await long(page, url);
    } catch (error) {
        error.page = await browser.contexts().at(-1)?.pages()[0]?.textContent("main");
        throw error;
    } finally {
        await browser.close();
    }
}

main()
    .catch((error) => expect(false, "the page can be used", `${error.stack}\n${error.page ?? ""}`))
    .finally(() => {
        for (const child of children) child.removeAllListeners("exit").kill();
        rmSync(root, { recursive: true, force: true });
        process.exitCode = failures ? 1 : 0;
    });
