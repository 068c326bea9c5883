// What a model does with a terminal: starts a program, looks at its screen, types, and ends it: session.ts DIR
// (Node 24 runs it as it is; `await using` ends what was begun, whatever happens.)
import { spawn, type Answer } from 'cordon';

await using client = await spawn();
await using session = await client.sessions.start('python3 -q', { cwd: process.argv[2], until: '>>> ' });
const answer: Answer = await session.write('6 * 7\n', { until: '42' });
console.log(answer.text);
console.log('the screen shows:', (await session.screen()).lines.slice(0, 2));
await session.write('exit()\n');
console.log('ended with', (await session.wait()).exitCode);
