// Runs a command in a sandbox and shows what it writes: node example.js URL DIR COMMAND...
import { connect, sandbox } from './src/index.js';

const [url, dir, ...argv] = process.argv.slice(2);
const client = await connect(url);
const command = await client.start(argv, dir, { sandbox: sandbox(dir) });

for await (const event of command) {
  if (event.type === 'output') (event.stream === 'stderr' ? process.stderr : process.stdout).write(event.data);
  if (event.type === 'exited') for (const denial of event.denials) console.error('refused:', denial);
}

process.exitCode = (await command.wait()).exitCode;
await client.close();
