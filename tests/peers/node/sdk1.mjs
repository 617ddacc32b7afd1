// The names of the 1.x SDK.
export { Client } from "sdk1/client/index.js";
export { StreamableHTTPClientTransport as ClientTransport } from "sdk1/client/streamableHttp.js";
export { McpServer } from "sdk1/server/mcp.js";
export { StreamableHTTPServerTransport as ServerTransport } from "sdk1/server/streamableHttp.js";
export { InMemoryEventStore as ExampleStore } from "sdk1/examples/shared/inMemoryEventStore.js";
import { LoggingMessageNotificationSchema } from "sdk1/types.js";

export const onLog = (client, heard) =>
  client.setNotificationHandler(LoggingMessageNotificationSchema, (message) => heard(message.params.data));
export const notify = (extra, message) => extra.sendNotification(message);
export const closeRequest = (extra) => extra.closeSSEStream();
export const closeStandalone = (extra) => extra.closeStandaloneSSEStream();
