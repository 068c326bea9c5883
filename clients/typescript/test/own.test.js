// With a server of its own, whose program lies on the PATH: tests/e2e/test_client_typescript.py says where the places
// are (CORDON_PLACE). What it does when nothing is said, time-outs, questions, sessions, errors.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import * as cordon from 'cordon';

const place = process.env.CORDON_PLACE;
const ws = mkdtempSync(`${place}/ws/`);
const outside = `${place}/outside`;
const dispose = Symbol.asyncDispose;
process.chdir(ws);

const rules = `${process.env.HOME}/.config/cordon/rules`;
mkdirSync(rules, { recursive: true });
writeFileSync(`${rules}/my.rules`, 'prefix_rule(pattern=["rmdir"], decision="forbidden", justification="use rm -d")\n');
const client = await cordon.spawn(); // of most tests

/** Of a client with other options. */
const withClient = async (options, work) => {
  const other = await cordon.spawn(options);
  try {
    return await work(other);
  } finally {
    await other.close();
  }
};
const ended = async (one) => {
  for (const { processId } of (await one.call('process/list')).processes)
    await one.call('process/wait', { processId, until: 'closed' });
};

// --- what is said by nothing ---

test('safe when nothing is said', async () => {
  const { text, exitCode, denials } = await cordon.run(`echo in >f; echo out >${outside}/g; getent hosts example.org; pwd`);
  assert.deepEqual([text, exitCode], [`${ws}\n`, 0]);
  assert.deepEqual(denials.map(({ operation, path }) => [operation, path]).sort(),
    [['connect', null], ['write', `${outside}/g`]]);
  await assert.rejects(client.files.write(`${outside}/g`, ''), /Read-only/);
  await client.files.write('mine', 'text');
  assert.equal(`${await client.files.read(`${ws}/mine`)}`, 'text');
  await assert.rejects(client.files.inside('read-only').remove('mine'), /Read-only/);
  await assert.rejects(client.files.remove(''), /empty/);
  const answer = await client.sessions.exec(`echo out >${outside}/g`, { login: false });
  assert.equal(answer.denials[0].path, `${outside}/g`);
  const { error } = await client.patch(`*** Begin Patch\n*** Add File: ${outside}/g\n+x\n*** End Patch\n`);
  assert.match(error, /outside/);
  assert.ok(existsSync('f') && !existsSync(`${outside}/g`));
});

test('a client has a sandbox of its own', () => withClient({ sandbox: 'read-only' }, async (own) => {
  assert.equal((await own.run(['touch', 'w'])).exitCode, 1);
  assert.equal((await own.run(['touch', 'w'], { sandbox: { writable: ['.'] } })).exitCode, 0);
  mkdirSync('sub');
  assert.equal((await own.run('pwd', { cwd: 'sub' })).text, `${ws}/sub\n`);
  (await own.run(['touch', `${outside}/w`], { sandbox: 'none' })).check();
}));

test('variables', async () => {
  assert.equal((await client.run('echo $HOME-$X', { extraEnv: { X: 'x' } })).text, `${process.env.HOME}-x\n`);
  const { text } = await client.run(['/usr/bin/env'], { env: { A: 'b' } });
  assert.ok(text.includes('A=b') && !text.includes(process.env.HOME));
});

test('what is no option is not believed to count', async () => {
  for (const [work, said] of [
    [() => cordon.run(['touch', 'unmeant'], { profile: 'read-only' }), /no option profile/],
    [() => client.start(['touch', 'unmeant'], { timeout: 5 }), /no option timeout;/],
    [() => client.run(['touch', 'unmeant'], { timeout: 5 }), /no option timeout;.* timeoutMs/],
    [() => cordon.spawn({ sandbx: 'read-only' }), /no option sandbx/],
    [() => client.sessions.exec('touch unmeant', { timeout: 5 }), /no option timeout;/],
  ]) await assert.rejects(work, (error) => error instanceof TypeError && said.test(error.message));
  assert.ok(!existsSync('unmeant'));
  assert.equal((await client.run('ulimit -n', { maxFiles: 99, sandbox: { profile: undefined } })).text, '99\n');
});

// --- time-outs, cancellation, ends ---

