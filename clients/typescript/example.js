// Runs a command in a sandbox and shows what it writes: node example.js URL FOLDER COMMAND...
import { connect, sandbox } from './src/index.js';

const [url, folder, ...argv] = process.argv.slice(2);
const client = await connect(url);
const command = await client.start(argv, folder, { sandbox: sandbox(folder) });

for await (const event of command) {
  if (event.type === 'output') (event.stream === 'stderr' ? process.stderr : process.stdout).write(event.data);
  if (event.type === 'exited') for (const denial of event.denials) console.error('refused:', denial);
}

process.exitCode = (await command.wait()).exitCode;
await client.close();
