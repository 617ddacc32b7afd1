// A server of the 2026-07-28 revision, without sessions. `node modern.mjs`
import { createServer } from "node:http";
import { McpServer, createMcpHandler } from "@modelcontextprotocol/server";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { obey, say } from "./lines.mjs";

const done = { content: [{ type: "text", text: "done" }] };

function newServer() {
  const server = new McpServer({ name: "peer", version: "1" }, { capabilities: { tools: { listChanged: true } } });
  const tool = (name, play) => server.registerTool(name, { description: name }, async (ctx) => (await play(ctx), done));
  tool("count", () => {});
  tool("announce", () => handler.notify.toolsChanged());
  return server;
}

const handler = createMcpHandler(newServer, { responseMode: "sse", onerror: (error) => say({ problem: error.message }) });
const http = createServer(toNodeHandler(handler));
http.listen(0, "127.0.0.1", () => say({ port: http.address().port }));
await obey({});
