// The connection: calls and their answers, events to where they belong, and a new connection to the
// same session when one is lost.
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

import { Disconnected, RpcError, SessionAttached, SystemRefused, TimedOut, rpcError } from './errors.js';
import { Files } from './files.js';
import { Layers, layerToWire } from './layers.js';
import { Process } from './process.js';
import { serve } from './program.js';
import { only, toPath, toUri, toWire } from './sandbox.js';
import { Sessions } from './sessions.js';
import { openCommand, openUrl } from './transport.js';

const RETRY_DELAY_MS = 100;
const TIMELINE_WAIT_MS = 60000; // of one session/events
const TAKEN_BACK = ['session/exec', 'session/write', 'session/wait', 'session/events'];
const OPTIONS = ['sandbox', 'onQuestion', 'timeoutMs', 'name'];
const OF_START = [ // the last ones are fields of process/start
  'cwd', 'env', 'extraEnv', 'sandbox', 'layer', 'tty', 'stdin', 'size', 'processId', 'arg0', 'trace', 'envPolicy', 'metadata',
  'enforceManagedNetwork', 'managedNetwork', 'networkProxy', 'maxMemoryBytes', 'maxCpuTimeMs', 'maxPids', 'maxFileBytes',
  'maxFiles', 'maxAddressSpaceBytes', 'spoolBytes',
];
const OF_RUN = ['input', 'timeoutMs', 'signal', 'check', 'maxOutput', ...OF_START];
const ALL_BUT_SECRETS = {
  inherit: 'all', ignoreDefaultExcludes: false, exclude: [], set: {}, includeOnly: [],
};

/** Of what a program's own functions throw, which may be anything. */
const warn = (error) => process.emitWarning(error instanceof Error ? error : inspect(error));

export async function connect(url, options = {}) {
  only(options, [...OPTIONS, 'token', 'reconnectForMs', 'resume']);
  const client = new Client((signal) => openUrl(url, options.token, signal), options);
  await client.open(options.resume ?? null);
  return client;
}

export async function spawn(options = {}) {
  only(options, [...OPTIONS, 'argv']);
  const client = new Client(() => openCommand(options.argv ?? serve()), { ...options, reconnectForMs: 0 });
  await client.open(null);
  return client;
}

export async function run(argv, options = {}) {
  const { onQuestion, ...more } = options;
  const client = await spawn({ onQuestion });
  try {
    return await client.run(argv, more);
  } finally {
    await client.close();
  }
}

export class Client {
  sessionId = '';
  info = {};
  files = new Files(this);
  sessions = new Sessions(this);
  layers = new Layers(this);
  handlers = {}; // by method, for other requests of the server
  onEvent = () => {}; // other notifications
  #dial;
  #name;
  #reconnectForMs;
  #timeoutMs;
  #transport = null;
  #ready; // a promise: a session is open
  #setReady = null; // while it is not kept
  #nextId = 1;
  #answers = new Map();
  #processes = new Map();
  #questions = new Map(); // AbortControllers by approvalId
  #failure = null; // for good
  #gone = null; // why the connection is
  #watchId = 0;
  #watcher = null;

  constructor(dial, options = {}) {
    this.#dial = dial;
    this.#name = options.name ?? 'cordon-client';
    this.#reconnectForMs = options.reconnectForMs ?? 45000;
    this.#timeoutMs = options.timeoutMs ?? 30000;
    this.sandbox = options.sandbox; // what calls have that say none
    this.onQuestion = options.onQuestion;
    this.#unready();
  }

