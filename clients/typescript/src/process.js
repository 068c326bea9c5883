// One running command.
//
// Events come with numbers that have no holes. They are put in order here, and what a lost connection
// swallowed is fetched with process/read, so a reader sees every byte once and in order, or a gap that
// says how many are gone for good.
import { Disconnected, RpcError } from './errors.js';
import { Queue } from './queue.js';

const READ_MAX = 4 << 20; // bytes of one process/read

export class Process {
  sandboxType = 'none';
  exit = null;
  isClosed = false;
  hasStarted = false; // as far as it is known here
  #client;
  #nextSeq = 1;
  #nextOffset = 0;
  #early = new Map(); // came before those in front of them
  #queue = new Queue();
  #exited;
  #tellExit;
  #tellFailure;
  #writes = 0;

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
    if (offset > this.#nextOffset) this.#queue.put({ type: 'gap', bytes: offset - this.#nextOffset });
    if (offset !== undefined) this.#nextOffset = offset + data.length;
    this.#queue.put({ type: 'output', stream, data, offset });
  }

  #addExit({ exitCode, sandboxDenied = false, signal = null, denials = [] }) {
    if (this.exit) return;
    this.exit = { type: 'exited', exitCode, sandboxDenied, signal, denials };
    this.#tellExit(this.exit);
    this.#queue.put(this.exit);
  }

  #addClosed() {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#client.forget(this);
    this.#queue.put({ type: 'closed' });
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
    this.#tellFailure(error);
    this.#queue.end(error);
  }

  // --- for the caller ---

  /** Everything that happens, in order, until it is closed. For one reader. */
  async* events() {
    for (let item; !(item = await this.#queue.next()).done;) yield item.value;
  }

  [Symbol.asyncIterator]() {
    return this.events();
  }

  /** Client.timeline() of this process. */
  timeline(after = 0) {
    return this.#client.timeline(this.id, after);
  }

  /** Writes `data` and ends the input, and collects all output until it is closed. */
  async communicate(data) {
    const streams = { stdout: [], stderr: [], pty: [] };
    let lost = 0;
    if (data !== undefined) {
      await this.write(data);
      await this.closeStdin();
    }
    for await (const event of this.events()) {
      if (event.type === 'output') streams[event.stream].push(event.data);
      if (event.type === 'gap') lost += event.bytes;
    }
    return {
      stdout: Buffer.concat([...streams.stdout, ...streams.pty]),
      stderr: Buffer.concat(streams.stderr),
      exit: await this.wait(),
      lost,
    };
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
      answer = await this.#client.call('process/write', params);
    } catch (error) {
      if (!(error instanceof Disconnected)) throw error;
      answer = await this.#client.call('process/write', params);
    }
    if (answer.status !== 'accepted')
      throw new RpcError(RpcError.INVALID_REQUEST, `writing to ${this.id}: ${answer.status}`);
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