test('time is over', async () => {
  const script = "trap 'echo bye; exit 3' TERM; echo begun; while :; do sleep 60 & wait; done";
  await assert.rejects(client.run(script, { timeoutMs: 300 }), (error) => {
    assert.ok(error instanceof cordon.TimedOut && /300 ms/.test(error.message));
    assert.ok(['begun\nbye\n', ''].includes(error.result.text)); // a busy machine may take longer to begin
    return true;
  });
  const command = await client.start(['sleep', '600']);
  await assert.rejects(client.call('process/wait', { processId: command.id }, { timeoutMs: 50 }), cordon.TimedOut);
  await command[dispose]();
  assert.equal((await command.wait()).signal, 'SIGKILL');
  await ended(client);
});

test('what is given up is ended', async () => {
  const stop = new AbortController();
  const work = client.run('echo begun; exec sleep 600', { signal: stop.signal });
  stop.abort(new Error('enough'));
  await assert.rejects(work, /enough/);
  await assert.rejects(client.run('true', { signal: stop.signal }), /enough/);
  await assert.rejects(client.run('exec sleep 600', { input: 7 }), TypeError);
  await ended(client);
});

test('much output is cut', async () => {
  const { stdout, stderr, lost } = await client.run('seq 300000; seq 3 >&2', { maxOutput: 10 });
  assert.deepEqual([`${stdout}`, `${stderr}`], ['1\n2\n3\n4\n5\n', '1\n2\n3\n']);
  assert.equal(lost, 1988895 - 10);
});

test('output that nobody reads does not fill the memory', async () => {
  const command = await client.start('head -c 40000000 /dev/zero');
  await command.wait();
  await client.call('process/wait', { processId: command.id, until: 'closed' });
  let kept = 0;
  let gone = 0;
  for await (const event of command) {
    if (event.type === 'output') kept += event.data.length;
    if (event.type === 'gap') gone += event.bytes;
  }
  assert.ok(kept <= 32 << 20 && kept + gone === 40000000);
});

test('lines and streams', async () => {
  const lines = async (script, of) => {
    const found = [];
    for await (const line of (await client.start(script)).lines(of)) found.push(line);
    return found;
  };
  assert.deepEqual(await lines("printf 'a\\303'; sleep 0.01; printf '\\244\\r\\n\\nb\\377'"), ['aä', '', 'b\ufffd']);
  assert.deepEqual(await lines('echo out; echo err >&2', 'stderr'), ['err']);
  const ready = await client.start("printf 'ready\\none\\ntwo'");
  await ready.wait();
  for await (const line of ready.lines()) if (line === 'ready') break;
  const rest = [];
  for await (const line of ready.lines()) rest.push(line);
  assert.deepEqual(rest, ['one', 'two']);
  const pieces = await lines('head -c 3000000 /dev/zero; echo; echo end');
  assert.equal(pieces.pop(), 'end');
  assert.ok(pieces.length > 1 && pieces.length < 4 && pieces.join('') === '\0'.repeat(3000000));
  const command = await client.start('seq 3');
  assert.equal(Buffer.concat(await Readable.from(command.output()).toArray()).toString(), '1\n2\n3\n');
});

test('input for who wants none', async () => {
  for (let i = 0; i < 5; i += 1) assert.equal((await client.run('true', { input: Buffer.alloc(1 << 20) })).exitCode, 0);
});

// --- errors ---

