// A client on the official TypeScript SDK of the Agent Client Protocol, which checks every message against its schema.
//
// usage: node acp_client.mjs HAFT PROJECT
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [haft, project] = process.argv.slice(2);
const child = spawn(haft, ["acp"], { cwd: project, stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const updates = [], asked = [], written = [];
const { methods } = acp;

function expect(holds, what) {
    console.log(`${holds ? "ok  " : "FAIL"} ${what}`);
    if (!holds) process.exitCode = 1;
}
const said = () => updates.filter((one) => one.sessionUpdate === "agent_message_chunk").map((one) => one.content.text).join("");

await acp
    .client({ name: "third-party" })
    .onNotification(methods.client.session.update, ({ params }) => void updates.push(params.update))
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
        asked.push(params);
        const once = params.options.find((one) => one.kind === "allow_once");
        return { outcome: { outcome: "selected", optionId: once.optionId } };
    })
    .onRequest(methods.client.fs.readTextFile, ({ params }) => ({ content: readFileSync(params.path, "utf8") }))
    .onRequest(methods.client.fs.writeTextFile, ({ params }) => {
        written.push(params.path);
        writeFileSync(params.path, params.content);
        return {};
    })
    .connectWith(stream, async (haft) => {
        const hello = await haft.request(methods.agent.initialize, {
            protocolVersion: acp.PROTOCOL_VERSION,
            clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, session: { notices: {} } },
        });
        expect(hello.protocolVersion === 1 && hello.agentInfo.name === "haft", "initialize");
        const session = await haft.request(methods.agent.session.new, { cwd: project, mcpServers: [] });
        const prompt = (text, id = session.sessionId) =>
            haft.request(methods.agent.session.prompt, { sessionId: id, prompt: [{ type: "text", text }] });
        expect((await prompt("Write a file")).stopReason === "end_turn", "a turn with an edit");
        expect(asked.length === 1 && asked[0].toolCall.content.some((one) => one.type === "diff"), "the edit was asked with its diff");
        expect(written.length === 0 && readFileSync(`${project}/hello.txt`, "utf8") === "Hello", "haft wrote the file itself");
        await prompt("Run a command");
        expect(updates.some((one) => one.kind === "execute"), "a command is one");
        await prompt("Make a plan");
        expect(updates.some((one) => one.sessionUpdate === "plan" && one.entries.length === 1), "the TODO list is a plan");
        const slow = prompt("Speak slowly");
        while (!said().includes("slow ")) await new Promise((done) => setTimeout(done, 10));
        const begun = performance.now();
        await haft.notify(methods.agent.session.cancel, { sessionId: session.sessionId });
        expect((await slow).stopReason === "cancelled", `cancelled after ${Math.round(performance.now() - begun)} ms`);
        await haft.request(methods.agent.session.close, { sessionId: session.sessionId });
        const { sessions } = await haft.request(methods.agent.session.list, { cwd: project });
        expect(sessions.some((one) => one.sessionId === session.sessionId && one.title), "the conversation is listed");
        updates.length = 0;
        await haft.request(methods.agent.session.load, { sessionId: session.sessionId, cwd: project, mcpServers: [] });
        expect(updates.filter((one) => one.sessionUpdate === "user_message_chunk").length === 4, "and shown again when it is loaded");
        await haft.request(methods.agent.session.setMode, { sessionId: session.sessionId, modeId: "plan" });
        await haft.request(methods.agent.session.setConfigOption, { sessionId: session.sessionId, configId: "mode", value: "ask" });
        const refused = await prompt("Hello", "nobody").then(() => null, (error) => error);
        expect(refused?.code === -32002, "an unknown session is an error");
    });
child.stdin.end();