  #unready() {
    if (this.#setReady) return;
    this.#ready = new Promise((resolve) => {
      this.#setReady = () => {
        this.#setReady = null;
        resolve();
      };
    });
  }

  async close() {
    const transport = this.#transport;
    this.#end(new Disconnected('the client was closed'));
    this.#lost();
    await transport?.close();
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }

  // --- calls ---

  async call(method, params = {}, { signal, timeoutMs } = {}) {
    signal?.throwIfAborted();
    if (!this.#failure) await this.#ready;
    if (this.#failure) throw this.#failure;
    if (!signal && timeoutMs === undefined) return this.#request(method, params);
    const id = this.#nextId;
    const answer = this.#request(method, params);
    let timer;
    let onAbort;
    const end = new Promise((resolve, reject) => {
      if (timeoutMs !== undefined)
        timer = setTimeout(() => reject(new TimedOut(`no answer to ${method} within ${timeoutMs} ms`)), timeoutMs);
      onAbort = () => reject(signal.reason);
      signal?.addEventListener('abort', onAbort);
    });
    try {
      return await Promise.race([answer, end]);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      answer.catch(() => {}); // of the other one
      if (this.#answers.delete(id) && TAKEN_BACK.includes(method)) // the output in it is for the next call
        this.#request('session/cancel', { requestId: id }).catch(() => {});
    }
  }

  #request(method, params) {
    const id = this.#nextId;
    this.#nextId += 1;
    if (!this.#transport) return Promise.reject(this.#gone ?? new Disconnected('the connection is gone'));
    return new Promise((resolve, reject) => {
      this.#answers.set(id, { resolve, reject });
      this.#send({ id, method, params });
    });
  }

  #send(message) {
    this.#transport?.send(JSON.stringify(message));
  }

  // --- processes ---

  /** Of the server's own folder, or of what is absolute or counts from that. */
  uriOf(place = '') {
    const text = String(place);
    return text.startsWith('file:') ? text : toUri(path.resolve(toPath(this.info.cwd ?? 'file:///'), text));
  }

  sandboxOf(sandbox, layer) {
    const given = this.given(sandbox, layer);
    if (layer && given === undefined && !this.onQuestion) return null; // of a layer that others made: its own
    return toWire(given, Boolean(this.onQuestion));
  }

  /** In a layer, what that was made with. */
  given(sandbox, layer) {
    return sandbox ?? layer?.sandbox ?? this.sandbox;
  }

  async run(argv, options = {}) {
    only(options, OF_RUN);
    const { input, check = false, maxOutput, signal, timeoutMs, ...more } = options;
    signal?.throwIfAborted();
    const process = await this.start(argv, { ...more, stdin: input !== undefined });
    try {
      const result = await process.communicate(input, { maxOutput, signal, timeoutMs });
      return check ? result.check() : result;
    } finally {
      if (!process.isClosed) process.terminate().catch(() => {}); // it was given up
    }
  }

  async start(argv, options = {}) {
    only(options, OF_START);
    const { cwd, env, extraEnv, sandbox, layer, tty = false, stdin = false, size, processId, ...more } = options;
    const process = new Process(this, processId ?? randomUUID());
    const params = {
      processId: process.id, argv: typeof argv === 'string' ? ['/bin/sh', '-c', argv] : argv,
      cwd: this.uriOf(cwd), env: { ...env, ...extraEnv }, tty, pipeStdin: stdin,
      sandbox: this.sandboxOf(sandbox, layer), ...(layer && { layer: layerToWire(layer) }), ...more,
    };
    if (!env && !more.envPolicy) params.envPolicy = ALL_BUT_SECRETS;
    if (size) [params.rows, params.columns] = size;
    this.#processes.set(process.id, process); // its events may come before the answer
    try {
      await this.#start(process, params);
    } catch (error) {
      this.forget(process);
      if (!(error instanceof SystemRefused)) throw error;
      const where = cwd === undefined ? '' : ` in ${cwd}`; // it says neither of what
      throw rpcError({ ...error, message: `starting ${params.argv[0]}${where}: ${error.text}` });
    }
    return process;
  }

  async patch(patch, { cwd, sandbox, layer, task = 'apply' } = {}) {
    const given = this.given(sandbox, layer);
    const { applied, files, diff, error } = await this.call('patch/apply', {
      patch, cwd: this.uriOf(cwd), task, ...(layer && { layer: layerToWire(layer) }),
      sandbox: layer && given === undefined ? null : toWire(given),
    });
    return { applied, files, diff, error: error && error.message };
  }

  async explain({ cwd, sandbox, path: file, access, host, argv } = {}) {
    const question = { path: file, access, host, argv };
    for (const name of Object.keys(question)) if (question[name] === undefined) delete question[name];
    const { answer } = await this.call('permissions/explain', {
      cwd: this.uriOf(cwd), sandbox: toWire(sandbox ?? this.sandbox), ...question,
    });
    return answer;
  }

  /** Once, also when the connection is lost before the answer: the server knows the id then. */
  async #start(process, params) {
    let answer;
    try {
      answer = await this.call('process/start', params);
      process.hasStarted = true;
    } catch (error) {
      if (!(error instanceof Disconnected)) throw error;
      answer = await this.#startAgain(process, params);
    }
    process.sandboxType = answer.sandboxType ?? 'none';
    process.warnings = answer.warnings ?? [];
  }

  async #startAgain(process, params) {
    try {
      const answer = await this.call('process/start', params);
      process.hasStarted = true;
      return answer;
    } catch (error) {
      if (!error.message.includes('already exists')) throw error;
    }
    process.hasStarted = true;
    await process.catchUp(); // answered when it has started, or could not
    const { processes } = await this.call('process/list');
    return processes.find((one) => one.processId === process.id);
  }

  /** A process of this session that another client started, with what is retained of its output. */
  async takeUp(processId) {
    const process = new Process(this, processId);
    process.hasStarted = true;
    this.#processes.set(processId, process);
    await process.catchUp();
    return process;
  }

  /** What a process did that was started with `trace`, event by event until it is closed. What was not
   * kept until it was read is one { event: 'lost', count }. */
  async* timeline(processId, after = 0) {
    for (let afterSeq = after; ;) {
      const page = await this.call('session/events', { processId, afterSeq, waitMs: TIMELINE_WAIT_MS });
      if (page.dropped) yield { event: 'lost', count: page.dropped };
      yield* page.events;
      if (page.closed && !page.events.length) return;
      afterSeq = page.nextSeq - 1;
    }
  }

  forget(process) {
    this.#processes.delete(process.id);
  }

  // --- the connection ---

  async open(resume) {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new TimedOut(`the server did not answer within ${this.#timeoutMs} ms`)),
      this.#timeoutMs);
    try {
      await this.#open(resume, late.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  async #open(resume, late) {
    const transport = await this.#dial(late);
    let isOpen = false;
    this.#transport = transport;
    transport.onText = (text) => this.#sort(JSON.parse(text));
    transport.onEnd = (error) => {
      this.#lost(error);
      if (isOpen) this.#reconnect();
    };
    let answer;
    try {
      const isLate = new Promise((_, reject) => {
        late.addEventListener('abort', () => reject(late.reason), { once: true });
      });
      answer = await Promise.race([
        this.#request('initialize', { clientName: this.#name, resumeSessionId: resume }), isLate]);
      this.#send({ method: 'initialized', params: {} });
    } catch (error) {
      this.#transport = null;
      this.#answers.clear();
      transport.onEnd = () => {};
      transport.drop();
      throw error;
    }
    isOpen = true;
    this.sessionId = answer.sessionId;
    this.info = answer.environmentInfo ?? {};
    this.#setReady?.();
  }

  #lost(error) {
    this.#transport = null;
    this.#gone = error instanceof Disconnected ? error
      : new Disconnected(`the connection is gone: ${error?.message ?? 'closed'}`);
    if (!this.#failure) this.#unready();
    for (const { reject } of this.#answers.values()) reject(this.#gone);
    this.#answers.clear();
    for (const question of this.#questions.values()) question.abort(this.#gone);
    this.#watcher?.(false);
  }

  async #reconnect() {
    const deadline = Date.now() + this.#reconnectForMs;
    for (;;) {
      if (this.#failure) return;
      if (Date.now() >= deadline) {
        this.#end(this.#gone);
        return;
      }
      try {
        await this.open(this.sessionId);
        break;
      } catch (error) {
        if (error instanceof RpcError && !(error instanceof SessionAttached)) {
          this.#end(new Disconnected(`the session is gone: ${error.message}`));
          return;
        }
        this.#gone = new Disconnected(`the connection is gone, and not to be had again: ${error.message}`);
      }
      await sleep(RETRY_DELAY_MS);
    }
    for (const process of [...this.#processes.values()].filter((one) => one.hasStarted)) // else its start asks
      process.catchUp().catch((error) => {
        if (error instanceof Disconnected) return; // and once more, or the end
        process.fail(error);
        this.forget(process);
      });
  }

  #end(error) {
    if (this.#failure) return;
    this.#failure = error;
    for (const process of this.#processes.values()) process.fail(error);
    this.#processes.clear();
    this.#setReady?.(); // the caller that waits finds the failure
  }

  // --- messages ---

  #sort(message) {
    if (message.method === undefined) this.#takeAnswer(message);
    else if (message.id !== undefined) this.#answer(message);
    else this.#takeEvent(message.method, message.params ?? {});
  }

  #takeAnswer({ id, result, error }) {
    const waiter = this.#answers.get(id);
    if (!error && (typeof result !== 'object' || result === null)) throw new TypeError('a result that is no object');
    this.#answers.delete(id);
    if (error) waiter?.reject(rpcError(error));
    else waiter?.resolve(result);
  }

  #takeEvent(method, params) {
    const process = this.#processes.get(params.processId);
    if (process && ['process/output', 'process/exited', 'process/closed'].includes(method))
      process.onMessage(method, params);
    else if (method === 'approval/withdrawn' && this.#questions.has(params.approvalId))
      this.#questions.get(params.approvalId).abort();
    else if (method === 'fs/missingChanged' && params.watchId === this.#watchId) this.#watcher?.(true);
    else this.#tell(method, params);
  }

  #tell(method, params) {
    try {
      this.onEvent(method, params);
    } catch (error) {
      warn(error); // the connection is none the worse
    }
  }

  async #answer({ id, method, params }) {
    const transport = this.#transport; // another has requests of the same numbers
    const send = (message) => this.#transport === transport && this.#send(message);
    try {
      const handler = Object.hasOwn(this.handlers, method) ? this.handlers[method]
        : method === 'approval/request' && this.onQuestion && ((request) => this.#ask(request));
      if (!handler) throw new RpcError(RpcError.UNKNOWN_METHOD, `no handler for ${method}`);
      send({ id, result: await handler(params ?? {}) ?? null });
    } catch (error) {
      const { code = RpcError.INTERNAL, text = String(error) } = error instanceof RpcError ? error : {};
      send({ id, error: { code, message: text } });
      if (!(error instanceof RpcError)) warn(error); // a handler's own; the answer is a no
    }
  }

  async #ask({ approvalId, question }) {
    const withdrawn = new AbortController();
    this.#questions.set(approvalId, withdrawn);
    try {
      const verdict = await this.onQuestion(question, withdrawn.signal);
      if (typeof verdict === 'boolean') return { decision: verdict ? 'approved' : 'denied' };
      if (typeof verdict === 'string') return { decision: verdict };
      if (typeof verdict?.decision === 'string') return verdict;
      throw new TypeError(`a question is answered by true, false, a decision or an Approval, and not by ${inspect(verdict)}`);
    } catch (error) {
      if (withdrawn.signal.aborted) return null; // as it was told to
      throw error;
    } finally {
      if (this.#questions.get(approvalId) === withdrawn) this.#questions.delete(approvalId);
    }
  }

  async watch(uris) {
    this.#watcher?.(false);
    this.#watchId += 1;
    const changed = new Promise((resolve) => {
      this.#watcher = resolve;
    });
    const answer = await this.call('fs/watchMissing', { watchId: this.#watchId, missing: uris });
    return answer.watching ? changed : false;
  }
}