test('errors have classes and remedies', async () => {
  await assert.rejects(client.run(['touch', `${outside}/g`], { check: true }), (error) => {
    assert.ok(error instanceof cordon.CommandFailed && error.remedy === error.denials[0].remedy);
    assert.ok(error.message.startsWith('the command ended with 1 (touch') && error.message.includes(error.remedy));
    return true;
  });
  await assert.rejects(client.run("printf '\\033]0;gotcha\\a' >&2; exit 1", { check: true }), /\(\?\]0;gotcha\?\)$/);
  await assert.rejects(client.run('kill -9 $$', { check: true }), /was ended by SIGKILL/);
  await assert.rejects(client.run(['rmdir', 'd']), (error) => error instanceof cordon.Forbidden
    && error.code === -32600 && error.reason === 'forbidden' && error.message.includes('use rm -d'));
  await assert.rejects(client.files.read('/no/such'), (error) => error instanceof cordon.NotFound
    && error.message.startsWith('/no/such: No such file'));
  await assert.rejects(client.run('true', { sandbox: 'no-such' }), cordon.SystemRefused);
  await assert.rejects(client.run(['no-such']), /starting no-such: No such file/);
  await assert.rejects(client.run(['true'], { cwd: 'no-such' }), /starting true in no-such: No such file/);
  await assert.rejects(client.call('session/exec', { cmd: 3 }), (error) => error instanceof cordon.InvalidParams
    && error.data.path === '$.cmd' && error.name === 'InvalidParams');
  await assert.rejects(client.call('no/such'), cordon.UnknownMethod);
  await assert.rejects(client.sessions.write(99), (error) => error instanceof cordon.InvalidRequest
    && error.text.startsWith('write_stdin failed'));
  const command = await client.start(['sleep', '600'], { stdin: true });
  await command.write(Buffer.alloc(2 << 20));
  await assert.rejects(command.write(Buffer.alloc(2 << 20)), (error) => error instanceof cordon.LimitReached
    && error.remedy.startsWith('read its output'));
  await command[dispose]();
});

test('no program', async (t) => {
  symlinkSync('/bin/true', `${ws}/cordon`); // as a command may have put it there
  const { PATH } = process.env;
  t.after(() => {
    process.env.PATH = PATH;
  });
  for (const path of ['', '.', '::.', 'bin:/no/such']) {
    process.env.PATH = path;
    await assert.rejects(cordon.spawn(), cordon.ProgramNotFound);
  }
  await assert.rejects(cordon.spawn({ argv: ['/no/such', 'serve'] }), /starting \/no\/such: ENOENT/);
});

test('servers that cannot', async () => {
  for (const [script, said] of [['exit 1', /ended with status 1$/], ['kill -9 $$', /by SIGKILL$/],
    ['echo it is broken >&2; exit 3', /status 3, and said: it is broken$/],
    ["printf '\\033]0;gotcha\\a' >&2", /said: \?\]0;gotcha\?$/],
    ['echo hello; exec cat >/dev/null', /does not speak the protocol/]])
    await assert.rejects(cordon.spawn({ argv: ['sh', '-c', script] }),
      (error) => error instanceof cordon.Disconnected && said.test(error.message), script);
});

// By their numbers nobody can tell which is the youngest: those begin anew.
const serversHere = () => spawnSync('ps', ['-o', 'pid=,args=', '--ppid', process.pid], { encoding: 'utf8' }).stdout
  .split('\n').filter((line) => line.includes('serve')).map((line) => Number.parseInt(line, 10));

test('a server that dies', async () => {
  const before = serversHere();
  const own = await cordon.spawn();
  const command = await own.start(['sleep', '600']);
  process.kill(serversHere().find((pid) => !before.includes(pid)), 'SIGKILL');
  await assert.rejects(command.wait(), (error) => error instanceof cordon.ServerEnded && error.signal === 'SIGKILL');
  await assert.rejects(own.run('true'), cordon.ServerEnded);
  await command[dispose]();
  await own.close();
});

test('who does not answer', async () => {
  const silent = net.createServer();
  await new Promise((resolve) => {
    silent.listen(0, '127.0.0.1', resolve);
  });
  const url = `ws://127.0.0.1:${silent.address().port}`;
  await assert.rejects(cordon.connect(url, { token: '', timeoutMs: 100 }), cordon.TimedOut);
  silent.close();
  await assert.rejects(cordon.spawn({ argv: ['sleep', '600'], timeoutMs: 100 }), cordon.TimedOut);
});

// --- questions ---

test('a callback answers', async () => {
  const asked = [];
  const onQuestion = async (question) => {
    asked.push(question.kind);
    if (question.covers.includes(outside)) return { decision: 'denied', reason: 'not there' };
    return asked.length === 1 || 'approved';
  };
  const result = await cordon.run(`touch q; touch ${outside}/q`, { sandbox: 'read-only', onQuestion });
  assert.ok(existsSync('q') && !existsSync(`${outside}/q`) && result.exitCode === 1);
  assert.deepEqual(asked, ['held', 'held']);
});

