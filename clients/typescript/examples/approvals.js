// Runs a command that may write nothing, and asks whenever it wants to: node approvals.js DIR COMMAND...
// What the sandbox refuses waits for the answer, and a yes lets the command carry on. No answer is a no.
import { createInterface } from 'node:readline';

import { run } from 'cordon';

const lines = createInterface({ input: process.stdin });
const answers = lines[Symbol.asyncIterator]();
let last = Promise.resolve(false);

/** One by one: several questions may be open at once, and an answer is for the one that is shown. */
function ask({ reason, covers }, withdrawn) {
  last = last.then(async () => {
    if (withdrawn.aborted) return false;
    console.log(`${reason}\na yes covers: ${covers} [y/N]`);
    return (await answers.next()).value === 'y';
  });
  return last;
}

const [cwd, ...argv] = process.argv.slice(2);
try {
  const { text, stderr, exitCode } = await run(argv, { cwd, sandbox: 'read-only', onQuestion: ask });
  process.stdout.write(text + stderr);
  process.exitCode = exitCode;
} finally {
  lines.close();
}
