// Against a real server: tests/e2e/test_client_typescript.py starts it and says by the environment
// where it is (CORDON_URL), what it is (CORDON_SERVER), and which directories there are (CORDON_PLACE).
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { test } from 'node:test';

import { CordonError, Disconnected, InputClosed, RpcError, connect, spawn } from 'cordon';

const { CORDON_URL: url, CORDON_SERVER: server, CORDON_PLACE: place } = process.env;
const ws = `${place}/ws`;
const types = readFileSync(new URL('../index.d.ts', import.meta.url), 'utf8');

const withClient = (work, options) => async () => {
  const client = await connect(url, options);
  try {
    await work(client);
  } finally {
    await client.close();
  }
};
const shell = (client, script, options) => client.start(script, { cwd: ws, ...options });
const first = async (events) => (await events.next()).value.data.toString();

/** Between client and server, to be cut. */
async function openProxy() {
  const target = Number(new URL(url).port);
  const sockets = new Set();
  const proxy = {
    isClosed: false,
    cut() {
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    },
  };
  const listener = net.createServer((socket) => {
    if (proxy.isClosed) {
      socket.destroy();
      return;
    }
    const other = net.connect(target, '127.0.0.1');
    for (const [from, to] of [[socket, other], [other, socket]]) {
      sockets.add(from);
      from.on('error', () => {});
      from.on('close', () => to.destroy());
      from.pipe(to);
    }
  });
  await new Promise((resolve) => {
    listener.listen(0, '127.0.0.1', resolve);
  });
  proxy.url = `ws://127.0.0.1:${listener.address().port}`;
  proxy.close = () => {
    proxy.cut();
    listener.close();
  };
  return proxy;
}

test('events come in order', withClient(async (client) => {
  assert.equal(client.info.platformOs, 'linux');
  const command = await shell(client, 'echo a; echo b >&2; exit 7');
  const events = [];
  for await (const event of command) events.push(event);
  const output = events.filter(({ type }) => type === 'output').map((one) => `${one.stream} ${one.data}`);
  assert.deepEqual(output.sort(), ['stderr b\n', 'stdout a\n']);
  assert.deepEqual(events.slice(-2).map(({ type }) => type), ['exited', 'closed']);
  assert.equal((await command.wait()).exitCode, 7);
}));

test('input and output', withClient(async (client) => {
  const command = await shell(client, 'sort; echo done >&2', { stdin: true });
  const result = await command.communicate('b\na\n'.repeat(50000));
  assert.equal(result.stdout.toString(), 'a\n'.repeat(50000) + 'b\n'.repeat(50000));
  assert.equal(result.stderr.toString(), 'done\n');
  assert.equal(result.lost, 0);
  const closed = await shell(client, 'cat');
  await assert.rejects(closed.write('x'), InputClosed);
}));

test('a terminal', withClient(async (client) => {
  const command = await shell(client, 'stty size; read x; stty size; echo got $x', { tty: true, size: [30, 100] });
  let seen = '';
  for await (const event of command) {
    if (event.type === 'output') seen += event.data;
    if (seen === '30 100\r\n' && event.type === 'output') {
      await command.resize(40, 120);
      await command.write('y\n');
    }
  }
  assert.match(seen, /40 120\r\ngot y\r\n/);
}));

test('signals and the end', withClient(async (client) => {
  const command = await shell(client, "trap 'exit 5' INT; echo ready; while :; do sleep 60 & wait; done");
  assert.equal(await first(command.events()), 'ready\n');
  await command.interrupt();
  assert.equal((await command.wait()).exitCode, 5);
  const other = await shell(client, 'sleep 600');
  assert.equal(await other.terminate(), true);
  assert.equal((await other.wait()).exitCode, 137);
  assert.equal(await other.terminate(), false);
  await assert.rejects(client.start(['/does/not/exist']), { code: RpcError.INTERNAL });
}));