test('a callback that fails is a no', async () => {
  const warned = new Promise((resolve) => {
    process.once('warning', resolve);
  });
  for (const answer of [() => { throw new Error('a bug'); }, () => 'of-course', () => undefined, () => ['y'],
    () => { throw undefined; }])
    assert.equal((await cordon.run('touch no', { sandbox: 'read-only', onQuestion: answer })).exitCode, 1);
  assert.ok(!existsSync('no'));
  assert.equal((await warned).message, 'a bug');
});

test('an answer is for its own connection', async () => {
  const answers = [];
  let asked = 0;
  let answer; // of the first question, when the second one is asked
  let isAnswered;
  const over = new Promise((resolve) => {
    isAnswered = resolve;
  });
  const sockets = [];
  const server = net.createServer((socket) => {
    sockets.push(socket);
    socket.on('data', (data) => {
      for (const line of data.toString().trim().split('\n')) {
        const { id, method, result } = JSON.parse(line);
        const tell = (message) => socket.write(`${JSON.stringify(message)}\n`);
        if (method === 'initialize') {
          tell({ id, result: { sessionId: 's' } });
          tell({ id: 1, method: 'approval/request', params: { approvalId: `${sockets.length}`, question: {} } });
        } else if (method === undefined) {
          answers.push([id, result.decision]);
          isAnswered();
        }
      }
    });
  });
  await new Promise((resolve) => {
    server.listen(`${place}/answers`, resolve);
  });
  const onQuestion = () => {
    asked += 1;
    if (asked === 1) {
      setImmediate(() => sockets[0].destroy());
      return new Promise((resolve) => {
        answer = resolve;
      });
    }
    answer(true);
    return new Promise((resolve) => {
      setImmediate(() => setImmediate(resolve, false));
    });
  };
  const other = await cordon.connect(`unix:${place}/answers`, { onQuestion });
  await over;
  await other.close();
  server.close();
  assert.deepEqual(answers, [[1, 'denied']]);
});

test('a question is withdrawn', async () => {
  let told;
  const asked = new Promise((resolve) => {
    told = resolve;
  });
  const onQuestion = (question, withdrawn) => {
    told(withdrawn);
    return new Promise(() => {});
  };
  await withClient({ sandbox: 'read-only', onQuestion }, async (own) => {
    const command = await own.start('touch never');
    const withdrawn = await asked;
    const aborted = new Promise((resolve) => {
      withdrawn.addEventListener('abort', resolve);
    });
    await command.terminate();
    await aborted;
  });
});

// --- sessions and patches ---

test('a session', async () => {
  const session = await client.sessions.start('echo hi; read x; echo got $x; read y',
    { login: false, shell: '/bin/sh', until: 'hi' });
  assert.ok(session.isRunning);
  assert.equal((await session.screen()).lines[0], 'hi');
  assert.match((await session.write('you\n', { until: 'got you' })).text, /got you/);
  await session[dispose]();
  assert.ok(!session.isRunning && await session.wait() === session.answer && await session.terminate() === session.answer);
  await assert.rejects(session.write('x'), /has ended/);
  const counting = await client.sessions.start('for i in 1 2 3; do echo $i; sleep 0.1; done; exit 5',
    { login: false, tty: false, yieldTimeMs: 250 });
  const outputs = [];
  for await (const answer of counting) outputs.push(answer.output);
  assert.deepEqual([Buffer.concat(outputs).toString(), counting.answer.exitCode], ['1\n2\n3\n', 5]);
});

test('a call that is given up takes nothing', async () => {
  assert.equal(`${(await client.sessions.exec('cat', { login: false, input: 'given\n' })).output}`, 'given\n');
  spawnSync('mkfifo', ['go']);
  const session = await client.sessions.start('cat go; exit 5', { login: false, tty: false, yieldTimeMs: 250 });
  const stop = new AbortController();
  const call = session.wait({ signal: stop.signal });
  setImmediate(() => stop.abort()); // when it is sent
  await assert.rejects(call, { name: 'AbortError' });
  writeFileSync('go', 'out\n');
  const { output, exitCode } = await session.wait();
  assert.deepEqual([`${output}`, exitCode], ['out\n', 5]);
});

test('what would be allowed', async () => {
  assert.equal((await client.explain({ path: 'f', access: 'write' })).allowed, true);
  assert.equal((await client.explain({ path: `${outside}/g`, access: 'write' })).allowed, false);
  assert.equal((await client.explain({ host: 'example.org' })).allowed, false);
  assert.ok((await client.explain({ host: 'example.org:443', sandbox: { allowHosts: ['example.org'] } })).allowed);
  assert.ok('command' in await client.explain({ argv: ['touch', 'f'] }));
});

