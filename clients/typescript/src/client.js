// The connection: calls and their answers, events to where they belong, and a new connection to the
// same session when one is lost.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import { Disconnected, RpcError } from './errors.js';
import { Files } from './files.js';
import { Process } from './process.js';
import { toUri } from './sandbox.js';
import { Sessions } from './sessions.js';
import { openCommand, openUrl } from './transport.js';

const RETRY_DELAY_MS = 100;
const TIMELINE_WAIT_MS = 60000; // of one session/events
const ALL_BUT_SECRETS = {
  inherit: 'all', ignoreDefaultExcludes: false, exclude: [], set: {}, includeOnly: [],
};

/** Connects to ws://HOST:PORT, wss://HOST:PORT or unix:PATH. */
export async function connect(url, options = {}) {
  const client = new Client(() => openUrl(url, options.token), options);
  await client.open(options.resume ?? null);
  return client;
}

/** Starts a server, such as ["cordon", "serve", "--listen", "stdio"]; it ends with the client. */
export async function spawn(argv, options = {}) {
  const client = new Client(() => openCommand(argv), { ...options, reconnectForMs: 0 });
  await client.open(null);
  return client;
}

export class Client {
  sessionId = '';
  info = {};
  files = new Files(this);
  sessions = new Sessions(this);
  handlers = {}; // by method, for requests of the server
  onEvent = () => {}; // other notifications
  #dial;
  #name;
  #reconnectForMs;
  #transport = null;
  #ready; // a promise: a session is open
  #setReady = null; // while it is not kept
  #nextId = 1;
  #answers = new Map();
  #processes = new Map();
  #failure = null; // for good
  #watchId = 0;
  #watcher = null;

  constructor(dial, { name = 'cordon-client', reconnectForMs = 45000 } = {}) {
    this.#dial = dial;
    this.#name = name;
    this.#reconnectForMs = reconnectForMs;
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

  /** Ends the connection. What runs goes on for as long as the server keeps the session. */
  async close() {
    const transport = this.#transport;
    this.#end(new Disconnected('the client was closed'));
    this.#lost();
    transport?.close();
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }

  // --- calls ---

  /** Any method of the protocol; the result. RpcError for an error. */
  async call(method, params = {}) {
    if (!this.#failure) await this.#ready;
    if (this.#failure) throw this.#failure;
    return this.#request(method, params);
  }

  #request(method, params) {
    const id = this.#nextId;
    this.#nextId += 1;
    if (!this.#transport) return Promise.reject(new Disconnected('the connection is gone'));
    return new Promise((resolve, reject) => {
      this.#answers.set(id, { resolve, reject });
      this.#send({ id, method, params });
    });
  }

  #send(message) {
    this.#transport?.send(JSON.stringify(message));
  }

  // --- processes ---

  /** Starts a command. `env` missing: the server's environment without secrets; otherwise exactly
   * that. */
  async start(argv, cwd, options = {}) {
    const { env, sandbox, tty = false, stdin = false, size, processId, ...more } = options;
    const process = new Process(this, processId ?? randomUUID());
    const params = {
      processId: process.id, argv, cwd: toUri(cwd), env: env ?? {}, tty, pipeStdin: stdin,
      sandbox: sandbox ?? 'default', ...more,
    };
    if (!env && !more.envPolicy) params.envPolicy = ALL_BUT_SECRETS;
    if (size) [params.rows, params.columns] = size;
    this.#processes.set(process.id, process); // its events may come before the answer
    try {
      await this.#start(process, params);
    } catch (error) {
      this.forget(process);
      throw error;
    }
    return process;
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
    const transport = await this.#dial();
    let isOpen = false;
    this.#transport = transport;
    transport.onText = (text) => this.#sort(JSON.parse(text));
    transport.onEnd = (error) => {
      this.#lost(error);
      if (isOpen) this.#reconnect();
    };
    let answer;
    try {
      answer = await this.#request('initialize', { clientName: this.#name, resumeSessionId: resume });
      this.#send({ method: 'initialized', params: {} });
    } catch (error) {
      this.#transport = null;
      transport.onEnd = () => {};
      transport.close();
      throw error;
    }
    isOpen = true;
    this.sessionId = answer.sessionId;
    this.info = answer.environmentInfo ?? {};
    this.#setReady?.();
  }

  #lost(error) {
    this.#transport = null;
    if (!this.#failure) this.#unready();
    for (const { reject } of this.#answers.values())
      reject(new Disconnected(`the connection is gone: ${error?.message ?? 'closed'}`));
    this.#answers.clear();
    this.#watcher?.(false);
  }

  async #reconnect() {
    const deadline = Date.now() + this.#reconnectForMs;
    for (;;) {
      if (this.#failure) return;
      if (Date.now() >= deadline) {
        this.#end(new Disconnected('the connection is gone'));
        return;
      }
      try {
        await this.open(this.sessionId);
        break;
      } catch (error) {
        if (error instanceof RpcError && error.code !== RpcError.SESSION_ATTACHED) {
          this.#end(new Disconnected(`the session is gone: ${error.message}`));
          return;
        }
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
    this.#answers.delete(id);
    if (error) waiter?.reject(new RpcError(error.code, error.message, error.data));
    else waiter?.resolve(result);
  }

  #takeEvent(method, params) {
    const process = this.#processes.get(params.processId);
    if (process && ['process/output', 'process/exited', 'process/closed'].includes(method))
      process.onMessage(method, params);
    else if (method === 'fs/missingChanged' && params.watchId === this.#watchId) this.#watcher?.(true);
    else this.onEvent(method, params);
  }

  async #answer({ id, method, params }) {
    try {
      const handler = Object.hasOwn(this.handlers, method) && this.handlers[method];
      if (!handler) throw new RpcError(RpcError.UNKNOWN_METHOD, `no handler for ${method}`);
      this.#send({ id, result: await handler(params ?? {}) });
    } catch (error) {
      const { code = RpcError.INTERNAL, text = String(error) } = error instanceof RpcError ? error : {};
      this.#send({ id, error: { code, message: text } });
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