test('a sandbox holds and tells', withClient(async (client) => {
  const box = { workspace: ws };
  const command = await shell(client, `echo in > f; echo out > ${place}/outside/f`, { sandbox: box });
  const { exit } = await command.communicate();
  assert.equal(command.sandboxType, 'linuxSeccomp');
  assert.ok(exit.sandboxDenied);
  assert.equal(readFileSync(`${ws}/f`, 'utf8'), 'in\n');
  assert.ok(!existsSync(`${place}/outside/f`));
  const inside = client.files.inside(box);
  assert.equal((await inside.read(`${ws}/f`)).toString(), 'in\n');
  await assert.rejects(inside.write(`${place}/outside/f`, ''), /Read-only file system/);
}));

test('a sandbox that reaches hosts', withClient(async (client) => {
  const box = { allowHosts: ['good.test', '*.good.test:443'] };
  const { exit } = await (await shell(client, 'getent hosts bad.test', { sandbox: box })).communicate();
  assert.deepEqual(exit.denials.map(({ host, reason }) => [host, reason]), [['bad.test', 'not_allowed']]);
}));

test('files', withClient(async (client) => {
  const files = client.files.inside('none');
  await files.makeDirectory(`${ws}/d/e`);
  await files.write(`${ws}/d/f é`, 'hello');
  assert.equal((await files.read(`${ws}/d/f é`)).toString(), 'hello');
  assert.equal((await files.metadata(`${ws}/d/f é`)).size, 5);
  await files.copy(`${ws}/d`, `${ws}/c`, { recursive: true });
  assert.deepEqual((await files.list(`${ws}/c`)).map(({ name }) => name).sort(), ['e', 'f é']);
  assert.deepEqual((await files.walk(`${ws}/c`)).files, [`${ws}/c/f é`]);
  assert.equal(await files.realPath(`${ws}/c`), `${ws}/c`);
  await files.remove(`${ws}/c`);
  await assert.rejects(files.read(`${ws}/c/f`), { code: RpcError.NOT_FOUND });
  const data = randomBytes(3 << 20);
  const out = await files.open(`${ws}/big`, 'replace');
  await out.write(0, data);
  await out.close();
  const back = await files.open(`${ws}/big`);
  const parts = [];
  for (let i = 0; i < 4; i += 1) parts.push(await back.read(i << 20));
  await back.close();
  assert.ok(Buffer.concat(parts).equals(data));
  const large = Buffer.concat(Array(5).fill(data)); // more than one frame
  await files.write(`${ws}/large`, large);
  assert.ok((await files.read(`${ws}/large`)).equals(large));
  const waiting = files.waitFor([`${ws}/later`]);
  await client.call('environment/status'); // the watch stands
  writeFileSync(`${ws}/later`, '');
  assert.equal(await waiting, true);
  assert.equal(await files.waitFor([ws]), false);
}));

test('calls of a model', withClient(async (client) => {
  let answer = await client.sessions.exec('echo hi; read x; echo got $x', {
    cwd: ws, tty: true, login: false, shell: '/bin/sh', screen: true, until: { text: 'hi' },
  });
  const { sessionId } = answer;
  assert.equal(answer.exitCode, null);
  assert.deepEqual((await client.sessions.list()).map((one) => one.sessionId), [sessionId]);
  assert.equal((await client.sessions.screen(sessionId)).lines[0], 'hi');
  answer = await client.sessions.write(sessionId, 'you\n', { until: { text: 'got you' } });
  if (answer.sessionId !== null) answer = await client.sessions.wait(sessionId);
  assert.equal(answer.exitCode, 0);
  answer = await client.sessions.exec('sleep 600', { cwd: ws, yieldTimeMs: 250 });
  assert.equal((await client.sessions.terminate(answer.sessionId, { graceMs: 0 })).sessionId, null);
}));

test('a lost connection loses nothing', async () => {
  const proxy = await openProxy();
  const client = await connect(proxy.url);
  const command = await shell(client, 'echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; read x; '
    + 'echo got $x; exit 3', { stdin: true });
  const events = command.events();
  assert.equal(await first(events), 'one\n');
  const { sessionId } = client;
  proxy.isClosed = true;
  proxy.cut();
  writeFileSync(`${ws}/go`, '');
  proxy.isClosed = false;
  assert.equal(await first(events), 'two\n');
  assert.equal(client.sessionId, sessionId);
  proxy.cut();
  await command.write('you\n');
  let rest = '';
  for await (const event of events) if (event.type === 'output') rest += event.data;
  assert.equal(rest, 'got you\n');
  assert.equal((await command.wait()).exitCode, 3);
  await client.close();
  proxy.close();
});

