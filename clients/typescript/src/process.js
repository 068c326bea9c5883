// One running command.
//
// Events come with numbers that have no holes. They are put in order here, and what a lost connection
// swallowed is fetched with process/read, so a reader sees every byte once and in order, or a gap that
// says how many are gone for good.
import { CommandFailed, Disconnected, InputClosed, RpcError, TimedOut } from './errors.js';
import { Queue } from './queue.js';

const READ_MAX = 4 << 20; // bytes of one process/read
const GRACE_MS = 2000; // from SIGTERM to SIGKILL, of a command whose time is over
const UNREAD_MAX = 32 << 20; // bytes of output that wait for a reader
const OF_EACH = 256; // bytes that an event takes besides its own
const LINE_MAX = 1 << 20; // of a line that is not over
const OUTPUT_MAX = 16 << 20; // bytes of each stream that are collected, unless it is said

export class Result {
  constructor(stdout, stderr, exit, lost) {
    this.stdout = stdout;
    this.stderr = stderr;
    this.exit = exit;
    this.lost = lost;
  }

  get exitCode() {
    return this.exit.exitCode;
  }

  get denials() {
    return this.exit.denials;
  }

  get text() {
    return this.stdout.toString();
  }

  check() {
    if (this.exit.exitCode !== 0) throw new CommandFailed(this);
    return this;
  }
}

/** Makes a Result of events, of at most `limit` bytes of each stream: the first ones. */
class Collector {
  #parts = { stdout: [], stderr: [] };
  #room;
  #lost = 0;

  constructor(limit = OUTPUT_MAX) {
    this.#room = { stdout: limit, stderr: limit };
  }

