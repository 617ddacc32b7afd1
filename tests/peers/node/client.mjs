// A client on either SDK. `node client.mjs sdk1|sdk2 URL`
import { obey, say } from "./lines.mjs";

const [, , sdk, url] = process.argv;
const { Client, ClientTransport, onLog } = await import(`./${sdk}.mjs`);

const client = new Client({ name: "peer", version: "1" });
const transport = new ClientTransport(new URL(url), {
  reconnectionOptions: { initialReconnectionDelay: 200, maxReconnectionDelay: 400, reconnectionDelayGrowFactor: 1.5, maxRetries: 2 },
});
client.onerror = (error) => say({ problem: error.message });
onLog(client, (data) => say({ heard: data }));
await client.connect(transport);
say({ port: 0 });

await obey({
  call: async ({ tool }) => (await client.callTool({ name: tool, arguments: {} })).content[0].text,
  leave: () => transport.terminateSession().finally(() => client.close()),
});
