// A server on either SDK, as its documentation builds one with sessions. `node server.mjs sdk1|sdk2 STORE`
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { obey, say } from "./lines.mjs";
import { CheckedStore, OrderedStore } from "./stores.mjs";

const [, , sdk, storeName] = process.argv;
const { McpServer, ServerTransport, ExampleStore, notify, closeRequest, closeStandalone } = await import(`./${sdk}.mjs`);
const makeStore = { example: ExampleStore, ordered: OrderedStore, checked: CheckedStore }[storeName];
const sessions = new Map();

const done = { content: [{ type: "text", text: "done" }] };
const log = (data) => ({ method: "notifications/message", params: { level: "info", data } });

function newServer(store) {
  const server = new McpServer({ name: "peer", version: "1" }, { capabilities: { logging: {} } });
  let news = 0;
  let release = () => {};
  const tool = (name, play) => server.registerTool(name, { description: name }, async (extra) => (await play(extra), done));

  // `released` is asked for before anything is sent: the client may answer at once.
  const waiting = async (extra, between) => {
    const released = new Promise((resolve) => (release = resolve));
    await notify(extra, log("before"));
    await between(extra);
    await released;
    await notify(extra, log("after")).catch(() => {}); // without a store there is nowhere to go
  };
  tool("count", async (extra) => {
    for (const number of [1, 2, 3]) await notify(extra, log(`count ${number}`));
  });
  tool("announce", () => server.server.notification(log(`news ${(news += 1)}`)));
  tool("wait", (extra) => waiting(extra, () => {}));
  tool("poll", (extra) => waiting(extra, closeRequest));
  tool("release", () => release());
  tool("close_standalone", closeStandalone);
  tool("forget_events", () => store.forget());
  return server;
}

async function openSession() {
  const store = makeStore && new makeStore();
  const transport = new ServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: store,
    retryInterval: 200,
    onsessioninitialized: (id) => void sessions.set(id, transport),
    onsessionclosed: (id) => void sessions.delete(id),
  });
  transport.onerror = (error) => say({ problem: error.message });
  await newServer(store).connect(transport);
  return transport;
}

const http = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = chunks.length ? JSON.parse(Buffer.concat(chunks)) : undefined;
  const id = request.headers["mcp-session-id"];
  if (id !== undefined && !sessions.has(id)) {
    response.writeHead(404, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", error: { code: -32001, message: "Session not found" }, id: null }));
    return;
  }
  const transport = id === undefined ? await openSession() : sessions.get(id);
  await transport.handleRequest(request, response, body);
});
process.on("unhandledRejection", () => {}); // an answer with nowhere to go is the play of some scenes
http.listen(0, "127.0.0.1", () => say({ port: http.address().port }));
await obey({});
