// The client of the npm SDK, driven by lines of JSON: `{"id": 1, "do": "callTool", "with": [...]}` in, `{"id": 1, "result": ...}` or
// `{"id": 1, "error": {"code": ..., "message": ...}}` out. `{"id": 2, "cancel": 1}` takes back what is under way.
//
// node npm_client.mjs FOLDER COMMAND [ARGUMENT...]: FOLDER holds node_modules, COMMAND is the server.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [folder, command, ...args] = process.argv.slice(2);
const load = createRequire(`${folder}/`);
const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");

const client = new Client({ name: "npm-client", version: "1" });
const underWay = new Map();

const actions = {
    describe: () => ({
        serverInfo: client.getServerVersion(),
        capabilities: client.getServerCapabilities(),
        instructions: client.getInstructions(),
    }),
    callTool: async (options, name, given) => {
        const progress = [];
        const onprogress = (told) => progress.push(told);
        const result = await client.callTool({ name, arguments: given }, undefined, { ...options, onprogress });
        return { ...result, progress };
    },
    listTools: (options) => client.listTools(undefined, options),
    listResources: (options) => client.listResources(undefined, options),
    listResourceTemplates: (options) => client.listResourceTemplates(undefined, options),
    readResource: (options, uri) => client.readResource({ uri }, options),
    listPrompts: (options) => client.listPrompts(undefined, options),
    getPrompt: (options, name, given) => client.getPrompt({ name, arguments: given }, options),
    ping: (options) => client.ping(options),
};

const tell = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

async function run({ id, do: action, with: given }) {
    const controller = new AbortController();
    underWay.set(id, controller);
    try {
        tell({ id, result: (await actions[action]({ signal: controller.signal, timeout: 60000 }, ...given)) ?? null });
    } catch (error) {
        tell({ id, error: { code: error.code ?? null, message: String(error.message ?? error) } });
    }
    underWay.delete(id);
}

const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
await client.connect(transport);
tell({ id: 0, result: {} });
for await (const line of createInterface({ input: process.stdin })) {
    const message = JSON.parse(line);
    if ("cancel" in message) underWay.get(message.cancel)?.abort("no longer wanted");
    else run(message);
}
await client.close();
