// A client on either SDK. `node client.mjs sdk1|sdk2 URL [2026]`, which asks for the revision without sessions
import { obey, say } from "./lines.mjs";

const [, , sdk, url, revision] = process.argv;
const { Client, ClientTransport, onLog } = await import(`./${sdk}.mjs`);

const options = revision === "2026" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client({ name: "peer", version: "1" }, options);
let subscription;
const transport = new ClientTransport(new URL(url), {
  reconnectionOptions: { initialReconnectionDelay: 200, maxReconnectionDelay: 400, reconnectionDelayGrowFactor: 1.5, maxRetries: 2 },
});
client.onerror = (error) => say({ problem: error.message });
onLog(client, (data) => say({ heard: data }));
if (revision === "2026") {
  client.setNotificationHandler("notifications/tools/list_changed", () => say({ heard: "tools changed" }));
}
await client.connect(transport);
say({ port: 0 });

await obey({
  call: async ({ tool }) => (await client.callTool({ name: tool, arguments: {} })).content[0].text,
  listen: async () => void (subscription = await client.listen({ toolsListChanged: true })),
  unlisten: () => subscription.close(),
  leave: () => transport.terminateSession().finally(() => client.close()),
});
