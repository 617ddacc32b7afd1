// Orders come as JSON lines on stdin, answers go out as JSON lines on stdout. The process ends when stdin does.
import { createInterface } from "node:readline";

export const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

export async function obey(actions) {
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, action, ...rest } = JSON.parse(line);
    Promise.resolve()
      .then(() => actions[action](rest))
      .then((result) => say({ id, result: result ?? null }), (error) => say({ id, error: String(error?.message ?? error) }));
  }
  process.exit(0);
}
