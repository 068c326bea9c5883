// Runs a command in a sandbox, shows what it writes as it comes, and what was refused: node run.js DIR COMMAND...
import { inspect } from 'node:util';

import { spawn } from 'cordon';

const [cwd, ...argv] = process.argv.slice(2);
const client = await spawn();
try {
  const command = await client.start(argv, { cwd });
  for await (const event of command)
    if (event.type === 'output') (event.stream === 'stderr' ? process.stderr : process.stdout).write(event.data);
  const { exitCode, denials } = await command.wait();
  for (const { operation, path, host, remedy } of denials) // a command may give names that control a terminal
    console.error(`refused: ${operation} ${inspect(path ?? host)} - ${remedy}`);
  process.exitCode = exitCode;
} finally {
  await client.close();
}