test('patches', async () => {
  writeFileSync('p', 'a\nb\n');
  const patch = '*** Begin Patch\n*** Update File: p\n@@\n-b\n+c\n*** End Patch\n';
  assert.match((await client.patch(patch, { task: 'diff' })).diff, /\+c/);
  assert.equal(readFileSync('p', 'utf8'), 'a\nb\n');
  const { applied, files, error } = await client.patch(patch);
  assert.deepEqual([applied, files.map(({ path }) => path), error], [true, ['p'], null]);
  assert.match((await client.patch(patch.replace(': p', ': none'))).error, /line 2/);
});

test('a change layer', async () => {
  mkdirSync('layered');
  const here = { cwd: 'layered' };
  writeFileSync('layered/old', 'one\n');
  // what was changed just before a step begins is a conflict to be sure
  while (Date.now() < statSync('layered/old').ctimeMs + 100) await setTimeout(10);
  const layer = await client.layers.open({ ...here, name: 'ts' });
  assert.deepEqual([layer.name, layer.roots], ['ts', [`${ws}/layered`]]);
  (await client.run('echo two >>old; echo a >a; cp /bin/true tool', { ...here, layer })).check();
  const { output, changes: counts } = await client.sessions.exec('cat old', { ...here, layer, login: false });
  assert.deepEqual([`${output}`, counts.added], ['one\ntwo\n', 0]);
  assert.ok((await client.patch('*** Begin Patch\n*** Add File: p\n+x\n*** End Patch\n', { ...here, layer: 'ts' })).applied);
  assert.equal(`${await client.files.inside(undefined, { layer }).read('layered/p')}`, 'x\n');
  assert.ok(!existsSync('layered/p'));
  const { changes } = await layer.changes();
  const [a, old, p, tool] = changes;
  assert.deepEqual(changes.map(({ kind }) => kind), ['A', 'M', 'A', 'A']);
  assert.ok(tool.marks.length && !a.marks.length);
  assert.match((await layer.diff(old)).unified, /\+two\n/);
  assert.deepEqual([`${await layer.read(old)}`, `${await layer.read('layered/old', 'real')}`], ['one\ntwo\n', 'one\n']);
  await client.run('echo more >>a', { ...here, layer });
  const { done, left } = await layer.accept([a, old, 'layered/p']);
  assert.deepEqual([done.sort(), left.map(({ path, reason }) => [path, reason])],
    [[old.path, p.path], [[a.path, 'changed']]]);
  assert.deepEqual((await layer.accept({ all: true })).left.map(({ reason }) => reason), ['marked']);
  assert.deepEqual([readFileSync('layered/a', 'utf8'), existsSync('layered/tool')], ['a\nmore\n', false]);
  assert.deepEqual((await layer.undo()).done, [a.path]);
  assert.equal((await layer.drop({ all: true })).left.length, 0);
  assert.throws(() => layer.drop(), /what is meant/);
  // others of the same user may have some in /var/tmp
  const ofHere = async () => (await client.layers.list()).filter(({ roots }) => roots.some(({ path }) => path === layer.roots[0]));
  assert.deepEqual((await ofHere()).map(({ name }) => name), ['ts']);
  await layer.close({ keep: false });
  assert.deepEqual(await ofHere(), []);
});

test('what is declared is there', () => {
  const types = readFileSync(new URL('../index.d.ts', import.meta.url), 'utf8');
  const functions = [...types.matchAll(/^export function (\w+)/gm)].map(([, name]) => name);
  const classes = [...types.matchAll(/^export class (\w+)[^{]*{(?:}|(.*?)\n})/gms)];
  assert.deepEqual([...functions, ...classes.map(([, name]) => name)].sort(), Object.keys(cordon).sort());
  for (const [, name, text = ''] of classes) {
    const methods = [...text.matchAll(/^  (\w+)\(/gm)].map(([, method]) => method).filter((one) => one !== 'constructor');
    for (const method of methods) assert.equal(typeof cordon[name].prototype[method], 'function', `${name}.${method}`);
  }
});

test('the end', () => client.close());