test('starts survive a cut', async () => {
  const proxy = await openProxy();
  const client = await connect(proxy.url);
  const numbers = [...Array(24).keys()];
  const starts = numbers.map((number) => shell(client, `echo ${number} >> ran; echo ${number}`));
  await Promise.race(starts);
  proxy.cut();
  const ended = await Promise.all(starts.map(async (start) => (await start).communicate()));
  assert.deepEqual(ended.map(({ stdout }) => Number(stdout)), numbers);
  assert.deepEqual(readFileSync(`${ws}/ran`, 'utf8').trim().split('\n').map(Number).sort((a, b) => a - b), numbers);
  await client.close();
  proxy.close();
});

test('a session can be taken up', async () => {
  const client = await connect(url, { reconnectForMs: 0 });
  const command = await shell(client, 'echo one; read x; echo two', { stdin: true });
  assert.equal(await first(command.events()), 'one\n');
  await client.close();
  await assert.rejects(command.wait(), Disconnected);
  await assert.rejects(client.call('environment/status'), Disconnected);
  const other = await connectAgain(client.sessionId);
  const again = await other.takeUp(command.id);
  await again.write('\n');
  assert.equal((await again.communicate()).stdout.toString(), 'one\ntwo\n');
  await other.close();
});

/** Until the server has noticed that the other connection is gone. */
async function connectAgain(resume) {
  for (;;) {
    try {
      return await connect(url, { resume });
    } catch (error) {
      if (error.code !== RpcError.SESSION_ATTACHED) throw error;
    }
  }
}

test('what a process does', withClient(async (client) => {
  const options = { sandbox: {}, trace: ['files'] };
  const command = await shell(client, 'mkdir t1; read word; mkdir $word', { ...options, stdin: true });
  const seen = [];
  for await (const event of command.timeline()) {
    seen.push([event.operation, event.path]);
    if (seen.length === 1) await command.write('t2\n');
  }
  assert.deepEqual(seen, [['create', `${ws}/t1`], ['create', `${ws}/t2`]]);
  const answer = await client.sessions.exec('mkdir t3', { cwd: ws, ...options, login: false });
  for await (const event of client.timeline(answer.processId)) assert.equal(event.path, `${ws}/t3`);
}));

/** The fields that index.d.ts says. */
const fieldsOf = (type) => {
  const [, base, body] = new RegExp(`interface ${type} (?:extends (\\w+) )?{(.*?)\n}`, 's').exec(types);
  const own = [...body.matchAll(/^  (\w+)\??:/gm)].map(([, field]) => field);
  return [...(base ? fieldsOf(base) : []), ...own].sort();
};

test('questions have the fields that their types say, and the answer counts', withClient(async (client) => {
  const asked = [];
  client.handlers['approval/request'] = (request) => {
    asked.push(request);
    return { decision: 'approved', reason: 'why not' };
  };
  const { questions: [put] } = await client.call('exec/run', {
    runId: 'r', argv: ['mkdir', 'asked'], cwd: `file://${ws}`, sandbox: { profile: 'read-only', watch: 'ask' },
  });
  const [request] = asked;
  assert.ok(existsSync(`${ws}/asked`));
  assert.equal(request.question.kind, 'held');
  for (const [value, type] of [[request, 'ApprovalRequest'], [request.question, 'Question'],
    [put, 'PutQuestion'], [put.answer, 'QuestionAnswer']])
    assert.deepEqual(Object.keys(value).sort(), fieldsOf(type));
  assert.deepEqual(put.answer, { decision: 'approved', by: 'client', reason: 'why not' });
}));

test('a server of our own', async () => {
  const client = await spawn({ argv: [server, '--listen', 'stdio'] });
  const command = await shell(client, 'cat; exit 2', { stdin: true });
  assert.equal((await command.communicate('hello')).stdout.toString(), 'hello');
  assert.equal((await command.wait()).exitCode, 2);
  await client.close();
});

test('what cannot be connected to is an error', async () => {
  await assert.rejects(connect('http://127.0.0.1:1'), CordonError);
  await assert.rejects(connect(`unix:${place}/none`), Disconnected);
});