  add(event) {
    if (event.type === 'gap') this.#lost += event.bytes;
    if (event.type !== 'output') return;
    const stream = event.stream === 'stderr' ? 'stderr' : 'stdout';
    const taken = event.data.subarray(0, this.#room[stream]);
    this.#room[stream] -= taken.length;
    this.#lost += event.data.length - taken.length;
    this.#parts[stream].push(taken);
  }

  result(exit) {
    return new Result(Buffer.concat(this.#parts.stdout), Buffer.concat(this.#parts.stderr), exit, this.#lost);
  }
}

/** Of one stream: its whole lines that nobody has taken yet, and the beginning of another. */
class LinesOf {
  #whole = [];
  #at = 0; // how many of them are taken
  #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #rest = '';

  add(data) {
    const lines = this.#decoder.decode(data, { stream: true }).split('\n');
    lines[0] = this.#rest + lines[0];
    this.#rest = lines.pop();
    for (const line of lines) this.#whole.push(line.replace(/\r$/, ''));
    if (this.#rest.length > LINE_MAX) this.#giveRest();
  }

  #giveRest() {
    this.#whole.push(this.#rest);
    this.#rest = '';
  }

  end() {
    this.#rest += this.#decoder.decode();
    if (this.#rest) this.#giveRest();
  }

  * take() {
    while (this.#at < this.#whole.length) {
      this.#at += 1;
      yield this.#whole[this.#at - 1];
    }
    this.#whole = [];
    this.#at = 0;
  }
}

export class Process {
  sandboxType = 'none';
  warnings = [];
  exit = null;
  isClosed = false;
  hasStarted = false; // as far as it is known here
  #client;
  #nextSeq = 1;
  #nextOffset = 0;
  #early = new Map(); // came before those in front of them
  #queue = new Queue();
  #unread = 0; // bytes in it
  #gap = 0; // bytes behind it that are gone
  #exited;
  #tellExit;
  #tellFailure;
  #lines = new Map(); // by stream
  #writes = 0;
  #failed = false;

  constructor(client, id) {
    this.id = id;
    this.#client = client;
    this.#exited = new Promise((resolve, reject) => {
      this.#tellExit = resolve;
      this.#tellFailure = reject;
    });
    this.#exited.catch(() => {}); // waiting for it is not required
  }

  // --- what the server tells ---

  onMessage(method, params) {
    if (params.seq < this.#nextSeq) return;
    this.#early.set(params.seq, { method, ...params });
    for (let event; (event = this.#early.get(this.#nextSeq)); this.#nextSeq += 1) {
      this.#early.delete(this.#nextSeq);
      this.#take(event);
    }
  }

  #take(event) {
    if (event.method === 'process/output') this.#addOutput(event);
    else if (event.method === 'process/exited') this.#addExit(event);
    else this.#addClosed();
  }

  #addOutput({ stream, chunk, offset }) {
    const data = Buffer.from(chunk, 'base64');
    if (offset > this.#nextOffset) this.#gap += offset - this.#nextOffset;
    if (offset !== undefined) this.#nextOffset = offset + data.length;
    if (this.#unread + data.length + OF_EACH > UNREAD_MAX) {
      this.#gap += data.length; // rather than the memory of this program
      return;
    }
    this.#unread += data.length + OF_EACH;
    this.#put({ type: 'output', stream, data, offset });
  }

  #put(event) {
    if (this.#gap) this.#queue.put({ type: 'gap', bytes: this.#gap });
    this.#gap = 0;
    this.#queue.put(event);
  }

  #addExit({ exitCode, sandboxDenied = false, signal = null, denials = [] }) {
    if (this.exit) return;
    this.exit = { type: 'exited', exitCode, sandboxDenied, signal, denials };
    this.#tellExit(this.exit);
    this.#put(this.exit);
  }

  #addClosed() {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#client.forget(this);
    this.#put({ type: 'closed' });
    this.#queue.end();
  }

  /** After a new connection: what happened meanwhile. */
  async catchUp() {
    let read;
    do {
      read = await this.#client.call('process/read', {
        processId: this.id, afterSeq: this.#nextSeq - 1, maxBytes: READ_MAX, waitMs: 0,
      });
      for (const chunk of read.chunks) {
        if (chunk.seq < this.#nextSeq) continue;
        this.#addOutput(chunk);
        this.#nextSeq = chunk.seq + 1;
      }
    } while (read.chunks.length);
    for (const event of this.#early.values()) // it says more than the answer to a read
      if (event.method === 'process/exited') this.#addExit(event);
    if (read.exited) this.#addExit(read);
    this.#nextSeq = Math.max(this.#nextSeq, read.nextSeq);
    const early = [...this.#early.values()];
    this.#early.clear();
    if (read.closed) this.#addClosed();
    for (const { method, ...params } of early) this.onMessage(method, params);
  }

  fail(error) {
    this.#failed = true;
    this.#tellFailure(error);
    this.#queue.end(error);
  }

  // --- for the caller ---

  async [Symbol.asyncDispose]() {
    if (this.isClosed || this.#failed) return;
    try {
      await this.terminate();
    } catch (error) {
      if (!(error instanceof Disconnected)) throw error;
    }
  }

  async* events() {
    for (let item; !(item = await this.#queue.next()).done;) {
      if (item.value.type === 'output') this.#unread -= item.value.data.length + OF_EACH;
      yield item.value;
    }
  }

  [Symbol.asyncIterator]() {
    return this.events();
  }

  async* output(stream) {
    for await (const event of this.events())
      if (event.type === 'output' && (stream ?? event.stream) === event.stream) yield event.data;
  }

  async* lines(stream) {
    const begun = () => [...this.#lines].filter(([name]) => (stream ?? name) === name).map(([, lines]) => lines);
    for (const lines of begun()) yield* lines.take();
    for await (const event of this.events()) {
      if (event.type !== 'output' || (stream ?? event.stream) !== event.stream) continue;
      if (!this.#lines.has(event.stream)) this.#lines.set(event.stream, new LinesOf());
      const lines = this.#lines.get(event.stream);
      lines.add(event.data);
      yield* lines.take();
    }
    for (const lines of begun()) {
      lines.end();
      yield* lines.take();
    }
  }

  timeline(after = 0) {
    return this.#client.timeline(this.id, after);
  }

  async communicate(data, { maxOutput, signal, timeoutMs } = {}) {
    const collector = new Collector(maxOutput);
    const work = this.#collect(data, collector);
    let timer;
    let onAbort;
    const end = new Promise((resolve, reject) => {
      if (timeoutMs !== undefined) timer = setTimeout(resolve, timeoutMs, 'late');
      onAbort = () => reject(signal.reason);
      signal?.addEventListener('abort', onAbort);
      if (signal?.aborted) onAbort();
    });
    try {
      if (await Promise.race([work, end]) !== 'late') return await work;
      await this.terminate(GRACE_MS);
      throw new TimedOut(`the command was ended after ${timeoutMs} ms`, await work);
    } catch (error) {
      work.catch(() => {}); // nobody waits any more
      if (signal?.aborted && !this.isClosed) this.terminate().catch(() => {});
      throw error;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    }
  }

  async #collect(data, collector) {
    if (data !== undefined) {
      try {
        await this.write(data);
        await this.closeStdin();
      } catch (error) {
        if (!(error instanceof InputClosed)) throw error; // it does not want that much
      }
    }
    for await (const event of this.events()) collector.add(event);
    return collector.result(await this.wait());
  }

  /** How the command ended. Its output may go on, if it left something behind. */
  wait() {
    return this.#exited;
  }

  /** Sends input. Written once, also when the connection is lost meanwhile. */
  async write(data) {
    this.#writes += 1;
    const params = {
      processId: this.id, writeId: String(this.#writes), chunk: Buffer.from(data).toString('base64'),
    };
    let answer;
    try {
      answer = await this.#write(params);
    } catch (error) {
      if (!(error instanceof Disconnected)) throw error;
      answer = await this.#write(params);
    }
    if (answer.status !== 'accepted') throw new InputClosed(`writing to the command: ${answer.status}`);
  }

  async #write(params) {
    try {
      return await this.#client.call('process/write', params);
    } catch (error) {
      if (error.code === RpcError.INTERNAL) throw new InputClosed('writing to the command: it has ended');
      throw error;
    }
  }

  /** false: it had no input, or it was closed before. */
  async closeStdin() {
    return Boolean((await this.#call('process/closeStdin')).closed);
  }

  /** SIGINT, as by Ctrl-C. */
  async interrupt() {
    await this.#call('process/signal', { signal: 'interrupt' });
  }

  /** Ends it with all that it started; after SIGTERM and `graceMs` if there are any. */
  async terminate(graceMs = 0) {
    return (await this.#call('process/terminate', graceMs ? { graceMs } : {})).running;
  }

  async resize(rows, columns) {
    await this.#call('process/resize', { rows, columns });
  }

  #call(method, params = {}) {
    return this.#client.call(method, { processId: this.id, ...params });
  }
}
