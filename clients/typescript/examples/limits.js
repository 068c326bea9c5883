// Tests of a project with a time limit and one host, then a patch: node limits.js DIR COMMAND...
import { CommandFailed, TimedOut, spawn } from 'cordon';

const PATCH = `*** Begin Patch
*** Add File: RESULT
+all passed
*** End Patch
`;

const [cwd, ...argv] = process.argv.slice(2);
const client = await spawn({ sandbox: { allowHosts: ['registry.example:443'] } });
try {
  const { text } = await client.run(argv, { cwd, timeoutMs: 60000, check: true });
  process.stdout.write(text);
  const { files } = await client.patch(PATCH, { cwd });
  console.log('patched:', files.map(({ path }) => path));
} catch (error) {
  if (!(error instanceof CommandFailed || error instanceof TimedOut)) throw error;
  console.error(error.message);
  process.exitCode = error instanceof TimedOut ? 124 : error.result.exitCode;
} finally {
  await client.close();
}
