// The names of the 2.x SDK. Its example of a store is that of 1.x, and in no package of 2.x.
export { Client, StreamableHTTPClientTransport as ClientTransport } from "@modelcontextprotocol/client";
export { McpServer } from "@modelcontextprotocol/server";
export { NodeStreamableHTTPServerTransport as ServerTransport } from "@modelcontextprotocol/node";
export { InMemoryEventStore as ExampleStore } from "sdk1/examples/shared/inMemoryEventStore.js";

export const onLog = (client, heard) =>
  client.setNotificationHandler("notifications/message", (message) => heard(message.params.data));
export const notify = (ctx, message) => ctx.mcpReq.notify(message);
export const closeRequest = (ctx) => ctx.http.closeSSE();
export const closeStandalone = (ctx) => ctx.http.closeStandaloneSSE();
